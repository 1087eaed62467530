"""``sluice servers``: administer upstream MCP servers on the host."""

from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.terminal import FAILED, USAGE, confirm, fail, note, show_json, show_table

if TYPE_CHECKING:
    from app.api.servers.answers import PrimitiveAnswer, ServerAnswer
    from app.assembly import Services
    from app.services.servers.approval import WantedDefinition

commands = typer.Typer(
    help="List, test, approve, pause and remove MCP servers. `sluice apply FILE` adds them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Name = Annotated[str, typer.Argument(help="Name of a server.")]
Tenant = Annotated[str, typer.Option(help="Name of the tenant.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Yes = Annotated[bool, typer.Option("--yes", help="Skip the confirmation.")]


@commands.command("list", epilog="Example:\n\n\b\n  sluice servers list --tenant acme")
def list_(tenant: Tenant = "default", *, json: Json = False) -> None:
    """List servers with their state. The running service reports their connections (GET /api/v1/servers)."""
    from app.api.servers.answers import server_answer
    from app.cli.host import caller_for, on_host

    async def listed(host: "Services") -> "list[ServerAnswer]":
        records = await host.servers.list(caller_for(tenant))
        return [server_answer(record, host.upstreams) for record in records]

    servers = on_host(listed)
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
def show(name: Name, tenant: Tenant = "default") -> None:
    """Show the settings of a server as JSON. Of secrets, only the names are shown."""
    from app.api.servers.answers import server_answer
    from app.cli.host import caller_for, on_host

    async def shown(host: "Services") -> "ServerAnswer":
        detail = await host.servers.get(caller_for(tenant), name)
        return server_answer(detail.record, host.upstreams)

    show_json(on_host(shown).model_dump(mode="json", exclude={"status"}))


@commands.command("test", epilog="Example:\n\n\b\n  sluice servers test github")
def try_out(name: Name, tenant: Tenant = "default", *, json: Json = False) -> None:
    """Connect to a server from this host and list what it offers and what is approved."""
    from app.api.servers.answers import trial_answer
    from app.cli.host import caller_for, on_host

    trial = trial_answer(on_host(lambda host: host.servers.test(caller_for(tenant), name)))
    if json:
        show_json(trial.model_dump(mode="json"))
    elif trial.ready:
        counts = ", ".join(f"{count} {kind}s" for kind, count in trial.status.offered.items()) or "nothing"
        print(f"{name} speaks {trial.status.protocol_version} and offers {counts}.")
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
def approve(
    name: Name,
    tenant: Tenant = "default",
    only: Annotated[
        list[str] | None, typer.Option(metavar="KIND:NAME", help="Approve only this definition. Repeatable.")
    ] = None,
) -> None:
    """Connect to a server and approve what it offers now. A running service serves it at once."""
    from app.api.servers.answers import approval_answer
    from app.cli.host import caller_for, on_host

    wanted = [_wanted(definition) for definition in only] if only else None
    done = approval_answer(on_host(lambda host: host.servers.approve(caller_for(tenant), name, wanted)))
    print(f"{name} is approved; this approved {done.approved} definitions.")
    if done.held_back:
        note("Quarantined:")
        _show_definitions(done.held_back)


@commands.command(epilog="Example:\n\n\b\n  sluice servers pause github")
def pause(name: Name, tenant: Tenant = "default") -> None:
    """Stop serving a server until it is resumed."""
    from app.cli.host import caller_for, on_host

    on_host(lambda host: host.servers.pause(caller_for(tenant), name))
    print(f"{name} is paused.")


@commands.command(epilog="Example:\n\n\b\n  sluice servers resume github")
def resume(name: Name, tenant: Tenant = "default") -> None:
    """Serve a paused server again. A server that was never approved waits for approval."""
    from app.cli.host import caller_for, on_host

    record = on_host(lambda host: host.servers.resume(caller_for(tenant), name))
    print(f"{name} is {record.stored.state}.")


@commands.command(epilog="Example:\n\n\b\n  sluice servers remove github --yes")
def remove(name: Name, tenant: Tenant = "default", *, yes: Yes = False) -> None:
    """Remove a server, its secrets and its approvals. Applying a file that declares it adds it again."""
    from app.cli.host import caller_for, on_host

    confirm(f"Remove the server {name} and all its approvals?", yes=yes)
    on_host(lambda host: host.servers.remove(caller_for(tenant), name, host=True))
    print(f"{name} is removed.")


@commands.command(epilog="Example:\n\n\b\n  sluice servers grants --tenant acme")
def grants(tenant: Tenant = "default", *, json: Json = False) -> None:
    """List what people granted for servers that are called with their rights, without any token."""
    from app.cli.host import caller_for, on_host

    stored = on_host(lambda host: host.users.grants.list(caller_for(tenant)))
    rows = [(grant.server, grant.holder, grant.issuer, grant.created, grant.updated) for grant in stored]
    if json:
        names = ("server", "holder", "issuer", "created", "updated")
        show_json([dict(zip(names, row, strict=True)) for row in rows])
    else:
        show_table(("SERVER", "HOLDER", "ISSUER", "CREATED", "UPDATED"), rows)


@commands.command(epilog="Example:\n\n\b\n  sluice servers revoke tickets sub-0f1e2d3c4b5a69788796a5b4 --yes")
def revoke(
    name: Name,
    holder: Annotated[str, typer.Argument(help="Whose grant, as `sluice servers grants` lists it.")],
    tenant: Tenant = "default",
    *,
    yes: Yes = False,
) -> None:
    """Take back what somebody granted for a server, and tell its authorization server."""
    from app.cli.host import caller_for, on_host

    confirm(f"Take back the grant of {holder} for the server {name}?", yes=yes)
    on_host(lambda host: host.users.grants.revoke(caller_for(tenant), name, holder))
    print(f"The grant of {holder} for {name} is taken back.")


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
