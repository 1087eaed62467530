"""What the programs of this folder share: the plan they are given, and the tool that they run."""

import json
import sys
from threading import Lock
from typing import Any

PLAN: dict[str, Any] = json.load(sys.stdin)
STREAM: bool = PLAN["stream"]
TURNS: list[dict[str, Any]] = []
"""What was seen: the calls and the answer of each turn, and what else the client tells."""
_TOGETHER = Lock()


def begin() -> None:
    """Open a turn."""
    TURNS.append({"calls": []})


def find_customer(number: int, name: str, email: str, note: str) -> str:
    """Find a customer by name and mail address."""
    with _TOGETHER:  # clients may run calls at the same time
        TURNS[-1]["calls"].append({"number": number, "name": name, "email": email, "note": note})
        TURNS[-1]["calls"].sort(key=lambda call: call["number"])
    return PLAN["results"][number]


def answered(text: str, **more: Any) -> None:
    """Close a turn."""
    TURNS[-1].update(answer=text, **more)


def tell(**more: Any) -> None:
    """Write what was seen."""
    print(json.dumps({"turns": TURNS, **more}))
