"""A witness over HTTP (C2SP tlog-witness): it checks that the log only grew, and cosigns the checkpoint."""

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import httpx2

from app.core.contracts.anchors import AnchorError, KeepsAnotherError, Submission
from app.core.transparency.notes import COSIGNATURE, Checkpoint, Note, NoteError, Signature, VerifierKey
from app.engines.signing import checker

_TIME_LIMIT_S: Final = 10
_MOST_BYTES: Final = 64 * 1024
_OK: Final = 200
_CONFLICT: Final = 409
_REFUSALS: Final = {
    403: "It knows another key of this log: give it the one that sluice audit key shows.",
    404: "It does not know this log: give it the key that sluice audit key shows.",
    422: "It says that the log does not continue what it cosigned.",
}


@dataclass(frozen=True, slots=True)
class WitnessAnchor:
    """Submits to a witness; ``key`` checks its cosignatures."""

    url: str
    key: VerifierKey

    def __post_init__(self) -> None:
        """Refuse a key that makes no cosignatures."""
        if self.key.kind != COSIGNATURE:
            raise NoteError("The key of a witness is one for cosignatures of Ed25519 (type 4).")

    @property
    def name(self) -> str:
        """Return the name of the witness's key."""
        return f"witness {self.key.name}"

    async def newest(self) -> Checkpoint | None:
        """Return None: it says its size when another one is continued."""
        return None

    async def keep(self, submission: Submission) -> Sequence[Signature]:
        """Submit a checkpoint; return the cosignature of the witness's key."""
        proof = "".join(f"{base64.b64encode(part).decode()}\n" for part in submission.proof)
        body = f"old {submission.since}\n{proof}\n{submission.note}".encode()
        try:
            async with (
                httpx2.AsyncClient(timeout=_TIME_LIMIT_S) as http,
                http.stream("POST", f"{self.url.rstrip('/')}/add-checkpoint", content=body) as answer,
            ):
                text = await _text_of(answer)
        except httpx2.HTTPError as error:
            raise AnchorError(f"The witness does not answer: {type(error).__name__}.") from None
        if answer.status_code == _CONFLICT and re.fullmatch(r"(0|[1-9][0-9]{0,17})\n", text):
            raise KeepsAnotherError(int(text))
        if answer.status_code != _OK:
            hint = _REFUSALS.get(answer.status_code, "")
            raise AnchorError(f"The witness answers {answer.status_code}. {hint}".rstrip())
        return self._cosignatures(submission.note, text)

    def _cosignatures(self, note: Note, lines: str) -> Sequence[Signature]:
        try:
            cosigned = Note.parse(f"{note.text}\n{lines}")
        except NoteError as error:
            raise AnchorError(f"The witness answers with no cosignature: {error}") from None
        if cosigned.cosigned_at(self.key, checker(self.key)) is None:
            raise AnchorError("The witness's answer is not signed by the key that it is known by.")
        return cosigned.of(self.key)


async def _text_of(answer: httpx2.Response) -> str:
    content = b""
    async for chunk in answer.aiter_bytes():
        content += chunk
        if len(content) > _MOST_BYTES:
            raise AnchorError("The witness answers with more than a cosignature.")
    return content.decode("utf-8", "replace")
