"""The examples of docs/python-aggregator.md run as they stand there."""

import asyncio
import json
import os
import re
import sys
from pathlib import Path

import pytest

from tests.integration.upstream_setup import serving

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/python-aggregator.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
PRINTED = [
    "github__list_repos",
    "structured_content={'key': 'test'}",
    "Servers not found: time, maps\nclock: stdio: mcp-server-time - Knows the time",
    "memory ['get', 'set']\nThere is no tool 'github__delete_repo', or it is not exposed.",
    "",
]


@pytest.fixture
def servers(tmp_path):
    with serving("http modern", "memory") as memory, serving("http modern", "github") as github:
        for script, names in (
            (memory.script, ("get", "set")),
            (github.script, ("list_repos", "delete_repo")),
        ):
            script.tools.clear()
            for name in names:
                script.add_tool(name)
        entries = {"memory": {"url": memory.settings.url}, "github": {"url": github.settings.url}}
        (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": entries}))
        yield memory.script, github.script


@pytest.mark.parametrize(("example", "printed"), [*zip(EXAMPLES, PRINTED, strict=True)])
async def test_an_example_runs_as_it_stands(example, printed, servers, tmp_path):
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-W",
        "error",
        "-c",
        example,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(100):
        output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    assert printed in output.decode()
    memory, github = servers
    assert ("tools/call", "delete_repo") not in github.calls
    if "remember" in example:
        assert memory.calls == [("tools/call", "set"), ("tools/call", "set")]
