"""Middlewares of other distributions: found by entry point, checked, named; a broken one stops the start."""

import asyncio
import importlib
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import app.middlewares
from app.core.access import Caller, Role
from app.core.content.context import Context
from app.core.contracts.middleware import Invocation
from app.core.contracts.registry import Registry, RegistryError
from tests.fakes import engines

TEMPLATE = Path(__file__).parents[4] / "docs/examples/plug-in"
POINT = "[sluice.middleware]\n{name} = {value}\n"
CALLER = Caller("t", "0000000a", frozenset({Role.INVOKER}))


def installed(folder: Path, source: str, module: str, value: str, name: str = "shouting") -> None:
    """Lay a distribution out as an installer does."""
    (folder / f"{module}.py").write_text(source, encoding="utf-8")
    info = folder / f"{module}-1.2.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.2.0\n", encoding="utf-8"
    )
    (info / "entry_points.txt").write_text(POINT.format(name=name, value=value), encoding="utf-8")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]
    importlib.invalidate_caches()


def template() -> str:
    return (TEMPLATE / "src/shouting/__init__.py").read_text(encoding="utf-8")


def discover(**settings: Any) -> Registry:
    importlib.invalidate_caches()
    return Registry.discover(app.middlewares, engines(), settings)


async def test_the_template_runs_with_its_settings_and_the_record_names_its_distribution(site: Path) -> None:
    installed(site, template(), "shouting_a", "shouting_a:Shouting")
    middleware = discover(shouting={"marks": 3}).get("shouting")
    invocation = Invocation(CALLER, asyncio.get_running_loop().time() + 1)
    made = await middleware.invoke(
        Context.parse([{"role": "user", "content": "hi"}]), middleware.arguments(), invocation
    )
    assert made.context.to_json() == [{"role": "user", "content": "hi!!!"}]
    assert made.audit_details == {"plugin": "shouting_a", "plugin_version": "1.2.0"}


def test_the_template_names_its_entry_point_and_its_test_passes() -> None:
    assert 'shouting = "shouting:Shouting"' in (TEMPLATE / "pyproject.toml").read_text(encoding="utf-8")
    sys.path.insert(0, str(TEMPLATE / "src"))
    try:
        runpy.run_path(str(TEMPLATE / "tests/test_shouting.py"))["test_the_user_shouts"]()
    finally:
        sys.path.remove(str(TEMPLATE / "src"))
        sys.modules.pop("shouting", None)


BROKEN = {
    "raises": ("1 / 0", "x:Shouting", "does not load (ZeroDivisionError)"),
    "absent": ("", "x:Shouting", "does not load (AttributeError)"),
    "no class": ("Shouting = 1", "x:Shouting", "is not a Middleware"),
    "abstract": (
        "from app.core.contracts.middleware import Middleware as Shouting",
        "x:Shouting",
        "is not a Middleware",
    ),
    "other contract": (template().replace("api = 1", "api = 2"), "x:Shouting", "version 2 of the contract"),
    "unnamed": (template().replace('    name = "shouting"\n', ""), "x:Shouting", "has no 'name'"),
    "taken name": (
        template().replace('name = "shouting"', 'name = "pii_redaction"'),
        "x:Shouting",
        "Two middlewares are named 'pii_redaction'",
    ),
    "constructor": (
        template().replace(
            "    api = 1", "    api = 1\n    def __init__(self, engines):\n        raise OSError"
        ),
        "x:Shouting",
        "does not start (OSError)",
    ),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_plug_in_stops_the_start_with_a_sentence_that_names_it(site: Path, fault: str) -> None:
    source, value, message = BROKEN[fault]
    module = f"broken_{fault.replace(' ', '_')}"
    installed(site, source, module, value.replace("x:", f"{module}:"))
    with pytest.raises(RegistryError) as caught:
        discover()
    assert message in str(caught.value)
    assert fault == "taken name" or f"{module} 1.2.0" in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"shouting": {"marks": 99}}, "are invalid (marks)"),
        ({"shouting": {"volume": 1}}, "are invalid (volume)"),
        ({"whispering": {}}, "'whispering', which is not installed"),
    ],
)
def test_settings_are_checked_when_the_service_starts(
    site: Path, settings: dict[str, Any], message: str
) -> None:
    installed(site, template(), "shouting_b", "shouting_b:Shouting")
    with pytest.raises(RegistryError, match="plug-in") as caught:
        discover(**settings)
    assert message in str(caught.value)
