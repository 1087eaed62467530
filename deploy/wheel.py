"""Put into the wheel what stands outside the package: the migrations, and the bill of materials."""

from pathlib import Path

from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parents[1]
BILL = "deploy/sluice-mcp.cdx.json"


class BuildWithMigrations(build_py):
    """Copies ``migrations`` and ``alembic.ini`` beside the modules of ``app``; an editable install has them at hand."""

    def run(self) -> None:
        """Build the package, then add the migrations."""
        super().run()
        if not self.editable_mode:
            for source, target in self._migrations():
                self.mkpath(str(Path(target).parent))
                self.copy_file(source, target, preserve_mode=False)

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        """Return the paths of all files that the wheel gets."""
        return super().get_outputs(include_bytecode) + [target for _, target in self._migrations()]

    def get_source_files(self) -> list[str]:
        """Return what a source distribution needs to build the wheel."""
        return [
            *super().get_source_files(),
            "deploy/wheel.py",
            BILL,
            *(source for source, _ in self._migrations()),
        ]

    def _migrations(self) -> list[tuple[str, str]]:
        """Return the files as (path in the checkout, path in the build)."""
        files = [ROOT / "alembic.ini", *sorted((ROOT / "migrations").rglob("*.py"))]
        names = [str(file.relative_to(ROOT)) for file in files]
        return [(name, str(Path(self.build_lib, "app", name))) for name in names]


class WheelWithBill(bdist_wheel):
    """Puts the bill of materials where PEP 770 says that tools look for it."""

    def write_wheelfile(self, wheelfile_base: str, *arguments: str) -> None:
        """Write the file ``WHEEL`` of ``dist-info``, and beside it the bill."""
        super().write_wheelfile(wheelfile_base, *arguments)
        folder = Path(wheelfile_base, "sboms")
        folder.mkdir()
        self.copy_file(str(ROOT / BILL), str(folder / Path(BILL).name), preserve_mode=False)
