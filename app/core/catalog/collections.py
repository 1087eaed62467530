"""Collections of documents: what they are called, who may read them, and what is said of a document."""

import hashlib
import json
import re
from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from app.core.access import Caller, Role

EVERYBODY: Final = "*"
MAX_COLLECTIONS: Final = 500
MAX_READERS: Final = 200
_KEY = re.compile(r"key:[0-9a-z][0-9a-z_-]{0,63}")
_ROLES = frozenset(f"role:{role}" for role in Role)

CollectionName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_.-]{0,62}$")]
"""Of a collection or a source; it stands in addresses, arguments and records."""


def _principal(text: str) -> str:
    if text == EVERYBODY or _KEY.fullmatch(text) or text in _ROLES:
        return text
    known = ", ".join(sorted(_ROLES))
    raise ValueError(f"a reader is *, key:<id of an API key> or one of {known}")


Principal = Annotated[str, AfterValidator(_principal)]
"""Who may read: ``*`` (everybody of the tenant), ``key:0123abcd`` or ``role:invoker``."""

Line = Annotated[str, StringConstraints(max_length=500, pattern=r"^[^\x00-\x1f\x7f]*$")]


class CollectionDefinition(BaseModel):
    """What an operator says of a collection."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: CollectionName
    description: Line = ""
    access: tuple[Principal, ...] = Field(
        default=(EVERYBODY,),
        max_length=MAX_READERS,
        description="Who may read: `*` (everybody of the tenant), `key:<id>`, `role:<role>`. Empty: nobody.",
    )


class DocumentDetails(BaseModel):
    """What is said of a document besides its content."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: CollectionName = Field(default="documents", description="Where it comes from, such as email.")
    external_id: Annotated[
        str, StringConstraints(min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f]+$")
    ] = Field(description="Its name there: the same name again replaces the document.")
    title: Line | None = Field(default=None, description="Default: what the document calls itself.")
    uri: Annotated[str, StringConstraints(max_length=2000, pattern=r"^[^\x00-\x20\x7f]*$")] | None = None
    date: Annotated[str, StringConstraints(max_length=40, pattern=r"^[^\x00-\x1f\x7f()]*$")] | None = Field(
        default=None, description="ISO 8601, which is shown as Oct 1, 2025; anything else is shown as it is."
    )
    access: tuple[Principal, ...] = Field(
        default=(),
        max_length=MAX_READERS,
        description="Who may read, of those who may read the collection. Empty: all of them.",
    )

    def digest(self, body: bytes, media_type: str, rules: str) -> bytes:
        """Return what stays the same as long as neither content nor details nor the ``rules`` of reading change."""
        said = json.dumps([self.model_dump(mode="json"), media_type, rules], sort_keys=True)
        return hashlib.sha256(said.encode("utf-8", "surrogatepass") + b"\0" + body).digest()


def principals_of(caller: Caller) -> frozenset[str]:
    """Return what access lists may call a caller."""
    return frozenset({EVERYBODY, f"key:{caller.key_id}", *(f"role:{role}" for role in caller.roles)})
