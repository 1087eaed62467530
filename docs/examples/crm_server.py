# ruff: noqa: INP001 -- an example is a script
"""A small MCP server to try Sluice with: a customer register that lies in memory.

It speaks MCP on standard input and output, so that Sluice starts it as a command:

    {"mcpServers": {"crm": {"command": ".venv/bin/python", "args": ["docs/examples/crm_server.py"]}}}
"""

from mcp.server import MCPServer

CUSTOMERS = {
    "Jane Smith": "jane.smith@example.com, +1 202-555-0143",
    "John Doe": "john.doe@example.com, +1 202-555-0198",
}

server = MCPServer("crm")


@server.tool()
def find(name: str) -> str:
    """Find a customer by name and return the address and the telephone number."""
    return f"{name}: {CUSTOMERS[name]}" if name in CUSTOMERS else "There is no such customer."


@server.tool()
def remove(name: str) -> str:
    """Remove a customer from the register."""
    return "Removed." if CUSTOMERS.pop(name, None) else "There is no such customer."


if __name__ == "__main__":
    server.run()
