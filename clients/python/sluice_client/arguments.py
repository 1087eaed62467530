"""The arguments of redaction and restoration, as the service takes them."""

import os
import ssl
from typing import Literal, TypedDict

Mode = Literal["handle", "mask", "hash", "remove", "block", "report"]

DEFAULT_URL = "http://127.0.0.1:8000"
URL_VARIABLE = "SLUICE_URL"
KEY_VARIABLE = "SLUICE_API_KEY"


class RedactArguments(TypedDict, total=False):
    """The arguments of ``pii_redaction``; what each means stands in its schema (``list_middleware``)."""

    scope: str | None
    aggressiveness: Literal["standard", "strict"]
    entities: list[str] | None
    exclude: list[str]
    allow_list: list[str]
    deny_list: list[str]
    language: str
    names: Literal["fast", "accurate"]
    numbers: Literal["string", "report", "block"]
    member_names: Literal["report", "change"]
    mode: Mode | dict[str, Mode]
    handles_in_input: Literal["keep", "escape"]
    strict: bool
    uris: Literal["report", "change"]
    unscanned: Literal["report", "block"]
    canonical: bool
    tagged: bool
    ttl_s: int | None
    returnMapping: bool


class RestoreArguments(TypedDict, total=False):
    """The arguments of ``pii_restoration`` beside ``scope``; what each means stands in its schema."""

    redactions: dict[str, str] | None
    exact: bool
    positions: Literal["safe", "all"]
    strict: bool
    tools: list[str]


def address(url: str | None) -> str:
    """Return the address of the service: ``url``, else the environment's, else the one of a local service."""
    return (url or os.environ.get(URL_VARIABLE) or DEFAULT_URL).rstrip("/")


def credential(key: str | None) -> str | None:
    """Return the API key: ``key``, else the environment's; an empty one is none."""
    return (os.environ.get(KEY_VARIABLE) if key is None else key) or None


def trust(verify: bool | str | ssl.SSLContext) -> ssl.SSLContext | None:
    """Return what certificates are checked with: a context, a file of authorities, or none at all for False.

    None means the authorities that the HTTP library trusts.
    """
    if isinstance(verify, ssl.SSLContext):
        return verify
    if isinstance(verify, str):
        return ssl.create_default_context(cafile=verify)
    if verify:
        return None
    unchecked = ssl.create_default_context()
    unchecked.check_hostname = False
    unchecked.verify_mode = ssl.CERT_NONE
    return unchecked
