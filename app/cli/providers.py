"""``sluice providers``: administer model providers, on the host or at a service."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli.target import CommandTarget, placed
from app.cli.terminal import FAILED, fail, show_json, show_table, show_text

if TYPE_CHECKING:
    from app.api.gateway.providers import ProviderTrialAnswer, StoredProviderAnswer
    from app.assembly import Services

_PATH = "/api/v1/providers"

commands = typer.Typer(
    help="List, store, test and remove model providers, to which the gateway sends requests.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Name = Annotated[str, typer.Argument(help="Name of a provider.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Yes = Annotated[bool, typer.Option("--yes", help="Skip the confirmation.")]


@commands.command("list", epilog="Example:\n\n\b\n  sluice providers list --tenant acme")
@placed()
def list_(target: CommandTarget, *, json: Json = False) -> None:
    """List providers in order of name. Secrets are never shown."""
    from app.api.gateway.providers import provider_answer
    from app.cli.host import caller_for

    async def here(host: "Services") -> "list[StoredProviderAnswer]":
        return [provider_answer(record) for record in await host.providers.list(caller_for(target.here))]

    providers = target.do(here, lambda service: [_stored(each) for each in service.pages(_PATH)])
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
@placed()
def get(target: CommandTarget, name: Name) -> None:
    """Show a provider as JSON. Of extra headers, only the names are shown; of the key, whether there is one."""
    from app.api.gateway.providers import provider_answer
    from app.cli.host import caller_for

    async def here(host: "Services") -> "StoredProviderAnswer":
        return provider_answer(await host.providers.get(caller_for(target.here), name))

    shown = target.do(here, lambda service: _stored(service.ask("GET", _path(name))))
    show_json(shown.model_dump(mode="json"))


@commands.command(
    epilog="""Examples:

\b
  sluice providers put main provider.yaml
  echo '{kind: openai, baseUrl: "https://api.openai.com/v1", apiKey: "${OPENAI_API_KEY}"}' |
    sluice providers put main -"""
)
@placed()
def put(
    target: CommandTarget,
    name: Name,
    file: Annotated[
        Path,
        typer.Argument(
            help="File with a provider, JSON or YAML, in the form of the declarative file; - is standard input.",
            show_default=False,
        ),
    ],
) -> None:
    """Store a provider, or replace the settings of one; a key that the file leaves out stays as it is.

    ${NAME} in the file is a variable of the environment, so that no key needs to stand in it.
    """
    from app.api.gateway.providers import provider_answer
    from app.cli.host import caller_for
    from app.services.gateway.provider_sealing import SubmittedProvider

    document = _read(file, name)

    async def here(host: "Services") -> "StoredProviderAnswer":
        submitted = SubmittedProvider(document)
        return provider_answer(await host.providers.put(caller_for(target.here), name, submitted, host=True))

    done = target.do(here, lambda service: _stored(service.ask("PUT", _path(name), document)))
    show_text(f"{done.name} is stored with order {done.order}. To try it: sluice providers test {done.name}")


@commands.command(epilog="Example:\n\n\b\n  sluice providers delete main --yes")
@placed()
def delete(target: CommandTarget, name: Name, *, yes: Yes = False) -> None:
    """Remove a provider and its secrets. Applying a file that declares it adds it again."""
    from app.cli.host import caller_for

    async def here(host: "Services") -> None:
        await host.providers.remove(caller_for(target.here), name, host=True)

    target.confirm(f"Remove the provider {name} and its key?", yes=yes)
    target.do(here, lambda service: service.ask("DELETE", _path(name)))
    show_text(f"{name} is removed.")


@commands.command("test", epilog="Example:\n\n\b\n  sluice providers test main")
@placed()
def try_out(target: CommandTarget, name: Name, *, json: Json = False) -> None:
    """Ask a provider for its models from this host, or from the service, with the stored key."""
    from app.api.gateway.providers import ProviderTrialAnswer
    from app.cli.host import caller_for

    async def here(host: "Services") -> "ProviderTrialAnswer":
        return ProviderTrialAnswer.model_validate(await host.providers.test(caller_for(target.here), name))

    trial = target.do(
        here, lambda service: ProviderTrialAnswer.model_validate(service.ask("POST", _path(name, "/test")))
    )
    if json:
        show_json(trial.model_dump(mode="json"))
    elif trial.ready:
        show_text(f"{name} answers. Models that may be used: {', '.join(trial.models) or 'none'}.")
    if not trial.ready:
        fail(trial.error or f"{name} did not answer in time.", FAILED)


def _path(name: str, action: str = "") -> str:
    from app.cli.calls import segment

    return f"{_PATH}/{segment(name)}{action}"


def _stored(answered: object) -> "StoredProviderAnswer":
    from app.api.gateway.providers import StoredProviderAnswer

    return StoredProviderAnswer.model_validate(answered)


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
