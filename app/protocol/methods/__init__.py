"""The MCP methods, one file per family."""
