"""Put originals back in place of handles in what a model answered."""

from typing import Any, Literal

from pydantic import Field

from app.core.content.context import Context, Edit, Reveal
from app.core.content.handles import Handle, HandleMatch, find_handles
from app.core.content.leaves import REPORTED_PLACES, Leaf, LeafPlace
from app.core.content.positions import LEFT_CONTEXT, in_active_position
from app.core.contracts.middleware import Arguments, Middleware, Outcome, ScopeName, VaultOptions
from app.core.errors import InvalidArgumentsError
from app.core.offload import off_loop


class PiiRestorationArguments(Arguments):
    """Where the originals come from and where they may be put; ``scope``, ``redactions`` or both."""

    scope: ScopeName | None = Field(
        default=None, description="The vault scope that redaction answered with; needs the role restorer."
    )
    redactions: dict[str, str] | None = Field(
        default=None, description="A map from handle (PERSON_1) to original, kept by the caller."
    )
    exact: bool = Field(
        default=False,
        description="Take only [PERSON_1] as written, not the spellings that models make of it.",
    )
    positions: Literal["safe", "all"] = Field(
        default="safe",
        description="safe never puts originals into URLs, link and image targets, HTML tags and tool arguments; "
        "all is for text that you trust.",
    )
    tools: list[str] = Field(default=[], description="Tools whose arguments are restored in positions safe.")


class PiiRestoration(Middleware[PiiRestorationArguments]):
    """Replace handles by what they stand for."""

    name = "pii_restoration"
    title = "PII restoration"
    description = "Restore PII in model responses using handles"
    phase = "inbound"
    restores = True
    arguments = PiiRestorationArguments

    async def apply(self, context: Context, arguments: PiiRestorationArguments) -> Outcome:
        """One pass per text; inserted values are never scanned again."""
        return await off_loop(context.characters, _restored, context, arguments)


def _restored(context: Context, arguments: PiiRestorationArguments) -> Outcome:
    originals = given_originals(arguments)
    edits: list[Edit] = []
    withheld = unresolved = restored = 0
    for leaf in context.leaves:
        if leaf.place in REPORTED_PLACES:
            continue
        for match in find_handles(leaf.text, exact=arguments.exact):
            if arguments.positions == "safe" and _is_active(leaf, match, arguments.tools):
                withheld += 1
            elif (given := originals.get(match.handle)) is not None:
                restored += 1
                edits.append(Edit(leaf, match.start, match.end, given))
            elif arguments.scope is not None:
                edits.append(Edit(leaf, match.start, match.end, Reveal(match.handle)))
            else:
                unresolved += 1
    metadata: dict[str, Any] = {"unresolved": unresolved + withheld}
    if withheld:
        metadata["withheld"] = withheld
    vault = VaultOptions(scope=arguments.scope, restores=arguments.scope is not None)
    return Outcome(context.edited(edits), metadata, {"restored": restored, "withheld": withheld}, vault)


def given_originals(arguments: PiiRestorationArguments) -> dict[Handle, str]:
    """Return the caller's own map; refuse arguments that name no source of originals."""
    if arguments.redactions is None:
        if arguments.scope is None:
            raise InvalidArgumentsError(
                "Give scope (from the metadata of the redaction) or redactions (a map from handle to original).",
                details={"pointer": "/arguments"},
            )
        return {}
    originals = {}
    for name, original in arguments.redactions.items():
        handle = Handle.parse(name)
        if handle is None:
            raise InvalidArgumentsError(
                "A key of redactions is no handle; a handle looks like PERSON_1.",
                details={"pointer": "/arguments/redactions"},
            )
        originals[handle] = original
    return originals


def _is_active(leaf: Leaf, match: HandleMatch, tools: list[str]) -> bool:
    if leaf.place is LeafPlace.TOOL_INPUT and leaf.tool not in tools:
        return True
    return in_active_position(leaf.text[max(0, match.start - LEFT_CONTEXT) : match.start])
