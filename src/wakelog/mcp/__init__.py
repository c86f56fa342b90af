"""MCP: a server for an agent that keeps its own session, and a proxy that records the traffic of any MCP server."""
