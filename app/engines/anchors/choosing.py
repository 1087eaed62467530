"""The anchors that settings name by addresses."""

from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from app.core.contracts.anchors import Anchor
from app.core.transparency.notes import NoteError, VerifierKey
from app.engines.anchors.file import FileAnchor
from app.engines.anchors.syslog import SyslogAnchor
from app.engines.anchors.witness import WitnessAnchor

_SYSLOG = {"syslog+tls": (True, 6514), "syslog+tcp": (False, 601)}
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def anchor_of(address: str) -> Anchor:
    """Return the anchor at an address; raise ValueError, which says what an address looks like.

    ``file:///folder/checkpoints.jsonl``, ``s3://bucket/folder`` (needs the extra ``s3``, else ModuleNotFoundError),
    ``syslog+tls://host:6514?ca=/folder/ca.pem``, ``syslog+tcp://host:601``, or a witness's ``https://host/path#KEY``
    with its public key.
    """
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise ValueError(f"{_shown(address)} is no address") from None
    if parts.scheme == "file" and not host and len(parts.path) > 1:
        return FileAnchor(Path(unquote(parts.path)))
    if parts.scheme == "s3" and host:
        from app.engines.anchors.bucket import BucketAnchor  # noqa: PLC0415 - needs an extra

        return BucketAnchor(address)
    if parts.scheme in _SYSLOG and host:
        tls, usual = _SYSLOG[parts.scheme]
        authority = parse_qs(parts.query).get("ca", [""])[0]
        return SyslogAnchor(host, port or usual, tls, Path(authority) if authority else None)
    if parts.scheme == "https" or (parts.scheme == "http" and host in _LOOPBACK):
        try:
            return WitnessAnchor(address.partition("#")[0], VerifierKey.parse(parts.fragment))
        except NoteError as error:
            raise ValueError(f"{_shown(address)} needs the witness's public key behind #: {error}") from None
    raise ValueError(
        f"{_shown(address)} is no anchor: file:///folder/checkpoints.jsonl, s3://bucket/folder, "
        "syslog+tls://host:6514 or https://witness.example/#KEY"
    )


def _shown(address: str) -> str:
    """Return what may be shown of an address: no user, no password, no query."""
    return address.partition("://")[0][:16] + "://…"
