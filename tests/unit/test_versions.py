"""One version in every place that tells it, and the changelog says what is in it."""

import json
import re
import tomllib
from datetime import date
from pathlib import Path

from app import __version__

ROOT = Path(__file__).parents[2]
HEADING = re.compile(r"^## (.+)$", re.MULTILINE)


def sections():
    """Return the changelog's sections by their headings, newest first."""
    parts = HEADING.split((ROOT / "CHANGELOG.md").read_text())
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_the_newest_section_of_the_changelog_is_this_version_with_its_day():
    newest = next(heading for heading in sections() if heading != "Unreleased")
    version, day = re.fullmatch(r"(\d+\.\d+\.\d+) - (\d{4}-\d\d-\d\d)", newest).groups()
    assert version == __version__
    assert date(2026, 1, 1) < date.fromisoformat(day)


def test_a_section_has_each_kind_of_change_once():
    for heading, text in sections().items():
        kinds = re.findall(r"^### (.+)$", text, re.MULTILINE)
        assert len(kinds) == len(set(kinds)), heading
        assert set(kinds) <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}, heading


def test_server_and_clients_have_one_version():
    told = {}
    for file in ("pyproject.toml", "clients/python/pyproject.toml"):
        told[file] = tomllib.loads((ROOT / file).read_text())["project"]["version"]
    package, lock = (
        json.loads((ROOT / "clients/typescript" / name).read_text())
        for name in ("package.json", "package-lock.json")
    )
    told |= {"package.json": package["version"], "package-lock.json": lock["version"]}
    told["its own package"] = lock["packages"][""]["version"]
    bill = json.loads((ROOT / "deploy/sluice-mcp.cdx.json").read_text())
    told["bill of materials"] = bill["metadata"]["component"]["version"]
    source = (ROOT / "clients/python/sluice_client/mcp.py").read_text()
    told["MCP client"] = re.search(r'"version": "([^"]+)"', source)[1]
    assert told == dict.fromkeys(told, __version__)
