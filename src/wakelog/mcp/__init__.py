"""MCP: a server through which an agent keeps its own session, and a proxy that records any MCP server's traffic."""
