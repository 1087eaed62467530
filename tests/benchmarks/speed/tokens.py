"""What the list of tools of a public MCP server costs a client in tokens: whole, short, one group, one concern."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.benchmarks.speed.aggregation import modern
from tests.benchmarks.speed.processes import Measured, sluice
from tests.benchmarks.speed.report import table
from tests.benchmarks.speed.sizes import Sizes
from tests.benchmarks.speed.wire import exchange, store_policy

NODE = Path(__file__).parents[1] / "node"
MODULES = NODE / "node_modules"
BIN = Path(sys.executable).parent
SERVER = "@zereight/mcp-gitlab"
READING = ("get_*", "list_*", "search_*", "mr_discussions", "download_*", "my_issues", "health_*", "verify_*")


def tables(_sizes: Sizes, folder: Path) -> Iterator[str]:
    """Yield the table, where `make bench` has installed the server and the tokenizer."""
    if not MODULES.exists():
        return
    config = folder / "gitlab.json"
    config.write_text(json.dumps(declared()))
    with sluice(folder, SLUICE_UPSTREAMS__CONFIG=str(config)) as server:
        lists = asyncio.run(listed(server))
    costs = counted(
        [json.dumps(tools, separators=(",", ":"), ensure_ascii=False) for tools in lists.values()]
    )
    whole = costs[0]
    rows = [
        (name, len(tools), cost, f"{cost / whole:.0%}")
        for (name, tools), cost in zip(lists.items(), costs, strict=True)
    ]
    yield table(
        "Tokens that a client pays for the tools of a public MCP server",
        ("list", "tools", "tokens", "of the whole"),
        rows,
        f"npm {SERVER}, as it lists itself; the JSON of `tools` in tokens of o200k_base.",
    )


def declared() -> dict[str, Any]:
    """Return the declarative file: the server, one group and one concern."""
    entry = MODULES / SERVER / "build" / "index.js"
    return {
        "mcpServers": {
            "gitlab": {
                "command": str(BIN / "node"),
                "args": [str(entry)],
                # It lists its tools without asking GitLab anything.
                "env": {
                    "GITLAB_PERSONAL_ACCESS_TOKEN": "none",
                    "GITLAB_API_URL": "http://127.0.0.1:9/api/v4",
                },
            }
        },
        "groups": [
            {
                "name": "merge-requests",
                "members": [{"kind": "tool", "name": "gitlab__*merge_request*"}],
            }
        ],
        "concerns": [
            {
                "name": "effect",
                "description": "Whether a tool changes anything.",
                "values": ["read", "write"],
                "default": "write",
            }
        ],
        "concernMappings": [
            {"kind": "tool", "name": "gitlab__*", "concerns": {"effect": "write"}},
            *(
                {"kind": "tool", "name": f"gitlab__{name}", "concerns": {"effect": "read"}}
                for name in READING
            ),
        ],
    }


async def listed(server: Measured) -> dict[str, list[Any]]:
    """Return the tools of each way to list them."""
    found = {
        "whole": await tools(server, {}),
        "one group (merge-requests)": await tools(server, {"dev.sluice/groups": ["merge-requests"]}),
        "one concern (effect: read)": await tools(server, {"dev.sluice/concerns": {"effect": "read"}}),
    }
    policy = {"disclosure": {"default": "staged"}}
    await store_policy(server, policy)
    found["short descriptions (progressive disclosure)"] = await tools(server, {})
    found["short, one group"] = await tools(server, {"dev.sluice/groups": ["merge-requests"]})
    return found


async def tools(server: Measured, meta: dict[str, Any]) -> list[Any]:
    """Return all pages of a list."""
    found: list[Any] = []
    cursor: dict[str, Any] = {}
    while True:
        data = modern(server, "tools/list", cursor, meta)
        result = json.loads((await exchange(server, data))[1])["result"]
        found += result["tools"]
        if "nextCursor" not in result:
            return found
        cursor = {"cursor": result["nextCursor"]}


def counted(texts: list[str]) -> list[int]:
    """Return the tokens of each text."""
    lines = "\n".join(json.dumps(text) for text in texts)
    command = [BIN / "node", NODE / "count.js"]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True, cwd=NODE)
    return [int(line) for line in done.stdout.split()]
