"""Every command says where it can work, and the page says the same."""

import pytest
from typer.main import get_command

from app.cli.places import CLIENTS, ONLY_HERE, OTHERWISE_THERE, placed_commands, why_only_here
from app.cli.root import build, run
from docs.generate import ROOT, render_commands

ROOT_COMMAND = get_command(build())
COMMANDS = {each.path: each for each in placed_commands(ROOT_COMMAND)}


def options_of(path):
    """Return the options of a command by name."""
    command = ROOT_COMMAND
    for step in path.split():
        command = command.commands[step]
    return {option.name: option for option in command.params}


def test_the_page_is_that_of_the_commands():
    assert (ROOT / "docs/command-line.md").read_text(encoding="utf-8") == render_commands()


def test_every_command_works_somewhere_and_says_why_it_works_on_this_host_alone():
    assert len(COMMANDS) > 70
    for path, command in COMMANDS.items():
        assert command.here or command.there, path
        assert bool(why_only_here(path)) == (not command.there), path
        assert command.there == (path in CLIENTS or ("url" in options_of(path) and path != "console")), path
    groups = {path.partition(" ")[0] for path in COMMANDS}
    assert ONLY_HERE.keys() <= COMMANDS.keys() | groups
    assert OTHERWISE_THERE.keys() <= {path for path, each in COMMANDS.items() if each.there and each.here}


def test_the_environment_sends_no_command_away_but_clients():
    moved = {
        path
        for path in COMMANDS
        if (url := options_of(path).get("url")) is not None and url.envvar and path != "console"
    }
    assert moved == CLIENTS - {"auth status"}


@pytest.mark.parametrize(
    "path", [path for path, each in COMMANDS.items() if not each.there and path != "console"]
)
def test_a_command_without_url_says_in_one_sentence_why(path, capsys):
    assert run([*path.split(), "--url", "https://sluice.example.com"]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", f"sluice: This command has no --url: {why_only_here(path)}\n")


def test_another_unknown_option_is_an_ordinary_mistake(capsys):
    assert run(["vault", "rewrap", "--uri", "x"]) == 2
    assert "No such option" in capsys.readouterr().err
