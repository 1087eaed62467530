"""The MCP servers behind this one: records, approval, connections."""
