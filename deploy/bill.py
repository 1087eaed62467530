"""Write the bill of materials (CycloneDX) of what an installation holds: ``python deploy/bill.py``.

It lists the locked packages, the files of models and the data that these were made from, and the files that the
console brings, each with its licence.
It comes with the wheel (PEP 770) and so with the image. A test fails when it is stale.
"""

import json
import runpy
import uuid
from pathlib import Path
from typing import Any

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

import app

ROOT = Path(__file__).resolve().parents[1]
BILL = ROOT / "deploy" / "sluice-mcp.cdx.json"
NAME = "sluice-mcp"
VENDORED = "app/console/vendored/manifest.json"
_licences = LicenseFactory()


def render() -> str:
    """Return the bill as JSON; the same for the same lock and the same files."""
    generator: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "generate.py"))
    root = _component(NAME, app.__version__, "Apache-2.0", ComponentType.APPLICATION)
    packages = [
        _component(name, version, generator["licence_of"](name))
        for name, version in generator["locked"]().items()
    ]
    models = [
        model for path in sorted((ROOT / "app").rglob("weights/manifest.json")) for model in _models(path)
    ]
    pages = json.loads((ROOT / VENDORED).read_text(encoding="utf-8"))
    vendored = [_vendored(name, about) for name, about in sorted(pages.items())]
    serial = uuid.uuid5(uuid.NAMESPACE_URL, f"pkg:pypi/{NAME}@{app.__version__}")
    bom = Bom(components=[*packages, *models, *vendored], serial_number=serial)
    bom.metadata.component = root
    bom.register_dependency(root, [*packages, *models, *vendored])
    document = json.loads(JsonV1Dot6(bom).output_as_string())
    del document["metadata"]["timestamp"]  # the bill says what is inside, not when it was written
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


def _component(
    name: str, version: str, licence: str, kind: ComponentType = ComponentType.LIBRARY
) -> Component:
    purl = PackageURL("pypi", None, name.lower().replace("_", "-"), version)
    return Component(
        name=name,
        version=version,
        type=kind,
        purl=purl,
        bom_ref=purl.to_string(),
        licenses=[_licences.make_from_string(licence)],
    )


def _models(manifest: Path) -> list[Component]:
    """Return a component for each file of a model, with the data it was made from inside."""
    components = []
    for name, about in sorted(json.loads(manifest.read_text(encoding="utf-8")).items()):
        file = str((manifest.parent / name).relative_to(ROOT))
        data = {one["name"]: one["licence"] for one in about["data"]}
        components.append(
            Component(
                name=file,
                type=ComponentType.MACHINE_LEARNING_MODEL,
                bom_ref=file,
                hashes=[HashType(alg=HashAlgorithm.SHA_256, content=about["sha256"])],
                licenses=[_licences.make_from_string(about["licence"])],
                components=[
                    Component(
                        name=source,
                        type=ComponentType.DATA,
                        bom_ref=f"{file}#{source}",
                        licenses=[_licences.make_from_string(licence)],
                    )
                    for source, licence in sorted(data.items())
                ],
            )
        )
    return components


def _vendored(name: str, about: dict[str, Any]) -> Component:
    """Return a component for a file of an npm package that the console brings."""
    purl = PackageURL("npm", None, about["package"], about["version"], subpath=about["path"])
    return Component(
        name=f"app/console/vendored/{name}",
        version=about["version"],
        type=ComponentType.LIBRARY,
        purl=purl,
        bom_ref=purl.to_string(),
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=about["sha256"])],
        licenses=[_licences.make_from_string(about["licence"])],
    )


if __name__ == "__main__":
    BILL.write_text(render(), encoding="utf-8")
