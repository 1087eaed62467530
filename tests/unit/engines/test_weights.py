"""Every file of a model is the one that its manifest describes, and says how it is made."""

import hashlib
import json
from pathlib import Path

import pytest

import app.engines

ROOT = Path(app.engines.__file__).parent
FOLDERS = sorted(folder for folder in ROOT.rglob("weights") if any(folder.iterdir()))


def manifest(folder):
    return json.loads((folder / "manifest.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
def test_a_model_is_the_file_that_its_manifest_describes(folder):
    described = manifest(folder)
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "manifest.json"}
    assert {name: (len(data), hashlib.sha256(data).hexdigest()) for name, data in files.items()} == {
        name: (about["bytes"], about["sha256"]) for name, about in described.items()
    }


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
def test_a_model_says_its_licence_its_recipe_and_its_data(folder):
    for about in manifest(folder).values():
        assert about["licence"]
        recipe = about["recipe"].removeprefix("python -m ").split()[0].replace(".", "/").removeprefix("app/")
        assert (ROOT.parent / recipe).exists() or (ROOT.parent / f"{recipe}.py").exists()
        assert about["data"]
        assert all(len(bytes.fromhex(one["sha256"])) == 32 for one in about["data"])
