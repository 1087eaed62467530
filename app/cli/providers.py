"""``sluice providers``: administer model providers on the host."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli.terminal import FAILED, confirm, fail, show_json, show_table

if TYPE_CHECKING:
    from app.api.gateway.providers import StoredProviderAnswer
    from app.assembly import Services

commands = typer.Typer(
    help="List, store, test and remove model providers, to which the gateway sends requests.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Name = Annotated[str, typer.Argument(help="Name of a provider.")]
Tenant = Annotated[str, typer.Option(help="Name of the tenant.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Yes = Annotated[bool, typer.Option("--yes", help="Skip the confirmation.")]


@commands.command("list", epilog="Example:\n\n\b\n  sluice providers list --tenant acme")
def list_(tenant: Tenant = "default", *, json: Json = False) -> None:
    """List providers in order of name. Secrets are never shown."""
    from app.api.gateway.providers import provider_answer
    from app.cli.host import caller_for, on_host

    async def listed(host: "Services") -> "list[StoredProviderAnswer]":
        return [provider_answer(record) for record in await host.providers.list(caller_for(tenant))]

    providers = on_host(listed)
    if json:
        show_json([provider.model_dump(mode="json") for provider in providers])
    else:
        show_table(
            ("NAME", "KIND", "ORDER", "ORIGIN", "KEY", "ADDRESS", "MODELS"),
            [
                (
                    *(provider.name, provider.kind, provider.order, provider.origin),
                    *("stored" if provider.hasApiKey else None, provider.baseUrl),
                    " ".join([*provider.aliases, *provider.models]),
                )
                for provider in providers
            ],
        )


@commands.command(epilog="Example:\n\n\b\n  sluice providers get main")
def get(name: Name, tenant: Tenant = "default") -> None:
    """Show a provider as JSON. Of extra headers, only the names are shown; of the key, whether there is one."""
    from app.api.gateway.providers import provider_answer
    from app.cli.host import caller_for, on_host

    async def shown(host: "Services") -> "StoredProviderAnswer":
        return provider_answer(await host.providers.get(caller_for(tenant), name))

    show_json(on_host(shown).model_dump(mode="json"))


@commands.command(
    epilog="""Examples:

\b
  sluice providers put main provider.yaml
  echo '{kind: openai, baseUrl: "https://api.openai.com/v1", apiKey: "${OPENAI_API_KEY}"}' |
    sluice providers put main -"""
)
def put(
    name: Name,
    file: Annotated[
        Path,
        typer.Argument(
            help="File with a provider, JSON or YAML, in the form of the declarative file; - is standard input.",
            show_default=False,
        ),
    ],
    tenant: Tenant = "default",
) -> None:
    """Store a provider, or replace the settings of one; a key that the file leaves out stays as it is.

    ${NAME} in the file is a variable of the environment, so that no key needs to stand in it.
    """
    from app.api.gateway.providers import provider_answer
    from app.cli.host import caller_for, on_host
    from app.services.gateway.provider_sealing import SubmittedProvider

    submitted = SubmittedProvider(_read(file, name))

    async def stored(host: "Services") -> "StoredProviderAnswer":
        return provider_answer(await host.providers.put(caller_for(tenant), name, submitted, host=True))

    done = on_host(stored)
    print(f"{done.name} is stored with order {done.order}. To try it: sluice providers test {done.name}")


@commands.command(epilog="Example:\n\n\b\n  sluice providers delete main --yes")
def delete(name: Name, tenant: Tenant = "default", *, yes: Yes = False) -> None:
    """Remove a provider and its secrets. Applying a file that declares it adds it again."""
    from app.cli.host import caller_for, on_host

    confirm(f"Remove the provider {name} and its key?", yes=yes)
    on_host(lambda host: host.providers.remove(caller_for(tenant), name, host=True))
    print(f"{name} is removed.")


@commands.command("test", epilog="Example:\n\n\b\n  sluice providers test main")
def try_out(name: Name, tenant: Tenant = "default", *, json: Json = False) -> None:
    """Ask a provider for its models from this host, with the stored key."""
    from app.api.gateway.providers import ProviderTrialAnswer
    from app.cli.host import caller_for, on_host

    trial = ProviderTrialAnswer.model_validate(
        on_host(lambda host: host.providers.test(caller_for(tenant), name))
    )
    if json:
        show_json(trial.model_dump(mode="json"))
    elif trial.ready:
        print(f"{name} answers. Models that may be used: {', '.join(trial.models) or 'none'}.")
    if not trial.ready:
        fail(trial.error or f"{name} did not answer in time.", FAILED)


def _read(file: Path, name: str) -> dict[str, Any]:
    """Return the provider in a file, with variables filled in."""
    from app.services.data_files import read_document
    from app.services.declare.declaration_files import filled

    body = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    document = read_document(body, "json" if file.suffix == ".json" else "yaml")
    if not isinstance(document, dict):
        fail("The file must hold one provider: an object with kind, baseUrl and more.")
    if document.get("name") not in (None, name):
        fail(f"The file is about the provider {document['name']!r}; leave name out, or give that name.")
    return filled(document, str(file))
