"""A raw MCP server over stdio, handshake revision, that misbehaves as it is told.

In a test ``child_settings("--stubborn")`` gives the members of an entry of ``mcpServers``. Flags:
``--exits-on-discover`` (as servers do that know only ``initialize``), ``--stubborn`` (ignores the end of its input and
SIGTERM), ``--prints`` (words that are no message, before each answer), ``--children FILE`` (starts a process that holds
its output and writes both process ids to FILE), ``--deaf`` (never reads after the handshake). Tools: echo, huge (a line
of 64 MiB), broken (an answer that is no JSON), hang, leave, ask (answers when its question was answered), both (waits
until two calls run, logs, then answers both).
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def child_settings(*flags: str, **more: Any) -> dict[str, Any]:
    arguments = ["-m", "tests.upstreams.misbehaving_child", *flags]
    return {"command": sys.executable, "args": arguments, "cwd": str(ROOT), **more}


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser()
    for flag in ("--exits-on-discover", "--stubborn", "--prints", "--deaf"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--children")
    given = parser.parse_args()
    if given.stubborn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if given.children:
        grandchild = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
        Path(given.children).write_text(f"{os.getpid()} {grandchild.pid}")
    sys.stderr.write("secret words of the server\n" * 10_000)
    waiting: list[int] = []
    for line in sys.stdin:
        answer(json.loads(line), given, waiting)
    while given.stubborn:
        time.sleep(1)


def answer(message: dict[str, Any], given: argparse.Namespace, waiting: list[int]) -> None:
    number, method = message.get("id"), message.get("method")
    if method == "server/discover" and given.exits_on_discover:
        sys.exit(1)
    if given.prints:
        print("Starting up … {not json")
    if method is None and number == "q":
        say({"id": waiting.pop(), "result": {"answered": message.get("result", message.get("error"))}})
    elif method == "initialize":
        info = {"name": "child", "version": "0"}
        say(
            {
                "id": number,
                "result": {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": info},
            }
        )
    elif method == "notifications/initialized" and given.deaf:
        time.sleep(3600)
    elif method == "tools/call":
        call(number, message["params"], waiting)
    elif number is not None:
        say({"id": number, "error": {"code": -32601, "message": "Method not found"}})


def call(number: int, params: dict[str, Any], waiting: list[int]) -> None:
    name = params["name"]
    if name == "echo":
        say({"id": number, "result": params["arguments"]})
    elif name == "huge":
        sys.stdout.write(f'{{"jsonrpc":"2.0","id":{number},"result":{{"x":"')
        for _ in range(1024):
            sys.stdout.write("x" * 65_536)
        sys.stdout.write('"}}\n')
        sys.stdout.flush()
    elif name == "broken":
        sys.stdout.write(f'{{"jsonrpc":"2.0","id":{number},"result":{{"x":NaN}}}}\n')
        sys.stdout.flush()
    elif name == "leave":
        sys.exit(3)
    elif name == "ask":
        waiting.append(number)
        say({"id": "q", "method": "elicitation/create", "params": {}})
    elif name == "both":
        waiting.append(number)
        if len(waiting) == 2:
            say({"method": "notifications/message", "params": {"level": "info", "data": "whose?"}})
            for each in waiting:
                say({"id": each, "result": {}})


if __name__ == "__main__":
    main()
