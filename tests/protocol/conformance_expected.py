"""What the conformance suite does not find fulfilled through the service, in front of which server, and why.

The tests hold the table to be exact: a check that is named here and succeeds is a fault, like one that fails unnamed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tests.protocol.mcp_wire import HANDSHAKE, MODERN

CONFORMANCE, PYTHON, TYPESCRIPT = "conformance", "python-sdk", "typescript-sdk"
EVERY: Final = frozenset({CONFORMANCE, PYTHON, TYPESCRIPT})

_NO_RESUMPTION: Final = (
    "Streams of answers are not resumed: the service keeps no events, which may hold content."
)
_NO_HEADER_TOOL: Final = "The server offers no tool with x-mcp-header."
_NO_JSON: Final = (
    "The server writes two JSON documents into one body of type application/json, which is refused."
)
_UNCHANGED: Final = (
    "The server adds and removes something and then announces a change; the list of clients stays the same."
)


@dataclass(frozen=True)
class Expected:
    """A check that does not succeed; ``direct``: nor does it where the suite asks the server itself."""

    revision: str
    scenario: str
    check: str
    servers: frozenset[str]
    reason: str
    direct: bool = False


EXPECTED: Final = [
    Expected(HANDSHAKE, "server-sse-polling", "server-sse-priming-event", EVERY, _NO_RESUMPTION),
    Expected(HANDSHAKE, "server-sse-polling", "server-sse-retry-field", EVERY, _NO_RESUMPTION),
    *(
        Expected(
            MODERN,
            "http-custom-header-server-validation",
            f"sep-2243-server-{check}",
            frozenset({CONFORMANCE}),
            _NO_HEADER_TOOL,
            direct=True,
        )
        for check in (
            "no-xmcp-tool",
            "decode-base64",
            "validate-param-match",
            "reject-invalid-param-chars",
            "reject-param-mismatch",
        )
    ),
    Expected(
        MODERN,
        "server-stateless",
        "sep-2575-http-server-no-independent-requests-on-stream",
        frozenset({CONFORMANCE}),
        _NO_JSON,
    ),
    *(
        Expected(
            MODERN,
            "server-stateless",
            f"sep-2575-server-sends-{kind}-list-changed-on-subscription",
            EVERY,
            _UNCHANGED,
        )
        for kind in ("tools", "prompts")
    ),
]


def expected(server: str, revision: str, *, direct: bool | None = None) -> Mapping[tuple[str, str], str]:
    """Return the reasons by (scenario, check); ``direct`` chooses those that are the server's own, or ours."""
    return {
        (entry.scenario, entry.check): entry.reason
        for entry in EXPECTED
        if entry.revision == revision and server in entry.servers and direct in {None, entry.direct}
    }
