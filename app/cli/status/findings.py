"""What is found of the service and its installation, part by part, each with how to mend it."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from app import __version__
from app.cli.status.service import ServiceAnswer

if TYPE_CHECKING:
    from app.services.audit.sinks.delivery import SinkState
    from app.services.installation import InstallationView
    from app.settings import Settings

State = Literal["ok", "off", "wrong", "unreachable"]
_UNREADY: Final[Mapping[str, str]] = {
    "started": "wait: the process is starting",
    "not_draining": "wait: the process is stopping",
    "upstreams": "wait: the servers behind it are being listed",
    "detector": "wait a few seconds; if it stays, read the service's log",
    "database": "see `database` below; the service's log names the fault",
    "schema": "run `sluice db upgrade`, or start the release that fits the database",
    "keys": "copy the key ring with all versions to that host",
    "mark": "let SLUICE_VAULT__MARK name a place that the service may write",
}
_REFUSALS: Final[Mapping[int, str]] = {
    401: "the key is not valid",
    403: "the key has no role that may list them",
}


@dataclass(frozen=True, slots=True)
class StatusLine:
    """One line of the status; ``facts`` are for machines. Neither holds content nor secrets."""

    part: str
    state: State
    says: str
    mend: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


def findings_of(settings: "Settings", answer: ServiceAnswer) -> list[StatusLine]:
    """Return what is found of the service that answered and of the installation of this host's settings."""
    return [_service(answer), *_installation(settings, answer), *_switches(settings)]


def _service(answer: ServiceAnswer) -> StatusLine:
    facts = {"url": answer.url, "checks": answer.checks}
    if answer.checks is None:
        mend = "start one with `sluice serve`, or set SLUICE_URL"
        return StatusLine("service", "unreachable", f"{answer.url}: {answer.fault}", mend, facts)
    failing = [name for name, passed in answer.checks.items() if not passed]
    if failing:
        mend = "; ".join(f"{name}: {_UNREADY.get(name, 'read the log of the service')}" for name in failing)
        return StatusLine("service", "wrong", f"{answer.url} is not ready: {', '.join(failing)}", mend, facts)
    return StatusLine("service", "ok", f"{answer.url} is ready", None, facts)


def _installation(settings: "Settings", answer: ServiceAnswer) -> Iterator[StatusLine]:
    from app.cli.faults import NO_DATABASE, explained
    from app.cli.terminal import UNREACHABLE
    from app.store import migrate

    name, file = settings.database.display_name, settings.database.sqlite_file
    if file is not None and not file.is_file():
        mend = "start the service once, or set SLUICE_DATABASE__URL to the database that it uses"
        yield StatusLine("database", "wrong", f"There is no {name}", mend, {"name": name})
        return
    try:
        revision, newest = migrate.current(settings.database.owner_url), migrate.head()
        yield StatusLine("database", "ok", name, None, {"name": name})
        yield _schema(revision, newest)
        if revision == newest:
            yield from _viewed(settings, answer)
    except Exception as error:
        explanation = explained(error)
        if explanation is None:
            raise
        state: State = "unreachable" if explanation[0] == UNREACHABLE else "wrong"
        says = f"{name} does not answer" if explanation[1] == [NO_DATABASE] else explanation[1][0]
        yield StatusLine("database", state, says, "check SLUICE_DATABASE__URL and that the database runs")


def _schema(revision: str | None, newest: str) -> StatusLine:
    facts = {"revision": revision, "newest": newest}
    if revision == newest:
        return StatusLine("schema", "ok", f"{revision} (newest)", None, facts)
    says = "empty" if revision is None else f"{revision}; the newest of release {__version__} is {newest}"
    return StatusLine("schema", "wrong", says, "run `sluice db upgrade`", facts)


def _viewed(settings: "Settings", answer: ServiceAnswer) -> Iterator[StatusLine]:
    from app.custody_wiring import load_ring
    from app.engines.cipher import KeyRingError
    from app.places_wiring import mark_store
    from app.services.installation import view_installation
    from app.services.vault.mark import MarkKeeper
    from app.store.database import Database

    source = "SLUICE_KEYS__RING" if settings.keys.ring is not None else str(settings.key_file)
    try:
        ring = load_ring(settings)
    except KeyRingError as error:
        mend = "set SLUICE_KEYS__FILE or SLUICE_KEYS__RING to the ring that the service uses"
        yield StatusLine("keys", "wrong", str(error), mend, {"source": source})
        return

    async def view() -> "InstallationView":
        async with Database(settings.database.owner_url, pool_size=1) as database:
            return await view_installation(
                database, ring, MarkKeeper(database, mark_store(settings), database.address), answer.key_id
            )

    viewed = asyncio.run(view())
    yield _keys(viewed, source)
    yield _mark(viewed, settings)
    disabled = [tenant.name for tenant in viewed.tenants if tenant.disabled]
    names = [f"{tenant.name} (disabled)" if tenant.disabled else tenant.name for tenant in viewed.tenants]
    yield StatusLine(
        "tenants",
        "ok",
        f"{len(names)}: {', '.join(names)}",
        None,
        {"names": [tenant.name for tenant in viewed.tenants], "disabled": disabled},
    )
    yield from _servers(viewed, answer)
    yield _processes(viewed, answer)
    yield _detector(settings, answer)
    yield from _sinks(settings)


def _keys(viewed: "InstallationView", source: str) -> StatusLine:
    keys = viewed.keys
    facts = {"source": source, "versions": keys.versions, "active": keys.active, "left": keys.left}
    says = f"{source}: versions {', '.join(map(str, keys.versions))}; {keys.active} wraps"
    if keys.fault is not None:
        return StatusLine("keys", "wrong", f"{says}. {keys.fault}", "docs/operations.md, The key ring", facts)
    if keys.left:
        says += f"; {keys.left} data keys are under other versions"
        return StatusLine(
            "keys", "ok", says, "`sluice vault rewrap` moves them; keep the old version until then", facts
        )
    return StatusLine("keys", "ok", says, None, facts)


def _mark(viewed: "InstallationView", settings: "Settings") -> StatusLine:
    place = str(settings.vault.mark or settings.erasure_file.parent)
    facts: dict[str, Any] = {"place": place, "shared": settings.vault.mark is not None}
    if isinstance(viewed.mark, str):
        return StatusLine("mark", "wrong", viewed.mark, None, facts)
    position, mark = viewed.mark.position, viewed.mark.mark
    if viewed.mark.behind:
        says = f"{place}: the database is behind its mark: it was restored from a backup or exchanged"
        mend = "run `sluice vault replay-erasures FILE…` with the files of erasures of all hosts"
        return StatusLine("mark", "wrong", says, mend, facts)
    if position is None or mark is None:
        mend = "mount the place that the service uses, or start the service, which makes a mark"
        return StatusLine("mark", "wrong", f"{place}: there is no mark of this database", mend, facts)
    facts |= {"step": mark.step, "epoch": mark.epoch, "erasures": mark.erasures}
    says = f"{place}: epoch {mark.epoch}, {mark.erasures} erasures, step {mark.step}"
    return StatusLine("mark", "ok", says, None, facts)


def _servers(viewed: "InstallationView", answer: ServiceAnswer) -> Iterator[StatusLine]:
    if not viewed.servers:
        yield StatusLine("servers", "off", "none", "add them with `sluice apply FILE`")
        return
    for tenant, name, stored in viewed.servers:
        facts: dict[str, Any] = {"tenant": tenant, "name": name, "state": stored}
        part = f"server {tenant}/{name}"
        if stored != "approved":
            verb = "approve" if stored == "pending" else "resume"
            mend = f"sluice servers {verb} {name} --tenant {tenant}"
            yield StatusLine(part, "off", stored, mend, facts)
            continue
        # The key belongs to one tenant; another tenant may have a server of the same name.
        asked = answer.servers if tenant == viewed.key_tenant else {}
        connection, error = asked.get(name, (None, None))
        facts |= {"connection": connection, "error": error}
        if connection == "failed" or error is not None:
            says = f"{stored}, {connection}: {error or 'no reason is known'}"
            yield StatusLine(part, "wrong", says, f"sluice servers test {name} --tenant {tenant}", facts)
        else:
            yield StatusLine(part, "ok", f"{stored}, {connection}" if connection else stored, None, facts)
    yield from _connections(answer)


def _connections(answer: ServiceAnswer) -> Iterator[StatusLine]:
    """Say how many servers of all tenants are connected, and what a key would add."""
    if answer.refused is not None:
        says = f"not shown by name: {_REFUSALS.get(answer.refused, f'HTTP {answer.refused}')}"
        yield StatusLine("connections", "wrong", says, "set SLUICE_API_KEY to a key with the role operator")
        return
    if answer.counts is None:
        return
    counts = {state: answer.counts.get(state, 0) for state in ("ready", "connecting", "failed")}
    says = ", ".join(f"{count} {state}" for state, count in counts.items() if count) or "none"
    if counts["failed"]:
        mend = None if answer.servers else "set SLUICE_API_KEY to an operator's key to see which and why"
        yield StatusLine("connections", "wrong", says, mend, counts)
    else:
        yield StatusLine("connections", "ok", says, None, counts)


def _processes(viewed: "InstallationView", answer: ServiceAnswer) -> StatusLine:
    facts = {
        "command": __version__,
        "serving": [
            {"host": process.host, "release": process.release, "versions": sorted(process.versions)}
            for process in viewed.processes
        ],
    }
    if not viewed.processes:
        says = "none serves from this database"
        if answer.checks is None:
            return StatusLine("processes", "off", says, "sluice serve", facts)
        mend = (
            "give this command the settings of the service, or set SLUICE_URL to the service of this database"
        )
        return StatusLine("processes", "wrong", f"{says}, but {answer.url} answers", mend, facts)
    lines = [
        f"{process.host} (release {process.release or 'unknown'}, "
        f"key versions {', '.join(map(str, sorted(process.versions)))})"
        for process in viewed.processes
    ]
    return StatusLine("processes", "ok", f"{len(lines)}: {'; '.join(lines)}", None, facts)


def _detector(settings: "Settings", answer: ServiceAnswer) -> StatusLine:
    deaths = (answer.counts or {}).get("sluice_detection_worker_deaths_total")
    ready = (answer.checks or {}).get("detector")
    facts = {"workers": settings.detection.workers, "ready": ready, "deaths": deaths}
    says = f"{settings.detection.workers} workers for each process"
    says += f", {deaths} died and were replaced" if deaths else ""
    if ready is False:
        return StatusLine("detector", "wrong", f"{says}, not ready", _UNREADY["detector"], facts)
    return StatusLine("detector", "ok", says if ready else f"{says} (by the settings)", None, facts)


def _sinks(settings: "Settings") -> Iterator[StatusLine]:
    """Say how far each sink of the audit record is."""
    from datetime import UTC, datetime

    from app.places_wiring import sinks
    from app.services.audit.anchoring import LATE_S
    from app.services.audit.sinks.delivery import view_sinks
    from app.store.database import Database

    names = [sink.name for sink in sinks(settings)]

    async def view() -> "list[SinkState]":
        async with Database(settings.database.owner_url, pool_size=1) as database:
            return await view_sinks(database, names, lambda: datetime.now(UTC))

    for name, waits_s, delivered in asyncio.run(view()) if names else ():
        facts = {"waits_s": waits_s, "delivered": delivered.isoformat() if delivered else None}
        is_late = waits_s > LATE_S
        says = f"events wait for {waits_s:.0f} s" if is_late else "has what is sealed, or gets it now"
        mend = "the service's log says why; docs/sinks.md" if is_late else None
        yield StatusLine(f"sink {name}", "wrong" if is_late else "ok", says, mend, facts)


def _switches(settings: "Settings") -> Iterator[StatusLine]:
    """Yield what this host's settings leave off, and how to switch it on."""
    telemetry, grounding = settings.telemetry, settings.grounding
    remote = sorted(
        name
        for name in type(settings.engines).model_fields
        if getattr(settings.engines, name).url is not None
    )
    says = f"elsewhere: {', '.join(remote)}; all others embedded" if remote else "all embedded"
    yield StatusLine("engines", "ok", says, None, {"elsewhere": remote})
    off = (
        (
            "authentication",
            not settings.auth.required,
            "every caller has all roles",
            "remove SLUICE_AUTH__REQUIRED",
        ),
        ("metrics", not telemetry.metrics, "no /metrics", "remove SLUICE_TELEMETRY__METRICS"),
        (
            "shared limits",
            settings.traffic.shared_url is None,
            "each process counts rates by itself",
            "set SLUICE_TRAFFIC__SHARED_URL",
        ),
        ("traces", not telemetry.otlp_endpoint, "none are sent", "set SLUICE_TELEMETRY__OTLP_ENDPOINT"),
        (
            "warm start",
            not settings.detection.warm,
            "the first request loads",
            "remove SLUICE_DETECTION__WARM",
        ),
        ("package names", grounding.packages is None, "not checked", "set SLUICE_GROUNDING__PACKAGES"),
        ("addresses", not grounding.check_urls, "not checked", "set SLUICE_GROUNDING__CHECK_URLS=true"),
    )
    for part, is_off, effect, mend in off:
        if is_off:
            yield StatusLine(part, "off", effect, mend)
