"""MCP servers over REST."""
