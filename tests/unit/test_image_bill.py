"""The bill of an image, from a recorded status of dpkg and files of Debian 12: every package, version and licence."""

import json
import runpy
from importlib.metadata import Distribution
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

DEPLOY = Path(__file__).parents[2] / "deploy"
STATUS = """\
Package: base-files
Essential: yes
Status: install ok installed
Priority: required
Maintainer: Santiago Vila <sanvila@debian.org>
Architecture: amd64
Version: 12.4+deb12u11
Description: Debian base system miscellaneous files
 This package contains the basic filesystem hierarchy of a Debian system.
 .
 Status: of a description, not of the package

Package: libstdc++6
Status: install ok installed
Maintainer: Debian GCC Maintainers <debian-gcc@lists.debian.org>
Architecture: amd64
Source: gcc-12
Version: 12.2.0-14+deb12u1

Package: login
Status: hold ok installed
Maintainer: Shadow package maintainers <pkg-shadow-devel@alioth-lists.debian.net>
Architecture: amd64
Version: 1:4.13+dfsg1-1+b1

Package: removed
Status: deinstall ok config-files
Maintainer: Nobody <nobody@debian.org>
Architecture: all
Version: 1.0

Package: unsaid
Status: install ok installed
Maintainer: Nobody <nobody@debian.org>
Architecture: all
Version: 2.0~rc1-1
"""
COPYRIGHTS = {
    "base-files": "This is the Debian prepackaged version of the Debian Base System.\n\n"
    "You may find the licence in /usr/share/common-licenses/GPL and /usr/share/common-licenses/Apache-2.0.\n",
    "libstdc++6": "The libraries come without a pointer to a licence.\n",
    "login": """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Source: https://github.com/shadow-maint/shadow

Files: *
Copyright: 1989-1994, Julianne Frances Haugh
License: BSD-3-clause

Files: man/*
Copyright: 2007-2009, Nicolas François
License: GPL-2+

Files: man/hu/*
Copyright: nobody
License: GPL-1 or Artistic

License: GPL-2+
 On Debian systems, the complete text is in /usr/share/common-licenses/GPL-2.
 .
 It has more than one paragraph.

License: BSD-3-clause
 Redistribution and use in source and binary forms are permitted.
""",
}
WHEEL = json.loads((DEPLOY / "sluice-mcp.cdx.json").read_text(encoding="utf-8"))
BILL = runpy.run_path(str(DEPLOY / "image_bill.py"))["bill"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "var/lib/dpkg").mkdir(parents=True)
    (tmp_path / "var/lib/dpkg/status").write_text(STATUS, encoding="utf-8")
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/os-release").write_text('PRETTY_NAME="Debian"\nID=debian\nVERSION_ID="12"\n')
    for name, text in COPYRIGHTS.items():
        folder = tmp_path / "usr/share/doc" / name
        folder.mkdir(parents=True)
        (folder / "copyright").write_text(text, encoding="utf-8")
    return tmp_path


def parts(bill: Any) -> dict[str, Any]:
    return {part["bom-ref"]: part for part in bill["components"]}


def test_every_installed_package_is_named_with_version_and_licences(root: Path) -> None:
    bill = BILL(root, WHEEL, {})
    packages = {PackageURL.from_string(ref): part for ref, part in parts(bill).items() if "pkg:deb/" in ref}
    assert all(purl.to_string() == part["purl"] for purl, part in packages.items())
    named = {
        purl.name: (purl.version, part["version"], purl.qualifiers["arch"]) for purl, part in packages.items()
    }
    assert named == {
        "base-files": ("12.4+deb12u11", "12.4+deb12u11", "amd64"),
        "libstdc++6": ("12.2.0-14+deb12u1", "12.2.0-14+deb12u1", "amd64"),
        "login": ("1:4.13+dfsg1-1+b1", "1:4.13+dfsg1-1+b1", "amd64"),
        "unsaid": ("2.0~rc1-1", "2.0~rc1-1", "all"),
    }
    licences = {
        purl.name: [licence["license"] for licence in part["licenses"]] for purl, part in packages.items()
    }
    assert licences == {
        "base-files": [{"name": "see /usr/share/doc/base-files/copyright (it points to Apache-2.0, GPL)"}],
        "libstdc++6": [{"name": "see /usr/share/doc/libstdc++6/copyright"}],
        "login": [{"id": "BSD-3-Clause"}, {"id": "GPL-2.0-or-later"}, {"name": "GPL-1 or Artistic"}],
        "unsaid": [{"name": "not said in the image"}],
    }
    (system,) = [part for part in bill["components"] if part["type"] == "operating-system"]
    assert (system["name"], system["version"]) == ("debian", "12")


def test_it_holds_the_wheels_bill_and_what_else_is_installed_and_is_valid(root: Path) -> None:
    environment = {"pip": Distribution.from_name("pip"), "pydantic": Distribution.from_name("pydantic")}
    bill = BILL(root, WHEEL, environment)
    listed = parts(bill)
    assert (
        parts(WHEEL).keys() | {"pkg:pypi/sluice-mcp@" + WHEEL["metadata"]["component"]["version"]}
        <= listed.keys()
    )
    pip = f"pkg:pypi/pip@{environment['pip'].version}"
    assert listed[pip]["licenses"] == [{"license": {"id": "MIT"}}]
    assert sum(ref.startswith("pkg:pypi/pydantic@") for ref in listed) == 1
    # Of Debian 12 no package brings this Python, so it is named for itself.
    assert sum(ref.startswith("pkg:generic/python@3.") for ref in listed) == 1
    (root / "var/lib/dpkg/status").write_text(STATUS.replace("Package: login", "Package: python3.11"))
    assert not any(ref.startswith("pkg:generic/") for ref in parts(BILL(root, WHEEL, {})))
    assert bill["dependencies"] == [{"ref": "image", "dependsOn": sorted(listed)}]
    text = json.dumps(bill)
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    assert (
        JsonStrictValidator(SchemaVersion.V1_6).validate_str(text.replace("GPL-2.0-or-later", "GPL-2+"))
        is not None
    )
    assert BILL(root, WHEEL, environment) == BILL(root, WHEEL, environment)


def test_an_image_without_dpkg_has_the_rest(tmp_path: Path) -> None:
    listed = parts(BILL(tmp_path, WHEEL, {}))
    assert parts(WHEEL).keys() < listed.keys()
    assert not any(ref.startswith("pkg:deb/") for ref in listed)
