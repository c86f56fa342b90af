"""SWE-agent."""
