"""One connection to an MCP server, over any transport and revision."""
