"""The TypeScript client has the calls of the Python client, under the same names in its own spelling."""

import inspect
import re
from pathlib import Path

import pytest

import sluice_client
from sluice_client import admin
from sluice_client.families import CALLS, Family

SOURCE = Path(__file__).parents[3] / "clients" / "typescript" / "src"
OWN = {"close", "aclose"}  # what Python closes, Node's fetch does not open
IDIOMS = {"count_tokens": "countTokens"}


def spelled(name):
    head, *rest = name.split("_")
    return head + "".join(part.title() for part in rest)


def methods(kind):
    return {name for name, _ in inspect.getmembers(kind, callable) if not name.startswith("_")}


def in_typescript(file, kind):
    """Return the methods and fields of a class of the TypeScript client."""
    body = re.split(rf"^export class {kind}\b", (SOURCE / file).read_text(), flags=re.MULTILINE)[1]
    body = body.split("\n}\n")[0]
    return set(re.findall(r"^  (?:async |readonly )?\*?(\w+)[(:<]", body, re.MULTILINE))


def test_the_client_has_every_call():
    wanted = {spelled(name) for name in methods(sluice_client.Sluice) - OWN}
    assert {"redact", "restoreEvents", "restoreStream"} <= wanted
    assert wanted - in_typescript("client.ts", "Sluice") == set()


@pytest.mark.parametrize("kind", ["Keys", "Policies", "Audit", "Subjects", "Erasures"])
def test_the_administration_has_every_call(kind):
    python = {spelled(name) for name in methods(getattr(admin, kind))}
    assert python and python - in_typescript("admin.ts", kind) == set()


def test_both_wrap_the_same_calls_and_families():
    wrapping = (SOURCE / "wrapping.ts").read_text()
    for call in (call for calls in CALLS.values() for call in calls):
        assert f'"{".".join(IDIOMS.get(step, step) for step in call.split("."))}"' in wrapping
    shapes = (SOURCE / "shapes.ts").read_text()
    families = re.search(r"export type Family = (.+);", shapes)[1]
    assert set(re.findall(r'"(\w+)"', families)) == set(Family.__args__)
