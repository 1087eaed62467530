"""The company's MCP servers behind the aggregator."""
