"""``sluice invoke``: run one middleware of a running service on a text or a context."""

import json as json_module
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli.remote import DEFAULT_URL, Key, Timeout, Url, service
from app.cli.terminal import FAILED, USAGE, fail, note, show_json

EPILOG = """Examples:

\b
  echo "My name is John Doe" | sluice invoke pii_redaction --scope talk-1
  echo "Dear [PERSON_1]" | sluice invoke pii_restoration --scope talk-1
  sluice invoke pii_redaction letter.txt --argument aggressiveness=strict
  sluice invoke pii_redaction context.json --json | jq .metadata
  sluice invoke timestamp_injector --arguments '{"timezone": "Europe/Berlin"}' < question.txt

Input is a context, or one item of it, if it is JSON whose objects have a type or a role; everything else is text.
--text and --context override this. Text input gives text output, a context gives JSON."""

LONG_INPUT = 64 * 1024
BAR_WIDTH = 28


def invoke(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of a middleware; `sluice middleware` lists them.")
    ],
    file: Annotated[
        str, typer.Argument(metavar="[FILE]", help="File to read; - is standard input.", show_default=False)
    ] = "-",
    argument: Annotated[
        list[str] | None,
        typer.Option("--argument", "-a", help="key=value; JSON values are parsed. Repeatable."),
    ] = None,
    arguments: Annotated[str | None, typer.Option(help="All arguments as one JSON object.")] = None,
    scope: Annotated[str | None, typer.Option(help="Vault scope; the same as --argument scope=….")] = None,
    url: Url = DEFAULT_URL,
    key: Key = None,
    timeout: Timeout = 60.0,
    *,
    text: Annotated[bool, typer.Option("--text", help="Send the input as text, even if JSON.")] = False,
    context: Annotated[bool, typer.Option("--context", help="Require a JSON context as input.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print content and metadata as JSON.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print metadata to stderr.")] = False,
) -> None:
    """Run one middleware on a text or a context.

    The result goes to standard output. A redaction without --scope prints the name of its new scope on standard error.
    """
    if text and context:
        fail("Use either --text or --context, not both.", USAGE)
    values = read_arguments(arguments, argument or [], scope)
    raw = read_input(file)
    items = None if text else parsed_items(raw, required=context)
    bar = Bar() if len(raw) >= LONG_INPUT and sys.stderr.isatty() else None
    with service(url, key, timeout) as calls:
        sent = [{"type": "text", "text": raw.removesuffix("\n")}] if items is None else items
        content, metadata = calls.invoke(name, sent, values, bar.show if bar else None)
    if bar:
        bar.clear()
    scope_made = metadata.get("scope")
    if json:
        show_json({"content": content, "metadata": metadata})
    elif items is None:
        print(text_of(content))
    else:
        show_json(content)
    if verbose and not json:
        note(json_module.dumps(metadata, ensure_ascii=False))
    elif scope_made and scope_made != values.get("scope") and not json:
        note(f"scope: {scope_made}")


def text_of(content: list[Any]) -> str:
    """Return the answer to a text: what its text items hold, one after the other."""
    texts = [item if isinstance(item, str) else item.get("text") for item in content]
    if not all(isinstance(text, str) for text in texts):
        fail("The answer is no plain text: use --json.", FAILED)
    return "\n".join(texts)


def read_arguments(whole: str | None, single: list[str], scope: str | None) -> dict[str, Any]:
    """Return the arguments of the middleware; ``--argument`` wins over ``--arguments``."""
    values: dict[str, Any] = {}
    if whole is not None:
        try:
            values = json_module.loads(whole)
        except ValueError:
            fail('--arguments is not valid JSON; write it like \'{"scope": "talk-1"}\'.', USAGE)
        if not isinstance(values, dict):
            fail('--arguments must be a JSON object, like \'{"scope": "talk-1"}\'.', USAGE)
    for pair in single:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            fail(f"--argument {pair!r} has no value: write key=value.", USAGE)
        values[key] = _json_or_text(value)
    if scope is not None:
        values["scope"] = scope
    return values


def _json_or_text(value: str) -> Any:
    try:
        return json_module.loads(value)
    except ValueError:
        return value


def read_input(file: str) -> str:
    """Return the input as text."""
    if file == "-" and sys.stdin.isatty():
        note("Type the text, then press Ctrl+D:")
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return data.decode()
    except UnicodeDecodeError:
        fail("The input is not UTF-8: convert it first, for example with iconv.", FAILED)
    except OSError as error:
        fail(f"{file} cannot be read: {error.strerror}.", USAGE)


def parsed_items(raw: str, *, required: bool) -> list[Any] | None:
    """Return the items of a JSON context, None for a text."""
    try:
        value = json_module.loads(raw)
    except (ValueError, RecursionError):
        value = None
    items = [value] if isinstance(value, dict) else value
    if isinstance(items, list) and (required or all(map(_is_item, items))):
        return items
    if required:
        fail("The input is not a JSON list of items. Omit --context to send it as text.", USAGE)
    return None


def _is_item(value: Any) -> bool:
    """Return whether ``value`` is a content block or a message; other JSON is sent as text."""
    return isinstance(value, dict) and (isinstance(value.get("type"), str) or "role" in value)


class Bar:
    """A progress bar on standard error."""

    def show(self, done: float, whole: float | None) -> None:
        """Draw the completed share."""
        share = min(1.0, done / whole) if whole else 0.0
        full = round(share * BAR_WIDTH)
        bar = "#" * full + "." * (BAR_WIDTH - full)
        print(f"\r[{bar}] {share:4.0%}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Clear the line."""
        print("\r" + " " * (BAR_WIDTH + 8) + "\r", end="", file=sys.stderr, flush=True)
