"""What a running service says of itself: readiness and counts without a key, connections to servers with one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import httpx2
from prometheus_client.parser import text_string_to_metric_families

from app.core.access import KEY_PATTERN

_OK: Final = 200
_NAMES: Final = ("sluice_upstream_servers", "sluice_detection_worker_deaths_total")


@dataclass(frozen=True, slots=True)
class ServiceAnswer:
    """``checks`` is None where no service answers at ``url``, ``fault`` then says why.

    ``servers`` are states and faults of connections by name, of the tenant of the key with the public id ``key_id``;
    ``refused`` is the status with which the service refused to list them.
    """

    url: str
    checks: Mapping[str, bool] | None = None
    fault: str | None = None
    counts: Mapping[str, int] | None = None
    servers: Mapping[str, tuple[str, str | None]] = field(default_factory=dict)
    refused: int | None = None
    key_id: str | None = None


def own_url(host: str, port: int) -> str:
    """Return the URL at which the service of this host is reached, as its settings say."""
    bare = host.strip("[]")
    bare = "127.0.0.1" if bare in {"0.0.0.0", "::"} else bare  # noqa: S104 -- compared, not bound
    return f"http://[{bare}]:{port}" if ":" in bare else f"http://{bare}:{port}"


def ask_service(url: str, key: str | None, timeout: float) -> ServiceAnswer:
    """Ask the service at ``url``; ``key`` may be None, ``timeout`` is in seconds for each question."""
    try:
        with httpx2.Client(base_url=url, timeout=timeout, follow_redirects=False) as client:
            ready = client.get("/readyz")
            checks = _json(ready).get("checks")
            if not isinstance(checks, Mapping):
                return ServiceAnswer(url, fault="What answers there is not Sluice.")
            counts = _counts(client.get("/metrics"))
            servers, refused = _servers(client, key) if key else ({}, None)
    except httpx2.TimeoutException:
        return ServiceAnswer(url, fault=f"No answer within {timeout:g} s.")
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError):
        return ServiceAnswer(url, fault="No service answers.")
    passed = {str(name): value is True for name, value in checks.items()}
    return ServiceAnswer(url, passed, None, counts, servers, refused, _id_of(key))


def _counts(answer: httpx2.Response) -> Mapping[str, int] | None:
    """Return the counts of one process by state or name; None where metrics are off."""
    if answer.status_code != _OK:
        return None
    try:
        return {
            sample.labels.get("state", sample.name): int(sample.value)
            for family in text_string_to_metric_families(answer.text)
            for sample in family.samples
            if sample.name in _NAMES
        }
    except ValueError:
        return None


def _servers(client: httpx2.Client, key: str) -> tuple[Mapping[str, tuple[str, str | None]], int | None]:
    states: dict[str, tuple[str, str | None]] = {}
    cursor: str | None = None
    while True:
        answer = client.get(
            "/api/v1/servers",
            params={"cursor": cursor} if cursor else {},
            headers={"Authorization": f"Bearer {key}"},
        )
        if answer.status_code != _OK:
            return {}, answer.status_code
        page = _json(answer)
        for entry in page.get("items", []):
            connection = entry.get("status") or {}
            states[entry["name"]] = (connection.get("state", "not connected"), connection.get("error"))
        cursor = page.get("next")
        if cursor is None:
            return states, None


def _id_of(key: str | None) -> str | None:
    return key.split("_")[1] if key and KEY_PATTERN.fullmatch(key) else None


def _json(answer: httpx2.Response) -> dict[str, Any]:
    try:
        read = answer.json()
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}
