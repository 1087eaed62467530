"""Where a command works: with the database of this host, or at the service that ``--url`` names."""

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeVar

import typer

from app.cli.addresses import fault_of
from app.cli.terminal import USAGE, confirm, fail, note

if TYPE_CHECKING:
    from app.assembly import Services
    from app.cli.calls import ServiceCalls

T = TypeVar("T")
TenantRule = Literal["key", "named", "none"]
"""Whose the tenant is at a service: the key's alone, another's where the option names one, or nobody's."""

_DEFAULT_TENANT: Final = "default"
_Url = Annotated[
    str | None,
    typer.Option("--url", help="Work at the service with this URL, not with the database of this host."),
]
_Key = Annotated[
    str | None,
    typer.Option(
        "--key",
        help="API key for --url; without it SLUICE_API_KEY, which no list of processes shows, or `sluice auth login`.",
    ),
]
_Timeout = Annotated[
    float, typer.Option("--timeout", min=0.1, help="Seconds to wait for a response with --url.")
]
_KeyTenant = Annotated[
    str | None,
    typer.Option("--tenant", help="Name of the tenant [default: default]. With --url the key decides."),
]
_NamedTenant = Annotated[
    str | None,
    typer.Option(
        "--tenant",
        help="Name of the tenant [default: default; with --url that of the key; others need a key of system].",
    ),
]


@dataclass(frozen=True, slots=True)
class CommandTarget:
    """The place where one command works; ``tenant`` is what the option says, None without it."""

    url: str | None
    key: str | None
    timeout: float
    tenant: str | None

    @property
    def remote(self) -> bool:
        """Whether that is a service, not this host."""
        return self.url is not None

    @property
    def here(self) -> str:
        """The tenant in which the command works on this host."""
        return self.tenant or _DEFAULT_TENANT

    @property
    def of_tenant(self) -> str:
        """Whose something is, in words: `` of tenant acme``, or nothing where the key decides."""
        return f" of tenant {self.here}" if self.tenant or not self.remote else ""

    def do(
        self,
        host: "Callable[[Services], Awaitable[T]]",
        service: "Callable[[ServiceCalls], T]",
        *,
        begins: bool = False,
    ) -> T:
        """Run ``host`` with the services of this host, or ``service`` with calls of that at the URL.

        ``begins`` is as in ``on_host``.
        """
        if self.url is None:
            from app.cli.host import on_host

            return on_host(host, begins=begins)
        return self.call(service)

    def call(self, work: "Callable[[ServiceCalls], T]") -> T:
        """Run ``work`` with calls of the service, and say which one that is and as whom it is asked."""
        from app.cli.remote import service, signed_in

        url = self.url or ""
        key = self.key or signed_in(url)
        note(f"sluice: at {url} {_as_whom(key)}")
        try:
            with service(url, key, self.timeout, "check --url, and that the service runs") as calls:
                return work(calls)
        except (ValueError, KeyError):
            # Of models of answers, and of times: the service is of another release, or is none.
            fail(f"{url} answers in another form than this release reads: use the release that it has.")

    def confirm(self, question: str, *, yes: bool) -> None:
        """Ask before an irreversible step, with the place in the question."""
        if yes:
            return
        from app.settings import load

        place = f"at {self.url}" if self.remote else f"on this host, {load().database.display_name}"
        confirm(f"{question.rstrip('?')} {place}?", yes=False)

    def refuse(self, why: str, *values: object) -> None:
        """End the command where an option that only this host has was given for a service."""
        if self.remote and any(value not in (None, False, [], ()) for value in values):
            fail(why, USAGE)


def placed(rule: TenantRule = "key") -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of a place instead of its first parameter, which is then a CommandTarget.

    ``rule`` says what ``--tenant`` means at a service; with ``none`` there is no such option.
    """

    def give(command: Callable[..., None]) -> Callable[..., None]:
        own = list(signature(command).parameters.values())[1:]
        names = {parameter.name for parameter in own}

        @wraps(command, assigned=("__name__", "__doc__"))
        def receive(**values: Any) -> None:
            url, timeout = values.pop("url"), values.pop("timeout")
            key = None if "key" in names else values.pop("key")
            target = _target(url, key, timeout, values.pop("tenant", None), rule)
            command(target, **values)

        options: dict[str, tuple[Any, Any]] = {
            "url": (_Url, None),
            "key": (_Key, None),
            "timeout": (_Timeout, 60.0),
        }
        if rule != "none":
            options = {"tenant": (_KeyTenant if rule == "key" else _NamedTenant, None), **options}
        added = [
            Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
            for name, (annotation, default) in options.items()
            if name not in names
        ]
        # Typer reads the options from the signature.
        own = [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in own]
        vars(receive)["__signature__"] = Signature([*own, *added])
        return receive

    return give


def _target(
    url: str | None, key: str | None, timeout: float, tenant: str | None, rule: TenantRule
) -> CommandTarget:
    """Return the place that the options name, or end the command where they do not fit each other."""
    if url is None:
        if key is not None:
            fail("--key is for a service: give its --url, or leave --key out to work on this host.", USAGE)
        return CommandTarget(None, None, timeout, tenant)
    fault = fault_of(url)
    if fault is not None:
        fail(fault, USAGE)
    if tenant is not None and rule == "key":
        fail(
            "--tenant is for this host; at a service the key decides: leave --tenant out, or use a key of that tenant.",
            USAGE,
        )
    key = key or os.environ.get("SLUICE_API_KEY") or None
    return CommandTarget(url.rstrip("/"), key, timeout, tenant)


def _as_whom(key: str | None) -> str:
    """Say with which key, or as which subject of a token, a service is asked; never the secret."""
    from app.core.access import KEY_PATTERN

    if key is None:
        return "without a key"
    if KEY_PATTERN.fullmatch(key):
        return f"as key {key.split('_')[1]}"
    subject = _subject(key)
    return "with a token" if subject is None else f"as {subject}"


def _subject(token: str) -> str | None:
    """Return the subject that a token states, unverified: the service verifies it."""
    import base64
    import json

    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        subject = claims["sub"]
    except (ValueError, LookupError, TypeError):
        return None
    return subject if isinstance(subject, str) and subject.isprintable() else None
