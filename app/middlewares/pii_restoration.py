"""Restore originals in place of handles in a model's answer."""

from typing import Any, Literal

from pydantic import Field

from app.core.content.context import Context
from app.core.content.handles import HANDLES_LEFT, Handle, count_handles, find_handles
from app.core.content.leaf_positions import judged_handles
from app.core.content.leaves import REPORTED_PLACES, LeafPlace
from app.core.content.text_edits import Edit, Reveal
from app.core.contracts.middleware import Arguments, Middleware, Outcome, ScopeName, VaultOptions
from app.core.errors import InvalidArgumentsError
from app.core.offload import off_loop


class PiiRestorationArguments(Arguments):
    """Where originals come from (``scope``, ``redactions`` or both), and where they may be restored."""

    scope: ScopeName | None = Field(
        default=None, description="The vault scope that redaction returned; needs the role restorer."
    )
    redactions: dict[str, str] | None = Field(
        default=None, description="A map from handle (PERSON_1) to original, kept by the caller."
    )
    exact: bool = Field(
        default=False,
        description="Match only exact handles such as [PERSON_1], not spellings that models alter.",
    )
    positions: Literal["safe", "all"] = Field(
        default="safe",
        description="safe: never restore in addresses, link targets, HTML tags and what they run, formulas, commands "
        "that send, and tool calls; all: restore everywhere, only for text that you trust.",
    )
    tools: list[str] = Field(
        default=[], description="Tools whose arguments are restored even if positions is safe."
    )


class PiiRestoration(Middleware[PiiRestorationArguments]):
    """Replace handles by their originals."""

    name = "pii_restoration"
    title = "PII restoration"
    description = "Restore PII in model responses using handles"
    phase = "inbound"
    restores = True
    arguments = PiiRestorationArguments

    async def apply(self, context: Context, arguments: PiiRestorationArguments) -> Outcome:
        """Restore in one pass per text; inserted values are never scanned again."""
        return await off_loop(context.characters, _restore, context, arguments)


def _restore(context: Context, arguments: PiiRestorationArguments) -> Outcome:
    originals = given_originals(arguments)
    edits: list[Edit] = []
    withheld = unresolved = restored = left = 0
    for leaf in context.leaves:
        if leaf.place in REPORTED_PLACES:
            left += count_handles(leaf.text)
        elif arguments.exact:
            left += count_handles(leaf.text) - sum(1 for _ in find_handles(leaf.text, exact=True))
    safe = arguments.positions == "safe"
    for leaf, match, is_active in judged_handles(context.leaves, exact=arguments.exact, safe=safe):
        is_argument = leaf.place is LeafPlace.TOOL_INPUT and leaf.tool not in arguments.tools
        if is_active or (safe and is_argument):
            withheld += 1
        elif (original := originals.get(match.handle)) is not None:
            restored += 1
            left += count_handles(original)
            edits.append(Edit(leaf, match.start, match.end, original))
        elif arguments.scope is not None:
            edits.append(Edit(leaf, match.start, match.end, Reveal(match.handle)))
        else:
            unresolved += 1
    metadata: dict[str, Any] = {"unresolved": unresolved + withheld}
    if withheld:
        metadata["withheld"] = withheld
    if left + unresolved + withheld:
        metadata[HANDLES_LEFT] = left + unresolved + withheld
    vault = VaultOptions(scope=arguments.scope, restores=arguments.scope is not None)
    return Outcome(context.edited(edits), metadata, {"restored": restored, "withheld": withheld}, vault)


def given_originals(arguments: PiiRestorationArguments) -> dict[Handle, str]:
    """Return the caller's own map by handle; raise InvalidArgumentsError without any source of originals."""
    if arguments.redactions is None:
        if arguments.scope is None:
            raise InvalidArgumentsError(
                "Send scope (from the metadata of the redaction) or redactions (a map from handle to original).",
                details={"pointer": "/arguments"},
            )
        return {}
    originals = {}
    for name, original in arguments.redactions.items():
        handle = Handle.parse(name)
        if handle is None:
            raise InvalidArgumentsError(
                "A key of redactions is not a handle; a handle looks like PERSON_1.",
                details={"pointer": "/arguments/redactions"},
            )
        originals[handle] = original
    return originals
