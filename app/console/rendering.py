"""Write pages: one set of templates, every value escaped, and a policy that lets a browser run nothing else."""

import gzip
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import Response

from app.console.assets import address
from app.core.errors import ServiceError
from app.edge.problems import PROBLEMS, error_headers
from app.edge.surfaces import ForeignRefusal

_HTML: Final = "text/html; charset=utf-8"
_WORTH_PACKING: Final = 1024
_POLICY: Final = (
    "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src 'self'{images}; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
# A form's request says where it comes from only under this policy; other hosts learn nothing.
_REFERRER: Final = "same-origin"


def _moment(moment: datetime | None) -> Markup:
    """Return a moment as an element: in UTC, which a script shows as local time with UTC on hover."""
    if moment is None:
        return Markup('<span class="muted">never</span>')
    utc = moment.astimezone(UTC)
    return Markup('<time datetime="{}" title="{} UTC">{} UTC</time>').format(
        utc.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        utc.strftime("%Y-%m-%d %H:%M:%S"),
        utc.strftime("%Y-%m-%d %H:%M"),
    )


def _number(value: float) -> str:
    return f"{value:,.0f}"


def _code(text: str) -> Markup:
    """Return a text with what stands between backticks as code."""
    parts = [
        Markup("<code>{}</code>").format(part) if place % 2 else escape(part)
        for place, part in enumerate(text.split("`"))
    ]
    return Markup("").join(parts)


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters.update(code=_code, moment=_moment, number=_number)
    environment.globals.update(asset=address)
    return environment


_ENVIRONMENT: Final = _environment()


def page(
    request: Request,
    template: str,
    values: Mapping[str, Any],
    *,
    status: int = 200,
    images: str = "",
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return a page; ``images`` are further sources of images that its policy allows."""
    body, own = _whole(template, values, images)
    if len(body) > _WORTH_PACKING and "gzip" in request.headers.get("accept-encoding", ""):
        body = gzip.compress(body, 5, mtime=0)
        own["content-encoding"] = "gzip"
    return Response(body, int(status), headers={**own, **(headers or {})}, media_type=_HTML)


def written(template: str, values: Mapping[str, Any]) -> str:
    """Return a part of a page, the same for everybody who sees it: no nonce, no form."""
    return _ENVIRONMENT.get_template(template).render(values)


def error_page(request: Request, error: ServiceError, status: int, request_id: str) -> Response:
    """Return the page of an error, with the id by which the log knows the request."""
    return page(
        request,
        "error.html",
        _error_values(error, status, request_id),
        status=status,
        headers=_headers_of(error, status),
    )


def refusal_page(error: ServiceError, status: int, request_id: str) -> ForeignRefusal:
    """Return the same for a request that the edge has refused."""
    body, own = _whole("error.html", _error_values(error, status, request_id), "")
    headers = [(name.encode(), value.encode()) for name, value in own.items()]
    return ForeignRefusal(status, body, _HTML.encode(), headers)


def _headers_of(error: ServiceError, status: int) -> dict[str, str]:
    headers = error_headers(error, status)
    headers.pop("www-authenticate", None)  # a browser would ask for a password
    return headers


def _error_values(error: ServiceError, status: int, request_id: str) -> dict[str, Any]:
    return {
        "title": PROBLEMS[error.code][1],
        "message": error.message,
        "status": status,
        "request_id": request_id,
    }


def _whole(template: str, values: Mapping[str, Any], images: str) -> tuple[bytes, dict[str, str]]:
    nonce = secrets.token_urlsafe(16)
    body = _ENVIRONMENT.get_template(template).render(nonce=nonce, **values).encode()
    policy = _POLICY.format(nonce=nonce, images=f" {images}" if images else "")
    headers = {
        "content-security-policy": policy,
        "referrer-policy": _REFERRER,
        "cross-origin-opener-policy": "same-origin",
        "vary": "accept-encoding",
    }
    return body, headers
