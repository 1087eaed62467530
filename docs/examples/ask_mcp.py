# ruff: noqa: INP001, T201 -- an example is a script, and it prints
"""Send one MCP request of revision 2026-07-28 to a running Sluice and print the result.

python docs/examples/ask_mcp.py tools/list
python docs/examples/ask_mcp.py tools/call '{"name": "crm__find", "arguments": {"name": "Jane Smith"}}'

It reads SLUICE_URL and SLUICE_API_KEY. A client library does the same for you; this shows what goes over the wire.
"""

import json
import os
import sys
import urllib.error
import urllib.request
from typing import Any

VERSION = "2026-07-28"


def ask(method: str, params: dict[str, Any]) -> Any:
    """Return the result of one request, or its error."""
    about = {
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {**params, "_meta": {**about, **params.get("_meta", {})}}
    headers = {
        "Authorization": f"Bearer {os.environ['SLUICE_API_KEY']}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": VERSION,
        "Mcp-Method": method,
    }
    if name := params.get("name") or params.get("uri"):
        headers["Mcp-Name"] = name
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    request = urllib.request.Request(f"{os.environ['SLUICE_URL']}/mcp", body, headers)  # noqa: S310 - our own
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - our own
            message = json.load(answer)
    except urllib.error.HTTPError as refusal:
        message = json.load(refusal)
    return message.get("result", message.get("error"))


if __name__ == "__main__":
    print(json.dumps(ask(sys.argv[1], json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}), indent=2))  # noqa: PLR2004
