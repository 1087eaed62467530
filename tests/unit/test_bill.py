"""The bill of materials: valid, up to date, and complete over what is installed and shipped."""

import hashlib
import json
import re
import runpy
from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

ROOT = Path(__file__).parents[2]
BILL = ROOT / "deploy" / "sluice-mcp.cdx.json"


def test_the_bill_is_up_to_date() -> None:
    rendered = runpy.run_path(str(ROOT / "deploy" / "bill.py"))["render"]()
    assert BILL.read_text(encoding="utf-8") == rendered, "run: make docs"


def test_the_bill_is_valid_cyclonedx() -> None:
    validator = JsonStrictValidator(SchemaVersion.V1_6)
    text = BILL.read_text(encoding="utf-8")
    assert validator.validate_str(text) is None
    assert validator.validate_str(text.replace('"library"', '"book"')) is not None


def test_every_locked_package_and_every_file_of_a_model_has_its_licence() -> None:
    components = json.loads(BILL.read_text(encoding="utf-8"))["components"]
    assert all(component["licenses"] for component in components)
    names = {component["name"] for component in components}
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    packages = {re.split(r"\[|==", line)[0] for line in lock if "==" in line and line[0] not in " #"}
    models = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "app").rglob("weights/*")
        if path.suffix in {".npz", ".onnx"}
    }
    assert len(packages) > 50
    assert len(models) > 4
    listed = json.loads((ROOT / "app/console/vendored/manifest.json").read_text(encoding="utf-8"))
    assert packages | models | {f"app/console/vendored/{name}" for name in listed} <= names


def test_files_of_the_console_that_others_wrote_are_as_their_packages_have_them() -> None:
    folder = ROOT / "app/console/vendored"
    listed = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    assert {path.name for path in folder.iterdir() if path.suffix in {".js", ".css"}} == set(listed)
    for name, about in listed.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == about["sha256"], name
        assert (folder / about["licence_file"]).stat().st_size > 500
