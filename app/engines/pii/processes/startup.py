"""The options that a detection process receives before it loads anything."""

from dataclasses import asdict, dataclass, fields
from functools import cached_property
from hashlib import blake2b
from typing import Any, Literal

Matcher = Literal["auto", "hyperscan", "re2", "plain"]


@dataclass(frozen=True)
class Startup:
    """The options of all processes of a pool, sent through a pipe, never as arguments or in the environment.

    ``matcher`` selects the engine that runs the patterns. ``recognizers`` is the text of a user's file of recognizers,
    see `read_definitions`. `marshal` must be able to write all values.
    """

    matcher: Matcher = "auto"
    recognizers: str = ""

    @cached_property
    def version(self) -> bytes:
        """Return a digest of all options; findings of another version are no longer valid."""
        return blake2b(repr(self.raw()).encode("utf-8", "surrogatepass"), digest_size=16).digest()

    def raw(self) -> dict[str, Any]:
        """Return the options as values that fit in a frame."""
        return asdict(self)

    @classmethod
    def from_raw(cls, raw: dict[str, Any]) -> "Startup":
        """Return the options that `raw` wrote."""
        return cls(**{field.name: raw[field.name] for field in fields(cls)})
