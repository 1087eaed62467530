"""The state that a server gives a client to send back: sealed where it may hold what the client must not read."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from app.core.access import Caller
from app.core.errors import InvalidArgumentsError
from app.core.strictjson import dumps
from app.engines.cipher import RecordKeys, SealBrokenError

_STATE: Final = "requestState"
_SEALED: Final = "dev.sluice/sealed."


@dataclass(frozen=True, slots=True)
class RequestStates:
    """Seals a state for one caller, server and request, and opens it for these only."""

    keys: RecordKeys

    def sealed(self, caller: Caller, about: tuple[str, ...], result: Mapping[str, Any]) -> dict[str, Any]:
        """Return a result whose state, if it has one, nobody but this service can read."""
        state = result.get(_STATE)
        if not isinstance(state, str):
            return dict(result)
        name, data = _name(caller, about), state.encode("utf-8", "surrogatepass")
        sealed = urlsafe_b64encode(self.keys.seal(caller.tenant, name, data)).decode()
        return {**result, _STATE: _SEALED + sealed}

    def opened(self, caller: Caller, about: tuple[str, ...], params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the params with the state as the server gave it; one that was never sealed stays as it is."""
        state = params.get(_STATE)
        if not (isinstance(state, str) and state.startswith(_SEALED)):
            return dict(params)
        try:
            sealed = urlsafe_b64decode(state.removeprefix(_SEALED))
            data = self.keys.open(caller.tenant, _name(caller, about), sealed)
        except (ValueError, SealBrokenError):
            raise InvalidArgumentsError(
                "This requestState is not one that this request was given; send it again from the start.",
                details={"pointer": f"/{_STATE}"},
            ) from None
        return {**params, _STATE: data.decode("utf-8", "surrogatepass")}


def _name(caller: Caller, about: tuple[str, ...]) -> bytes:
    return b"request-state:" + dumps([caller.key_id, *about])
