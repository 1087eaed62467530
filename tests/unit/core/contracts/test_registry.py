"""The registry finds one middleware per file and refuses contradictions at start."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

import app.middlewares
from app.core.contracts.registry import Registry, RegistryError
from app.core.errors import NotFoundError
from tests.fakes import engines

SOURCE = """
from app.core.contracts.middleware import Arguments, Middleware, Outcome
class {name}(Middleware[Arguments]):
    name = "{wire}"
    title = description = "x"
    phase = "outbound"
    arguments = Arguments
    async def apply(self, context, arguments):
        return Outcome(context)
"""


def package_of(folder: Path, **files: str) -> ModuleType:
    name = f"made_{folder.name.replace('-', '_')}"
    home = folder / name
    home.mkdir()
    (home / "__init__.py").write_text("")
    for file, source in files.items():
        (home / f"{file}.py").write_text(source)
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(folder))


def discovered(package: ModuleType, monkeypatch: pytest.MonkeyPatch, folder: Path) -> Registry:
    monkeypatch.syspath_prepend(str(folder))
    return Registry.discover(package, engines())


def test_our_own_middlewares_are_found_by_name() -> None:
    found = Registry.discover(app.middlewares, engines()).middlewares
    assert list(found) == sorted(found)
    assert {"audit_logging", "pii_redaction", "pii_restoration", "secret_redaction"} <= set(found)


def test_a_new_file_is_a_new_middleware(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = package_of(tmp_path, shouting=SOURCE.format(name="Shouting", wire="shouting"))
    assert list(discovered(package, monkeypatch, tmp_path).middlewares) == ["shouting"]


def test_a_middleware_may_be_a_folder_with_helpers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = package_of(tmp_path)
    folder = tmp_path / package.__name__ / "shouting"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "loudness.py").write_text("LOUD = True\n")
    with pytest.raises(RegistryError, match=r"shouting\.middleware is missing"):
        discovered(package, monkeypatch, tmp_path)
    (folder / "middleware.py").write_text(SOURCE.format(name="Shouting", wire="shouting"))
    importlib.invalidate_caches()
    assert list(discovered(package, monkeypatch, tmp_path).middlewares) == ["shouting"]


def test_two_of_one_name_stop_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    same = SOURCE.format(name="Same", wire="same")
    package = package_of(tmp_path, one=same, two=same)
    with pytest.raises(RegistryError, match="Two middlewares are named 'same'"):
        discovered(package, monkeypatch, tmp_path)


def test_two_in_one_file_stop_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = SOURCE.format(name="One", wire="one") + SOURCE.format(name="Two", wire="two")
    package = package_of(tmp_path, both=source)
    with pytest.raises(RegistryError, match="exactly one middleware"):
        discovered(package, monkeypatch, tmp_path)


def test_an_unknown_name_is_not_repeated() -> None:
    with pytest.raises(NotFoundError) as caught:
        Registry.discover(app.middlewares, engines()).get("john.doe@example.com")
    assert "john" not in str(caught.value.details) + caught.value.message
