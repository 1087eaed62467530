"""Every MUST of this surface with its source; a test names those that it shows, and one test finds the rest."""

from collections.abc import Callable
from typing import TypeVar

from tests.protocol.requirements_concerns import REQUIREMENTS_CONCERNS
from tests.protocol.requirements_disclosure import REQUIREMENTS_DISCLOSURE
from tests.protocol.requirements_groups import REQUIREMENTS_GROUPS
from tests.protocol.requirements_interceptors import REQUIREMENTS_INTERCEPTORS
from tests.protocol.requirements_selective import REQUIREMENTS_SELECTIVE
from tests.protocol.requirements_tools import REQUIREMENTS_TOOLS

F = TypeVar("F", bound=Callable[..., object])

PROPOSAL = "Context middleware proposal"
HANDSHAKE = "MCP 2025-11-25"
MODERN = "MCP 2026-07-28"
OURS = "The wire of this service"

REQUIREMENTS: dict[str, tuple[str, str]] = {
    "CM-CAPABILITY": (PROPOSAL, "A server that supports it declares the capability contextMiddleware."),
    "CM-LIST": (PROPOSAL, "middleware/list answers {middleware: [{name, description, inputSchema}]}."),
    "CM-INVOKE": (PROPOSAL, "middleware/invoke answers {content, metadata?}."),
    "CM-ARGUMENTS": (PROPOSAL, "The arguments are validated against the inputSchema."),
    "CM-PAGES": (OURS, "middleware/list is paged by opaque cursors."),
    "CM-CURSOR": (HANDSHAKE + " pagination", "An invalid cursor is answered with -32602."),
    "CM-ALLOWED": (OURS, "middleware/list shows only what the caller may invoke."),
    "CM-PHASE": (OURS, "Each definition says its phase in _meta."),
    "CM-UNKNOWN": (OURS, "An unknown middleware is -32602 with a JSON pointer to the fault."),
    "CM-FAILURE": (OURS, "A failure is -32603 with an error id and nothing of its text."),
    "CM-EXACT": (OURS, "Integers, key order and null survive both ways, floats by value."),
    "CAP-PLACES": (OURS, "Each capability stands wherever some client can see it."),
    "CAP-ENABLED": (OURS, "Only what is enabled is advertised."),
    "AUTH-401": (
        HANDSHAKE + " authorization",
        "A request without a valid token gets 401 and WWW-Authenticate.",
    ),
    "AUTH-PRINCIPAL": (OURS, "A session of another principal looks like one that does not exist."),
    "EDGE-ORIGIN": (HANDSHAKE + " transports", "Servers validate Origin; an invalid one gets 403."),
    "EDGE-HOST": (OURS, "Servers validate Host."),
    "ERR-TABLE": (OURS, "Every error code has a row in one table."),
    "ERR-RANGE": (MODERN + " error codes", "New codes lie outside -32768..-32000."),
    "ERR-RETRY": (OURS, "A rate limit is HTTP 429 with Retry-After."),
    "ERR-DATA": (OURS, "An error's data has our stable code and the request id."),
    "ERR-ID": (MODERN + " transports", "An error carries the id of its request."),
    "RPC-UNKNOWN-METHOD": ("JSON-RPC 2.0", "An unknown method is -32601."),
    "RPC-FRAMING": ("JSON-RPC 2.0", "What is no message is -32700 or -32600, and is not quoted."),
    "PROGRESS-TOKEN": (
        HANDSHAKE + " progress",
        "Progress names the token of an active request and increases.",
    ),
    "CANCEL-STOPS": (HANDSHAKE + " cancellation", "A cancelled request stops; an unknown one is ignored."),
    "HS-VERSION": (HANDSHAKE + " lifecycle", "The requested version if it is served, otherwise the latest."),
    "HS-SESSION-ID": (HANDSHAKE + " transports", "A session id is visible ASCII and cannot be guessed."),
    "HS-SESSION-MISSING": (HANDSHAKE + " transports", "A request without its session id gets 400."),
    "HS-SESSION-GONE": (HANDSHAKE + " transports", "A request of an ended or unknown session gets 404."),
    "HS-DELETE": (HANDSHAKE + " transports", "DELETE ends a session."),
    "HS-ACCEPTED": (HANDSHAKE + " transports", "A notification or response is answered 202 without a body."),
    "HS-GET": (HANDSHAKE + " transports", "GET opens an event stream that carries no responses."),
    "HS-ONE-STREAM": (HANDSHAKE + " transports", "A message goes to one of a client's streams only."),
    "HS-PING": (HANDSHAKE + " ping", "ping is answered with an empty result."),
    "HS-REPLICAS": (OURS, "Any replica serves any request of a session."),
    "MO-DISCOVER": (MODERN + " lifecycle", "server/discover names the versions and capabilities."),
    "MO-ENVELOPE": (MODERN + " basic", "A request without its envelope in _meta is 400 and -32602."),
    "MO-VERSION": (
        MODERN + " lifecycle",
        "A version that is not served is 400 and -32022 with those that are.",
    ),
    "MO-HEADERS": (MODERN + " transports", "Headers that do not match the body are 400 and -32020."),
    "MO-NOT-FOUND": (MODERN + " transports", "An unknown method is 404; those of the handshake are unknown."),
    "MO-RESULT-TYPE": (MODERN + " basic", "Every result has its resultType."),
    "MO-CACHE": (MODERN + " caching", "Lists carry ttlMs and cacheScope."),
    "MO-STATELESS": (MODERN + " lifecycle", "A list does not vary by connection; there is no session."),
    "MO-LISTEN-ACK": (MODERN + " subscriptions", "The acknowledgement is the first message of the stream."),
    "MO-LISTEN-FILTER": (
        MODERN + " subscriptions",
        "Only the kinds that were asked for are sent, all tagged.",
    ),
    "MO-LISTEN-CLOSE": (MODERN + " subscriptions", "A stream that the server ends, ends with its result."),
    "MO-LOGS": (MODERN + " logging", "No log message is sent for a request that set no level."),
    "MO-CANCEL": (MODERN + " cancellation", "Closing the response stream cancels the request."),
}

REQUIREMENTS |= REQUIREMENTS_DISCLOSURE | REQUIREMENTS_GROUPS
REQUIREMENTS |= REQUIREMENTS_CONCERNS | REQUIREMENTS_SELECTIVE | REQUIREMENTS_TOOLS
REQUIREMENTS |= REQUIREMENTS_INTERCEPTORS


def covers(*names: str) -> Callable[[F], F]:
    """Say which requirements a test shows."""
    unknown = set(names) - set(REQUIREMENTS)
    assert not unknown, f"no such requirement: {unknown}"

    def keep(test: F) -> F:
        return test

    return keep
