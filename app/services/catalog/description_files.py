"""Descriptions of tools that operators write as files, read again when a file changes."""

import logging
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final
from urllib.parse import unquote

from pydantic import ValidationError

from app.core import strictjson
from app.core.errors import ServiceError
from app.core.tools.disclosure import ToolDescription

MAX_FILES: Final = 10_000
MAX_FILE_BYTES: Final = 262_144
_SUFFIX: Final = ".json"

log = logging.getLogger("sluice.descriptions")

_Mark = tuple[int, int, int]


@dataclass(eq=False, slots=True)
class DescriptionFiles:
    """The folder with one ``<tool>.json`` per tool; names that are impossible for files are percent-encoded.

    A file that cannot be used is logged once, by name and reason. Its earlier content stays in use until the file is
    corrected or removed, so that a file that is just being written does not remove a description.
    """

    folder: Path
    descriptions: Mapping[str, ToolDescription] = field(default_factory=dict)
    _marks: dict[str, _Mark] = field(default_factory=dict)
    _missing: bool = False

    def scan(self) -> bool:
        """Scan the folder and read what is new in it; return whether ``descriptions`` changed. It blocks."""
        marks = self._look()
        if marks == self._marks:
            return False
        read = {_tool(name): name for name in marks}
        kept = {tool: description for tool, description in self.descriptions.items() if tool in read}
        for tool, name in sorted(read.items()):
            if marks[name] != self._marks.get(name):
                description = self._read(name)
                kept |= {} if description is None else {tool: description}
        changed = kept != self.descriptions
        self._marks, self.descriptions = marks, MappingProxyType(kept)
        return changed

    def _look(self) -> dict[str, _Mark]:
        marks: dict[str, _Mark] = {}
        try:
            with os.scandir(self.folder) as entries:
                for entry in entries:
                    named = entry.name.endswith(_SUFFIX) and not entry.name.startswith(".")
                    if named and _tool(entry.name).isprintable():
                        mark = _mark(entry)
                        marks |= {} if mark is None else {entry.name: mark}
        except OSError as error:
            if not self._missing:
                log.warning("the folder of tool descriptions cannot be read: %s", type(error).__name__)
            self._missing = True
            return self._marks  # an unstable mount must not remove the descriptions
        self._missing = False
        if len(marks) > MAX_FILES:
            log.warning(
                "the folder of tool descriptions has more than %s files; the rest is not read", MAX_FILES
            )
        return dict(sorted(marks.items())[:MAX_FILES])

    def _read(self, name: str) -> ToolDescription | None:
        try:
            with (self.folder / name).open("rb") as file:
                body = file.read(MAX_FILE_BYTES + 1)
            if len(body) <= MAX_FILE_BYTES:
                return ToolDescription.model_validate(strictjson.loads(body))
            reason = f"it is larger than {MAX_FILE_BYTES} bytes"
        except OSError as error:
            reason = f"it cannot be read ({type(error).__name__})"
        except ServiceError as error:
            reason = f"{error.message} (position {error.details.get('position', 0)})"
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            reason = f"/{'/'.join(str(step) for step in first['loc'])}: {first['msg']}"
        log.warning("the tool description %s is not used: %s", name, reason)
        return None


def _mark(entry: "os.DirEntry[str]") -> _Mark | None:
    """Return values that change with the file; None unless it is a regular file or a link to one."""
    try:
        status = entry.stat()
    except OSError:
        return None
    return (status.st_mtime_ns, status.st_size, status.st_ino) if stat.S_ISREG(status.st_mode) else None


def _tool(name: str) -> str:
    return unquote(name.removesuffix(_SUFFIX))
