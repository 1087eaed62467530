"""The state that a server gives a client to send back: sealed, as it may hold what the client must not read."""

import hashlib
import json
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from app.core.access import Caller
from app.core.errors import InvalidArgumentsError, TooLargeError
from app.core.strictjson import dumps
from app.engines.cipher import RecordKeys, SealBrokenError

_STATE: Final = "requestState"
_SEALED: Final = "dev.sluice/sealed."
MAX_STATE_BYTES: Final = 256 * 1024
"""The longest state that a server may give: it travels twice with each step of a request."""

_MAX_SEALED: Final = 2 * MAX_STATE_BYTES


@dataclass(frozen=True, slots=True)
class RequestStates:
    """Seals a state for one caller, server and request with its arguments, and opens it only for the same ones."""

    keys: RecordKeys

    def sealed(
        self, caller: Caller, about: tuple[str, ...], params: Mapping[str, Any], result: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the result of ``params`` with its state, if it has one, sealed so that only this service reads it."""
        state = result.get(_STATE)
        if not isinstance(state, str):
            return dict(result)
        name, data = _name(caller, about, params), state.encode("utf-8", "surrogatepass")
        if len(data) > MAX_STATE_BYTES:
            raise TooLargeError(
                f"The server gave a requestState of more than {MAX_STATE_BYTES} bytes.",
                details={"limit": "request_state", "maximum": MAX_STATE_BYTES},
            )
        sealed = urlsafe_b64encode(self.keys.seal(caller.tenant, name, data)).decode()
        return {**result, _STATE: _SEALED + sealed}

    def opened(self, caller: Caller, about: tuple[str, ...], params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the params with the server's own state; a state that was never sealed stays as it is."""
        if not _is_sealed(params):
            return dict(params)
        data = self._data(caller, about, params)
        if data is None:
            raise InvalidArgumentsError(
                "This requestState was not issued for this request; send the request again without it.",
                details={"pointer": f"/{_STATE}"},
            )
        return {**params, _STATE: data.decode("utf-8", "surrogatepass")}

    def continues(self, caller: Caller, about: tuple[str, ...], params: Mapping[str, Any]) -> bool:
        """Return whether ``params`` continue a request that was forwarded before, with the same arguments."""
        return _is_sealed(params) and self._data(caller, about, params) is not None

    def _data(self, caller: Caller, about: tuple[str, ...], params: Mapping[str, Any]) -> bytes | None:
        sealed = _decoded(params[_STATE].removeprefix(_SEALED))
        if sealed is None:
            return None
        try:
            return self.keys.open(caller.tenant, _name(caller, about, params), sealed)
        except SealBrokenError:
            return None


def _decoded(state: str) -> bytes | None:
    """Return the bytes of a sealed state, or None for any spelling that we never issued.

    Decoders skip foreign characters, bits behind the last byte and whatever follows the padding, so that one state
    would have many spellings: the bytes must encode to the very same text again.
    """
    if len(state) > _MAX_SEALED or not state.isascii():
        return None
    try:
        sealed = b64decode(state, altchars=b"-_", validate=True)
    except ValueError:
        return None
    return sealed if urlsafe_b64encode(sealed).decode() == state else None


def _is_sealed(params: Mapping[str, Any]) -> bool:
    state = params.get(_STATE)
    return isinstance(state, str) and state.startswith(_SEALED)


def _name(caller: Caller, about: tuple[str, ...], params: Mapping[str, Any]) -> bytes:
    arguments = json.dumps(params.get("arguments") or {}, sort_keys=True).encode()
    return b"request-state:" + dumps([caller.key_id, *about, hashlib.sha256(arguments).hexdigest()])
