"""The container image: built without an engine or a registry, started as it is, redacting in production mode."""

import base64
import json
import os
import re
import secrets
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import psutil
import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

from tests.artefacts import ROOT
from tests.e2e.running import await_ready

pytestmark = [pytest.mark.outside, pytest.mark.needs("buildah", "mmdebstrap")]

START_S = 300
GIVEN = "SLUICE_TEST_IMAGE_STORAGE"
"""Names a folder that keeps base and image between runs."""
INSIDE = """
import json, os, pathlib, sys
import app
from importlib.metadata import files
shipped = [one for one in files("sluice-mcp") if ".dist-info/" in str(one)]
bills = [str(one.locate()) for one in shipped if "/sboms/" in str(one)]
licences = [str(one).partition("/licenses/")[2] for one in shipped if "/licenses/" in str(one)]
print(json.dumps({
    "user": os.geteuid(), "bills": bills, "licences": licences, "package": app.__file__,
    "writable": os.access(pathlib.Path(app.__file__).parent, os.W_OK),
}))
"""


class Image:
    """The image in a storage of its own, and commands in a container of it."""

    def __init__(self, storage: Path) -> None:
        self._command = ["buildah", "--root", str(storage / "root"), "--runroot", str(storage / "run")]
        self._command += ["--storage-driver", "vfs"]
        self.container = ""

    def buildah(self, *arguments: str) -> str:
        done = subprocess.run(
            [*self._command, *arguments], capture_output=True, text=True, timeout=START_S, check=False
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    def inside(self, *arguments: str, **settings: str) -> list[str]:
        """Return the command that runs ``arguments`` in the container, as its user."""
        variables = [option for item in settings.items() for option in ("--env", "=".join(item))]
        run = ["run", "--isolation", "chroot", "--user", "sluice", *variables, self.container, "--"]
        return [*self._command, *run, *arguments]

    def answer(self, *arguments: str, **settings: str) -> str:
        return self.buildah(*self.inside(*arguments, **settings)[len(self._command) :])


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    storage = Path(os.environ.get(GIVEN) or tmp_path_factory.mktemp("image"))
    built = subprocess.run(
        [str(ROOT / "deploy" / "image.sh"), str(storage)],
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert built.returncode == 0, built.stdout[-2000:] + built.stderr[-3000:]
    image = Image(storage)
    image.container = image.buildah("from", "localhost/sluice").strip()
    yield image
    image.buildah("rm", image.container)
    if GIVEN not in os.environ:
        image.buildah("rmi", "--all", "--force")


@contextmanager
def serving(image: Image, port: int, settings: dict[str, str], log: Path) -> Iterator[None]:
    with log.open("w") as told:
        process = subprocess.Popen(
            image.inside("sluice", "serve", **settings), stdout=told, stderr=subprocess.STDOUT
        )
    try:
        await_ready(f"http://127.0.0.1:{port}", START_S)
        yield
    finally:
        # What runs in a chroot is our descendant: it is told to end, and buildah ends with it.
        below = psutil.Process(process.pid).children(recursive=True)
        for child in below:
            if "serve" in child.cmdline() and child.name() == "sluice":
                child.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=60)
        finally:
            for child in psutil.wait_procs(below, timeout=10)[1]:
                child.kill()
            process.kill()
            process.wait()


def test_the_image_redacts_in_production_mode(image: Image, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = {
        "SLUICE_KEYS__RING": f"1:{base64.b64encode(secrets.token_bytes(32)).decode()}",
        "SLUICE_DATABASE__URL": "sqlite:////var/lib/sluice/sluice.db",
        "SLUICE_HTTP__HOST": "127.0.0.1",  # a chroot has the network of the host
        "SLUICE_HTTP__PORT": str(port),
    }
    image.answer("sluice", "db", "upgrade", **settings)
    made = image.answer("sluice", "keys", "create", "--role", "invoker", **settings)
    (key,) = re.findall(r"slc_[\w-]+", made)
    with serving(image, port, settings, tmp_path / "log"):
        answer = httpx2.post(
            f"http://127.0.0.1:{port}/api/v1/middleware/pii_redaction/invoke",
            json={"context": [{"type": "text", "text": "My name is John Doe"}]},
            headers={"Authorization": f"Bearer {key}"},
            timeout=60,
            trust_env=False,
        )
    assert answer.status_code == 200, answer.text
    assert answer.json()["content"] == [{"type": "text", "text": "My name is [PERSON_1]"}]
    assert "John" not in (tmp_path / "log").read_text()


def test_the_image_holds_its_bill_and_runs_as_nobody_who_may_change_it(image: Image) -> None:
    inside = json.loads(image.answer("python", "-c", INSIDE))
    assert inside["user"] == 10001
    assert inside["package"].startswith("/opt/sluice/.venv/")
    assert not inside["writable"]
    assert set(inside["licences"]) == {"LICENSE", "docs/licences.md"}
    (bill,) = inside["bills"]
    packages = {one["name"] for one in json.loads(image.answer("cat", bill))["components"]}
    frozen = json.loads(image.answer("python", "-m", "pip", "list", "--format", "json"))
    named = {one["name"].lower().replace("_", "-").replace(".", "-") for one in frozen}
    assert named - {"pip", "sluice-mcp"} <= {name.lower().replace(".", "-") for name in packages}
    configured = json.loads(image.buildah("inspect", "--type", "image", "localhost/sluice"))["Docker"][
        "config"
    ]
    assert (configured["User"], configured["Cmd"]) == ("sluice", ["sluice", "serve"])
    assert configured["Healthcheck"]
    assert not [value for value in configured["Env"] if value.startswith(("PIP_", "HTTP"))]


def test_the_image_names_every_package_of_its_distribution_with_its_licences(image: Image) -> None:
    complete = image.answer("cat", "/opt/sluice/image.cdx.json")
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(complete) is None
    parts = {part["bom-ref"]: part for part in json.loads(complete)["components"]}
    installed = image.answer("dpkg-query", "-W", "-f", "${Package} ${Version} ${Architecture} ${Status}\n")
    debian = [line.split() for line in installed.splitlines() if line.endswith(" installed")]
    purls = {ref: PackageURL.from_string(ref) for ref in parts if ref.startswith("pkg:deb/debian/")}
    assert len(debian) > 80
    assert {(purl.name, purl.version, purl.qualifiers["arch"]) for purl in purls.values()} == {
        (name, version, architecture) for name, version, architecture, *_ in debian
    }
    assert all(parts[ref]["licenses"] for ref in parts)
    unsaid = [ref for ref in purls if "not said" in json.dumps(parts[ref]["licenses"])]
    assert not unsaid
    (libc,) = [parts[ref] for ref, purl in purls.items() if purl.name == "libc6"]
    assert "LGPL-2.1" in json.dumps(libc["licenses"])
    (zlib,) = [parts[ref] for ref, purl in purls.items() if purl.name == "zlib1g"]
    assert {"license": {"id": "Zlib"}} in zlib["licenses"]
    python_packages = {each["name"].lower() for ref, each in parts.items() if ref.startswith("pkg:pypi/")}
    assert {"pip", "sluice-mcp"} <= python_packages
