"""``sluice servers``: administer upstream MCP servers, on the host or at a service."""

from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.target import CommandTarget, placed
from app.cli.terminal import FAILED, USAGE, fail, note, show_json, show_table, show_text

if TYPE_CHECKING:
    from app.api.servers.answers import ApprovalAnswer, PrimitiveAnswer, ServerAnswer, TrialAnswer
    from app.api.servers.grants import GrantAnswer
    from app.assembly import Services
    from app.cli.calls import ServiceCalls
    from app.services.servers.approval import WantedDefinition

_PATH = "/api/v1/servers"
_GRANTS = "/api/v1/server-grants"

commands = typer.Typer(
    help="List, test, approve, pause and remove MCP servers. `sluice apply FILE` adds them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Name = Annotated[str, typer.Argument(help="Name of a server.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Yes = Annotated[bool, typer.Option("--yes", help="Skip the confirmation.")]


@commands.command("list", epilog="Example:\n\n\b\n  sluice servers list --tenant acme")
@placed()
def list_(target: CommandTarget, *, json: Json = False) -> None:
    """List servers with their state. `GET /api/v1/servers` of a running service tells of their connections, too."""
    from app.api.servers.answers import ServerAnswer, server_answer
    from app.cli.host import caller_for

    async def here(host: "Services") -> "list[ServerAnswer]":
        records = await host.servers.list(caller_for(target.here))
        return [server_answer(record, host.upstreams) for record in records]

    servers = target.do(
        here, lambda service: [ServerAnswer.model_validate(each) for each in service.pages(_PATH)]
    )
    if json:
        show_json([server.model_dump(mode="json", exclude={"status"}) for server in servers])
    else:
        show_table(
            ("NAME", "STATE", "ORIGIN", "TYPE", "APPROVED"),
            [
                (server.name, server.state, server.origin, server.settings["type"], server.approved)
                for server in servers
            ],
        )


@commands.command(epilog="Example:\n\n\b\n  sluice servers show github")
@placed()
def show(target: CommandTarget, name: Name) -> None:
    """Show the settings of a server as JSON. Of secrets, only the names are shown."""
    from app.api.servers.answers import ServerAnswer, server_answer
    from app.cli.host import caller_for

    async def here(host: "Services") -> "ServerAnswer":
        detail = await host.servers.get(caller_for(target.here), name)
        return server_answer(detail.record, host.upstreams)

    shown = target.do(here, lambda service: ServerAnswer.model_validate(service.ask("GET", _path(name))))
    show_json(shown.model_dump(mode="json", exclude={"status"}))


@commands.command("test", epilog="Example:\n\n\b\n  sluice servers test github")
@placed()
def try_out(target: CommandTarget, name: Name, *, json: Json = False) -> None:
    """Connect to a server from this host, or from the service, and list what it offers and what is approved."""
    from app.api.servers.answers import TrialAnswer, trial_answer
    from app.cli.host import caller_for

    async def here(host: "Services") -> "TrialAnswer":
        return trial_answer(await host.servers.test(caller_for(target.here), name))

    trial = target.do(
        here, lambda service: TrialAnswer.model_validate(service.ask("POST", _path(name, "/test")))
    )
    if json:
        show_json(trial.model_dump(mode="json"))
    elif trial.ready:
        counts = ", ".join(f"{count} {kind}s" for kind, count in trial.status.offered.items()) or "nothing"
        show_text(f"{name} speaks {trial.status.protocol_version} and offers {counts}.")
        _show_definitions(trial.primitives)
        if trial.status.quarantined:
            note(f"To serve what is quarantined: sluice servers approve {name}")
    if not trial.ready:
        fail(trial.status.error or f"{name} did not answer in time.", FAILED)


@commands.command(
    epilog="""Examples:

\b
  sluice servers approve github
  sluice servers approve github --only tool:list_issues --only prompt:triage"""
)
@placed()
def approve(
    target: CommandTarget,
    name: Name,
    only: Annotated[
        list[str] | None, typer.Option(metavar="KIND:NAME", help="Approve only this definition. Repeatable.")
    ] = None,
) -> None:
    """Connect to a server and approve what it offers now. A running service serves it at once."""
    from app.api.servers.answers import ApprovalAnswer, approval_answer
    from app.cli.host import caller_for

    wanted = [_wanted(definition) for definition in only] if only else None
    listed = [{"kind": each.kind.value, "name": each.name} for each in wanted or []]

    async def here(host: "Services") -> "ApprovalAnswer":
        return approval_answer(await host.servers.approve(caller_for(target.here), name, wanted))

    def there(service: "ServiceCalls") -> "ApprovalAnswer":
        body = {"primitives": listed} if wanted else None
        return ApprovalAnswer.model_validate(service.ask("POST", _path(name, "/approve"), body))

    done = target.do(here, there)
    show_text(f"{name} is approved; this approved {done.approved} definitions.")
    if done.held_back:
        note("Quarantined:")
        _show_definitions(done.held_back)


@commands.command(epilog="Example:\n\n\b\n  sluice servers pause github")
@placed()
def pause(target: CommandTarget, name: Name) -> None:
    """Stop serving a server until it is resumed."""
    from app.cli.host import caller_for

    async def here(host: "Services") -> object:
        return await host.servers.pause(caller_for(target.here), name)

    target.do(here, lambda service: service.ask("POST", _path(name, "/pause")))
    show_text(f"{name} is paused.")


@commands.command(epilog="Example:\n\n\b\n  sluice servers resume github")
@placed()
def resume(target: CommandTarget, name: Name) -> None:
    """Serve a paused server again. A server that was never approved waits for approval."""
    from app.api.servers.answers import ServerAnswer
    from app.cli.host import caller_for

    async def here(host: "Services") -> str:
        return (await host.servers.resume(caller_for(target.here), name)).stored.state

    state = target.do(
        here, lambda service: ServerAnswer.model_validate(service.ask("POST", _path(name, "/resume"))).state
    )
    show_text(f"{name} is {state}.")


@commands.command(epilog="Example:\n\n\b\n  sluice servers remove github --yes")
@placed()
def remove(target: CommandTarget, name: Name, *, yes: Yes = False) -> None:
    """Remove a server, its secrets and its approvals. Applying a file that declares it adds it again."""
    from app.cli.host import caller_for

    async def here(host: "Services") -> None:
        await host.servers.remove(caller_for(target.here), name, host=True)

    target.confirm(f"Remove the server {name} and all its approvals?", yes=yes)
    target.do(here, lambda service: service.ask("DELETE", _path(name)))
    show_text(f"{name} is removed.")


@commands.command(epilog="Example:\n\n\b\n  sluice servers grants --tenant acme")
@placed()
def grants(target: CommandTarget, *, json: Json = False) -> None:
    """List what people granted for servers that are called with their rights, without any token."""
    from app.api.servers.grants import GrantAnswer
    from app.cli.host import caller_for

    async def here(host: "Services") -> "list[GrantAnswer]":
        stored = await host.users.grants.list(caller_for(target.here))
        return [GrantAnswer.model_validate(grant) for grant in stored]

    stored = target.do(
        here,
        lambda service: [GrantAnswer.model_validate(grant) for grant in service.ask("GET", _GRANTS)["items"]],
    )
    rows = [(grant.server, grant.holder, grant.issuer, grant.created, grant.updated) for grant in stored]
    if json:
        names = ("server", "holder", "issuer", "created", "updated")
        show_json([dict(zip(names, row, strict=True)) for row in rows])
    else:
        show_table(("SERVER", "HOLDER", "ISSUER", "CREATED", "UPDATED"), rows)


@commands.command(epilog="Example:\n\n\b\n  sluice servers revoke tickets sub-0f1e2d3c4b5a69788796a5b4 --yes")
@placed()
def revoke(
    target: CommandTarget,
    name: Name,
    holder: Annotated[str, typer.Argument(help="Whose grant, as `sluice servers grants` lists it.")],
    *,
    yes: Yes = False,
) -> None:
    """Take back what somebody granted for a server, and tell its authorization server."""
    from app.cli.calls import segment
    from app.cli.host import caller_for

    async def here(host: "Services") -> None:
        await host.users.grants.revoke(caller_for(target.here), name, holder)

    target.confirm(f"Take back the grant of {holder} for the server {name}?", yes=yes)
    target.do(here, lambda service: service.ask("DELETE", f"{_GRANTS}/{segment(name)}", holder=holder))
    show_text(f"The grant of {holder} for {name} is taken back.")


def _path(name: str, action: str = "") -> str:
    from app.cli.calls import segment

    return f"{_PATH}/{segment(name)}{action}"


def _wanted(text: str) -> "WantedDefinition":
    from app.core.catalog.primitives import PrimitiveKind
    from app.services.servers.approval import WantedDefinition

    kind, colon, name = text.partition(":")
    if not colon or not name or kind not in {"tool", "prompt", "template", "instructions"}:
        fail(
            "Write a definition as tool:NAME, prompt:NAME, template:NAME or instructions:instructions.", USAGE
        )
    return WantedDefinition(PrimitiveKind(kind), name)


def _show_definitions(primitives: "list[PrimitiveAnswer]") -> None:
    show_table(
        ("KIND", "NAME", "STATE"),
        [(primitive.kind, primitive.name, primitive.state) for primitive in primitives],
    )
