"""Calls of a running service over HTTP: the few that commands need, without the client library."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Self
from urllib.parse import quote

import httpx2

Progress = Callable[[float, float | None], None]
"""Called with the work done and, if known, the total."""

_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
_FIRST_REDIRECTION = 300
_FIRST_ERROR_STATUS = 400
_PAGE = 500
_ATTEMPTS = 3
_MOST_PAGES = 2_000
_LONGEST_PAUSE_S = 10.0
_META = "io.modelcontextprotocol"
_REVISION = "2026-07-28"
_INVOKE = "middleware/invoke"
_HEADERS = {
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": _REVISION,
    "Mcp-Method": _INVOKE,
}


class CallError(Exception):
    """A call that returned no result; the members are those of a problem document."""

    def __init__(self, message: str, code: str = "unknown", **members: Any) -> None:
        super().__init__(message)
        # The members may come from what is no Sluice, or an evil one.
        waiting, number = members.get("retry_after"), members.get("request_id")
        self.message = str(message)
        self.code = str(code)
        self.details: Mapping[str, Any] = members.get("details") or {}
        self.request_id: str | None = number if isinstance(number, str) else None
        self.retry_after: float | None = float(waiting) if isinstance(waiting, int | float) else None


class NoAnswerError(Exception):
    """The service could not be reached, or the connection was lost; ``sent``: bytes of the request may have arrived."""

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.message = message
        self.sent = sent


class ServiceCalls:
    """Calls one service; a context manager. ``timeout`` (seconds) is what one answer may take."""

    def __init__(self, url: str, key: str | None, timeout: float) -> None:
        self._timeout = timeout
        # The proxies of the environment must not see contexts.
        self._http = httpx2.Client(
            base_url=url.rstrip("/"),
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=httpx2.Timeout(timeout, connect=5.0),
            trust_env=False,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def list_middleware(self) -> list[dict[str, Any]]:
        """Return the middlewares that the key may invoke, as REST describes them."""
        listed: list[dict[str, Any]] = self.ask("GET", "/api/v1/middleware")["middleware"]
        return listed

    def ask(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """Call a route and return its JSON object, None where it answers without one; query values may be None."""
        sent = {} if body is None else {"json": body}
        return _parsed_or_none(self._answer(method, path, params=_present(query), **sent))

    def send(self, method: str, path: str, content: bytes, media_type: str, **query: Any) -> Any:
        """Send ``content``, which is no JSON of ours, and return the JSON object that comes back."""
        headers = {"Content-Type": media_type}
        return _parsed_or_none(
            self._answer(method, path, params=_present(query), content=content, headers=headers)
        )

    def pages(self, path: str, *, method: str = "GET", body: Any = None, **query: Any) -> list[Any]:
        """Return the items of all pages of a list."""
        items: list[Any] = []
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            page = self.ask(method, path, body, **{"limit": _PAGE, **query, "cursor": cursor}) or {}
            listed, following = page["items"], page["next"]
            if not isinstance(listed, list) or not isinstance(following, str | None):
                raise CallError("The answer has another form than a page of a list.")
            items += listed
            if following is None:
                return items
            if following == cursor:
                raise CallError("The service gives one page of a list again and again.")
            cursor = following
        raise CallError(f"The list has no end: the service gave {_MOST_PAGES} pages of it.")

    def text(self, path: str, **query: Any) -> str:
        """Return a text."""
        return self._answer("GET", path, params=_present(query)).text

    def pieces(self, path: str, **query: Any) -> Iterator[bytes]:
        """Yield what a route streams; an error of the service is raised before the first piece."""
        asked = self._http.stream("GET", path, params=_present(query))
        with self._faults(), asked as answer:
            if answer.status_code >= _FIRST_REDIRECTION:
                answer.read()
                raise _problem(answer)
            yield from answer.iter_bytes()

    def invoke(
        self, name: str, context: list[Any], arguments: Mapping[str, Any], progress: Progress | None = None
    ) -> tuple[list[Any], Mapping[str, Any]]:
        """Run a middleware and return content and metadata; with ``progress`` over MCP, which reports it."""
        if progress is None:
            path = f"/api/v1/middleware/{segment(name)}/invoke"
            result = self.ask("POST", path, {"arguments": arguments, "context": context})
        else:
            result = self._watched({"name": name, "arguments": arguments, "context": context}, progress)
        return result["content"], result.get("metadata") or {}

    def _answer(self, method: str, path: str, **request: Any) -> httpx2.Response:
        """Send a request, again where the service says that it did not start."""
        attempts = _ATTEMPTS
        while True:
            attempts -= 1
            with self._faults():
                answer = self._http.request(method, path, **request)
            if answer.status_code < _FIRST_REDIRECTION:
                return answer
            error = _problem(answer)
            if error.code not in {"rate_limited", "overloaded"} or error.retry_after is None or not attempts:
                raise error
            if error.retry_after > _LONGEST_PAUSE_S:
                raise error
            time.sleep(error.retry_after)

    def _watched(self, params: dict[str, Any], progress: Progress) -> Any:
        meta = {
            f"{_META}/protocolVersion": _REVISION,
            f"{_META}/clientCapabilities": {},
            f"{_META}/clientInfo": {"name": "sluice-command", "version": _REVISION},
            "progressToken": 1,
        }
        message = {"jsonrpc": "2.0", "id": 1, "method": _INVOKE, "params": {**params, "_meta": meta}}
        with self._faults(), self._http.stream("POST", "/mcp", json=message, headers=_HEADERS) as answer:
            if answer.status_code >= _FIRST_ERROR_STATUS:
                answer.read()
                raise _problem(answer)
            for line in answer.iter_lines():
                reply = _parsed(line.removeprefix("data:")) if line.startswith(("data:", "{")) else {}
                if "error" in reply:
                    raise _rpc_error(reply["error"])
                if "result" in reply:
                    return reply["result"]
                if reply.get("method") == "notifications/progress":
                    progress(reply["params"]["progress"], reply["params"].get("total"))
        raise NoAnswerError("The connection was lost before the answer came.", sent=True)

    @contextmanager
    def _faults(self) -> Iterator[None]:
        """Turn faults of the transport into sentences; they never repeat the library's message."""
        try:
            yield
        except UnicodeEncodeError:
            raise CallError(
                "The context holds half a surrogate pair, which no UTF-8 text can carry."
            ) from None
        except _NOT_SENT:
            raise NoAnswerError("No service answers.", sent=False) from None
        except httpx2.TimeoutException:
            raise NoAnswerError(f"No answer came within {self._timeout:g} s.", sent=True) from None
        except httpx2.TransportError:
            raise NoAnswerError("The connection was lost before the answer came.", sent=True) from None


def segment(name: str) -> str:
    """Return a name as one step of a path; raise CallError for an empty one, which would name the list."""
    if not name:
        raise CallError("The name is empty.", "invalid_arguments")
    # "." and ".." would be taken for steps up.
    return quote(name, safe="") if name.strip(".") else name.replace(".", "%2E")


def _present(query: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that have a value, with times in the form of the routes."""
    return {name: _in_query(value) for name, value in query.items() if value is not None}


def _in_query(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_in_query(each) for each in value]
    return value if isinstance(value, str | bool | int) else str(value)


def _parsed_or_none(answer: httpx2.Response) -> Any:
    return _parsed(answer.text) if answer.content else None


def _parsed(text: str) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise CallError("The answer is not an object of JSON: does Sluice listen at this address?")
    return value


def _problem(answer: httpx2.Response) -> CallError:
    """Return the error of a problem document (RFC 9457), or of a JSON-RPC answer."""
    try:
        body = _parsed(answer.text)
    except CallError:
        body = {}
    if isinstance(body.get("error"), dict):
        return _rpc_error(body["error"])
    details = body.get("details") if isinstance(body.get("details"), dict) else {}
    if "pointer" in body:
        details = {**details, "pointer": body["pointer"]}
    waiting = answer.headers.get("retry-after", "")
    return CallError(
        body.get("detail")
        or body.get("title")
        or f"HTTP {answer.status_code} without an explanation of Sluice.",
        body.get("code") or ("unauthenticated" if answer.status_code == 401 else "unknown"),  # noqa: PLR2004
        details=details,
        request_id=body.get("request_id") or answer.headers.get("x-request-id"),
        retry_after=float(waiting) if waiting.isdigit() else None,
    )


def _rpc_error(error: Mapping[str, Any]) -> CallError:
    data = error.get("data")
    if not isinstance(data, dict):
        data = {}
    own = {"code", "requestId", "retryAfter"}
    return CallError(
        error.get("message") or "The call failed without an explanation.",
        data.get("code") or "unknown",
        details={name: value for name, value in data.items() if name not in own},
        request_id=data.get("requestId"),
        retry_after=data.get("retryAfter"),
    )
