"""One HTTP request to /mcp: framing, sessions, state, errors and answers."""
