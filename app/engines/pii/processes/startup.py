"""What a detection process is told before it loads anything."""

from dataclasses import asdict, dataclass, fields
from functools import cached_property
from hashlib import blake2b
from typing import Any, Literal

Matcher = Literal["auto", "hyperscan", "re2", "plain"]


@dataclass(frozen=True)
class Startup:
    """The options of all processes of a pool; they travel through a pipe, never as arguments or in the environment.

    ``matcher`` runs the patterns. ``recognizers`` are a user's, as the text of a file, see `user_recognizers`.
    All values are such as `marshal` can write.
    """

    matcher: Matcher = "auto"
    recognizers: str = ""

    @cached_property
    def version(self) -> bytes:
        """Return a digest of all options: what was found under another version counts no more."""
        return blake2b(repr(self.raw()).encode("utf-8", "surrogatepass"), digest_size=16).digest()

    def raw(self) -> dict[str, Any]:
        """Return the options as a frame can hold them."""
        return asdict(self)

    @classmethod
    def given(cls, raw: dict[str, Any]) -> "Startup":
        """Return the options that `raw` wrote."""
        return cls(**{field.name: raw[field.name] for field in fields(cls)})
