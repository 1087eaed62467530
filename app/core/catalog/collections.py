"""Collections of documents: their names, their readers, and the details of a document."""

import hashlib
import json
import re
from typing import Annotated, Any, Final, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from app.core.access import Caller, Role
from app.core.errors import InvalidArgumentsError

T = TypeVar("T", bound=BaseModel)

EVERYBODY: Final = "*"
MAX_COLLECTIONS: Final = 500
MAX_READERS: Final = 200
_KEY_PRINCIPAL = re.compile(r"key:[0-9a-z][0-9a-z_-]{0,63}")
_ROLE_PRINCIPALS = frozenset(f"role:{role}" for role in Role)

CollectionName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_.-]{0,62}$")]
"""Name of a collection or a source, as used in URLs, arguments and records."""


def _check_principal(text: str) -> str:
    if text == EVERYBODY or _KEY_PRINCIPAL.fullmatch(text) or text in _ROLE_PRINCIPALS:
        return text
    roles = ", ".join(sorted(_ROLE_PRINCIPALS))
    raise ValueError(f"a reader must be *, key:<id of an API key> or one of {roles}")


Principal = Annotated[str, AfterValidator(_check_principal)]
"""One reader: ``*`` (everybody of the tenant), ``key:0123abcd`` or ``role:invoker``."""

Line = Annotated[str, StringConstraints(max_length=500, pattern=r"^[^\x00-\x1f\x7f]*$")]


class CollectionDefinition(BaseModel):
    """A collection as an operator defines it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: CollectionName
    description: Line = ""
    access: tuple[Principal, ...] = Field(
        default=(EVERYBODY,),
        max_length=MAX_READERS,
        description="Who may read: `*` (everybody of the tenant), `key:<id>`, `role:<role>`. Empty: nobody.",
    )


class DocumentDetails(BaseModel):
    """The details of a document besides its content."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: CollectionName = Field(
        default="documents", description="Where the document comes from, such as email."
    )
    external_id: Annotated[
        str, StringConstraints(min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f]+$")
    ] = Field(description="Name of the document in its source; ingesting the same name again replaces it.")
    title: Line | None = Field(default=None, description="Default: the title in the document itself.")
    uri: Annotated[str, StringConstraints(max_length=2000, pattern=r"^[^\x00-\x20\x7f]*$")] | None = None
    date: Annotated[str, StringConstraints(max_length=40, pattern=r"^[^\x00-\x1f\x7f()]*$")] | None = Field(
        default=None,
        description="Date of the document. ISO 8601 is shown as Oct 1, 2025, any other text unchanged.",
    )
    access: tuple[Principal, ...] = Field(
        default=(),
        max_length=MAX_READERS,
        description="Who among the collection's readers may read the document. Empty: all of them.",
    )

    def digest(self, body: bytes, media_type: str, rules: str) -> bytes:
        """Return a SHA-256 digest that changes with the content, the details or the ``rules`` of reading."""
        identity = json.dumps([self.model_dump(mode="json"), media_type, rules], sort_keys=True)
        return hashlib.sha256(identity.encode("utf-8", "surrogatepass") + b"\0" + body).digest()


def principals_of(caller: Caller) -> frozenset[str]:
    """Return every principal in access lists that includes ``caller``."""
    return frozenset({EVERYBODY, f"key:{caller.key_id}", *(f"role:{role}" for role in caller.roles)})


def validated(kind: type[T], value: Any) -> T:
    """Return ``value`` as ``kind``, or raise InvalidArgumentsError with a pointer to the fault."""
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False, include_context=False)[0]
        pointer = "".join(f"/{step}" for step in fault["loc"])
        message = fault["msg"].removeprefix("Value error, ")
        raise InvalidArgumentsError(
            f"{message[0].upper()}{message[1:]}.", details={"pointer": pointer}
        ) from None
