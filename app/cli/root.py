"""The root of the command line: its commands, and the exit codes of their errors."""

import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from app.cli import apply, config, console, db, directory, providers, servers
from app.cli.access import access, auth, issuers, keys, policies, tenants
from app.cli.audit import audit
from app.cli.catalog import concerns, groups
from app.cli.documents import documents
from app.cli.faults import explained
from app.cli.invoke import invoke, middleware, pii, pipelines
from app.cli.places import why_only_here
from app.cli.serve import serve
from app.cli.status import status
from app.cli.terminal import INTERRUPTED, OK, USAGE, CommandError, note
from app.cli.vault import subjects, vault

HELP = """Sluice redacts, restores and records the messages to and from a language model.

\b
  sluice serve                                  start the service
  echo "I am John Doe" | sluice invoke pii_redaction
  sluice status                                 show what runs, and how to mend what does not
  sluice COMMAND --help                         show help and examples of a command

`middleware` and `invoke` call a running service (SLUICE_URL and SLUICE_API_KEY). All other commands work on this
host with the settings of the service (SLUICE_… variables); many work at a service with --url, which SLUICE_URL never
stands for. `status` does both. docs/command-line.md says where each can work.
"""
EPILOG = (
    "Exit codes: 0 success; 1 refused or failed; 2 wrong usage; 3 the service or its database is unreachable."
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from app import __version__

        print(f"sluice {__version__}")
        raise typer.Exit


def build() -> typer.Typer:
    """Return the command line; each subcommand has a file of its own."""
    root = typer.Typer(
        name="sluice",
        help=HELP,
        epilog=EPILOG,
        rich_markup_mode=None,
        no_args_is_help=True,
        add_completion=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    )
    root.callback()(_options)
    root.command("serve", epilog=serve.EPILOG)(serve.serve)
    root.command("apply", epilog=apply.EPILOG)(apply.apply)
    root.command("invoke", epilog=invoke.EPILOG)(invoke.invoke)
    root.command("middleware", epilog=middleware.EPILOG)(middleware.middleware)
    root.command("status", epilog=status.EPILOG)(status.status)
    root.command("console", epilog=console.EPILOG)(console.console)
    root.command("config", epilog=config.EPILOG)(config.config)
    root.add_typer(db.commands, name="db")
    root.add_typer(directory.commands, name="directory")
    root.add_typer(keys.commands, name="keys")
    root.add_typer(issuers.commands, name="issuers")
    root.add_typer(access.commands, name="access")
    root.add_typer(auth.commands, name="auth")
    root.add_typer(tenants.commands, name="tenants")
    root.add_typer(subjects.commands, name="subjects")
    root.add_typer(servers.commands, name="servers")
    root.add_typer(providers.commands, name="providers")
    root.add_typer(groups.commands, name="groups")
    root.add_typer(concerns.commands, name="concerns")
    root.add_typer(pii.commands, name="pii")
    root.add_typer(pipelines.commands, name="pipelines")
    root.add_typer(policies.commands, name="policies")
    root.add_typer(documents.commands, name="documents")
    root.add_typer(audit.commands, name="audit")
    root.add_typer(vault.commands, name="vault")
    return root


def _options(
    *,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Take the options of all commands; the help of the root stands above."""


def run(arguments: Sequence[str]) -> int:
    """Run one command and return the exit code; every expected failure is one sentence on standard error."""
    try:
        ended = build()(list(arguments), prog_name="sluice", standalone_mode=False)
    except CommandError as error:
        return _report(error.code, error.sentence)
    except typer.TyperException as error:
        return _wrong_usage(error)
    except typer.Abort:
        ended = INTERRUPTED
    except BrokenPipeError:
        # The reader closed the pipe (`| head`); without this the interpreter reports it again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        ended = OK
    except Exception as error:
        explanation = explained(error)
        if explanation is None:
            raise
        return _report(explanation[0], *explanation[1])
    return ended if isinstance(ended, int) else OK


def _report(code: int, *sentences: str) -> int:
    for sentence in sentences:
        note(f"sluice: {sentence}")
    return code


def _wrong_usage(error: typer.TyperException) -> int:
    """Report what is wrong with the command line and where its help is."""
    context = getattr(error, "ctx", None)
    message = error.format_message()
    if context is None or message == context.get_help():
        note(message)  # no command was given: show the help
        return USAGE
    if getattr(error, "option_name", None) == "--url":
        why = why_only_here(context.command_path.partition(" ")[2])
        if why is not None:
            return _report(USAGE, f"This command has no --url: {why}")
    return _report(USAGE, f"{message.rstrip('.')}. See: {context.command_path} --help")
