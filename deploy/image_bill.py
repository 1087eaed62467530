"""Print the bill of materials (CycloneDX) of an image: what its distribution and its environment hold, with licences.

It runs while the image is built, with the image's Python and nothing else: the wheel's own bill is completed by the
packages of Debian, from dpkg's status and their ``copyright`` files, by what else is installed in the environment, and
by Python itself where no package brings it.
"""

import json
import platform
import re
import sys
import uuid
from collections.abc import Iterator, Mapping
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any
from urllib.parse import quote

Component = dict[str, Any]

_NAME = "sluice-mcp"
_STATUS = Path("var/lib/dpkg/status")
_DOC = Path("usr/share/doc")
_COMMON = re.compile(r"/usr/share/common-licenses/([A-Za-z][\w.+-]*\w\+?)")
_GNU = re.compile(r"(A?GPL|LGPL|GFDL)-?v?(\d)(?:\.(\d))?(?:\.0)?(\+|-or-later|-only)?", re.IGNORECASE)
_IDS = {
    name.lower(): name
    for name in (
        *(
            "0BSD",
            "Apache-2.0",
            "Artistic-2.0",
            "BSD-1-Clause",
            "BSD-2-Clause",
            "BSD-3-Clause",
            "BSD-4-Clause",
        ),
        *(
            "BSD-4-Clause-UC",
            "BSL-1.0",
            "bzip2-1.0.6",
            "CC0-1.0",
            "curl",
            "GPL-1.0-or-later",
            "HPND",
            "ICU",
            "ISC",
        ),
        *(
            "MIT",
            "MPL-1.1",
            "MPL-2.0",
            "OpenSSL",
            "PSF-2.0",
            "Python-2.0",
            "TCL",
            "Unicode-DFS-2016",
            "X11",
            "Zlib",
        ),
    )
} | {"expat": "MIT", "psf-2": "PSF-2.0", "artistic-2": "Artistic-2.0"}


def bill(root: Path, wheel: Mapping[str, Any], environment: Mapping[str, Distribution]) -> dict[str, Any]:
    """Return the bill of an image whose files are below ``root``.

    ``wheel`` is the bill that comes with the service, ``environment`` the distributions by name that are installed.
    """
    components = {part["bom-ref"]: part for part in wheel["components"]}
    listed = {_plain(part["name"]) for part in components.values()} | {_plain(_NAME)}
    own = wheel["metadata"]["component"]
    for name, distribution in sorted(environment.items()):
        if name not in listed:
            _add(components, _of_python(distribution))
    for part in debian(root):
        _add(components, part)
    if not any(ref.startswith("pkg:deb/") and "/python3." in ref for ref in components):
        _add(components, _interpreter())
    _add(components, own)
    image = {
        "bom-ref": "image",
        "name": "sluice",
        "type": "container",
        "version": own["version"],
        "licenses": own["licenses"],
    }
    parts = [components[ref] for ref in sorted(components)]
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(parts, sort_keys=True))
    return {
        **{name: wheel[name] for name in ("$schema", "bomFormat", "specVersion")},
        "version": 1,
        "serialNumber": f"urn:uuid:{serial}",
        "metadata": {"component": image},
        "components": parts,
        "dependencies": [{"ref": "image", "dependsOn": sorted(components)}],
    }


def debian(root: Path) -> Iterator[Component]:
    """Yield the distribution and its installed packages; nothing where the image is of another kind."""
    status = root / _STATUS
    if not status.exists():
        return
    system = _fields(root / "etc" / "os-release", "=")
    name, release = system.get("ID", "debian"), system.get("VERSION_ID", "")
    yield {
        "bom-ref": f"{name}-{release}",
        "name": name,
        "version": release,
        "type": "operating-system",
        "licenses": [{"license": {"name": "see the packages"}}],
    }
    for package in _paragraphs(status.read_text(encoding="utf-8")):
        if package.get("Status", "").split()[-1:] != ["installed"]:
            continue
        version, architecture = package["Version"], package["Architecture"]
        purl = f"pkg:deb/{name}/{quote(package['Package'])}@{quote(version, safe=':~')}"
        purl += f"?arch={architecture}&distro={name}-{release}"
        yield {
            "bom-ref": purl,
            "purl": purl,
            "name": package["Package"],
            "version": version,
            "type": "library",
            "supplier": {"name": package.get("Maintainer", "unknown")},
            "licenses": _licences(root / _DOC / package["Package"] / "copyright"),
        }


def _licences(copyright_file: Path) -> list[Any]:
    """Return the licences that a package's file names: by their SPDX ids where they have one."""
    if not copyright_file.exists():
        return [{"license": {"name": "not said in the image"}}]
    text = copyright_file.read_text(encoding="utf-8", errors="replace")
    names = set()
    if text.lstrip().startswith("Format"):
        names = {paragraph.get("License", "").partition("\n")[0].strip() for paragraph in _paragraphs(text)}
    licences = {json.dumps(_licence(name), sort_keys=True) for name in names if name}
    if licences:
        return [{"license": json.loads(licence)} for licence in sorted(licences)]
    # Plain English: which of the texts that it points to hold for what, a reader must judge.
    texts = ", ".join(sorted(set(_COMMON.findall(text))))
    pointed = f" (it points to {texts})" if texts else ""
    return [{"license": {"name": f"see /{_DOC / copyright_file.parent.name}/copyright{pointed}"}}]


def _licence(name: str) -> dict[str, str]:
    """Return a licence by Debian's short name; several in one name, and those with exceptions, stay a name."""
    gnu = _GNU.fullmatch(name)
    if gnu is not None:
        family, major, minor, later = gnu.groups()
        ending = "or-later" if later in {"+", "-or-later"} else "only"
        return {"id": f"{family.upper()}-{major}.{minor or 0}-{ending}"}
    spdx = _IDS.get(name.lower())
    return {"name": name} if spdx is None else {"id": spdx}


def _paragraphs(text: str) -> Iterator[dict[str, str]]:
    """Yield the paragraphs of a file in the form of Debian's control files."""
    for block in re.split(r"\n[ \t]*\n", text):
        fields: dict[str, str] = {}
        last = ""
        for line in block.splitlines():
            if line[:1] in {" ", "\t"}:
                fields[last] = fields.get(last, "") + "\n" + line.strip()
            elif ":" in line:
                last, _, value = line.partition(":")
                fields[last] = value.strip()
        if fields:
            yield fields


def _fields(file: Path, separator: str) -> dict[str, str]:
    if not file.exists():
        return {}
    pairs = (line.partition(separator) for line in file.read_text(encoding="utf-8").splitlines())
    return {name: value.strip('"') for name, _, value in pairs}


def _of_python(distribution: Distribution) -> Component:
    about = distribution.metadata
    licence = about.get("License-Expression") or about.get("License") or ""
    classifiers = [
        line.rpartition(" :: ")[2] for line in about.get_all("Classifier", []) if "License" in line
    ]
    name = licence.splitlines()[0] if licence.strip() else ", ".join(classifiers) or "not said by the package"
    purl = f"pkg:pypi/{_plain(about['Name'])}@{quote(distribution.version, safe='')}"
    return {
        "bom-ref": purl,
        "purl": purl,
        "name": about["Name"],
        "version": distribution.version,
        "type": "library",
        "licenses": [{"license": _licence(name)}],
    }


def _interpreter() -> Component:
    purl = f"pkg:generic/python@{platform.python_version()}"
    return {
        "bom-ref": purl,
        "purl": purl,
        "name": "python",
        "version": platform.python_version(),
        "type": "platform",
        "licenses": [{"license": {"id": "PSF-2.0"}}],
    }


def _add(components: dict[str, Component], part: Component) -> None:
    components[part["bom-ref"]] = part


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main() -> None:
    """Print the bill of the file system that this runs in."""
    environment = {_plain(each.metadata["Name"]): each for each in distributions()}
    files = environment[_NAME].files or []
    (shipped,) = [file for file in files if str(file).endswith(f"/sboms/{_NAME}.cdx.json")]
    wheel = json.loads(Path(str(shipped.locate())).read_text(encoding="utf-8"))
    json.dump(bill(Path("/"), wheel, environment), sys.stdout, indent=1, sort_keys=True)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
