"""The MCP surface."""
