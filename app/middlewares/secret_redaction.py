"""Replace credentials by handles before a context goes to a model, and in results of tools and models."""

import re
from collections.abc import Sequence
from typing import Any

from pydantic import Field

from app.core.content.context import Context
from app.core.content.leaves import Leaf, LeafPlace
from app.core.content.telling_names import words_of
from app.core.contracts.engines import SecretOptions, Span
from app.core.contracts.middleware import Invocation, Middleware, Outcome
from app.core.contracts.settled_texts import SettledTexts
from app.core.errors import InvalidArgumentsError
from app.core.redaction.member_names import NamedTexts
from app.core.redaction.plan import Mode, RedactionArguments, RedactionPlan, Term

_PREFIX = "SECRET_"
_NUMBERS_PROVIDER = "password"
_NUMBER_NAME = re.compile(
    r"(?:\A| )(?:pin(?: ?code)?|pass ?(?:word|code|phrase|wd)|passwort|kennwort|pwd|secret(?: key)?|(?:api|access) ?key"
    r"|contrase[ñn]a|mot de passe|senha|wachtwoord|otp)\Z"
)
_LEAST_DIGITS = 4


def _secret_number(leaf: Leaf, name: str, allowed: Sequence[str]) -> list[Span]:
    """Return the finding in a JSON number whose own name says that it is a secret; no rule could judge its digits."""
    if leaf.place is not LeafPlace.NUMBER or not leaf.text.isdigit() or len(leaf.text) < _LEAST_DIGITS:
        return []
    if leaf.text in allowed or not _NUMBER_NAME.search(words_of(name)):
        return []
    return [Span(0, len(leaf.text), f"{_PREFIX}{_NUMBERS_PROVIDER.upper()}", 0.6)]


class SecretRedactionArguments(RedactionArguments):
    """What to detect and what to do about it; a tenant's policy may fix any of them."""

    providers: list[Term] | None = Field(
        default=None, description="Detect only secrets of these providers, such as aws or private_key."
    )
    exclude: list[Term] = Field(default=[], description="Providers whose secrets are not detected.")
    entropy: bool = Field(
        default=True,
        description="Also detect random-looking values that are assigned to a name such as password or api_key.",
    )


class SecretRedaction(Middleware[SecretRedactionArguments]):
    """Replace credentials in every text of a context by handles."""

    name = "secret_redaction"
    title = "Secret redaction"
    description = "Remove API keys, passwords, tokens and private keys from context"
    phase = "outbound"
    conceals = True
    arguments = SecretRedactionArguments

    async def apply(self, context: Context, arguments: SecretRedactionArguments) -> Outcome:
        """Redact without a caller."""
        return await self._redacted(context, arguments, SettledTexts())

    async def invoke(
        self, context: Context, arguments: SecretRedactionArguments, invocation: Invocation
    ) -> Outcome:
        """Redact for a caller."""
        return await self._redacted(context, arguments, invocation.settled)

    async def _redacted(
        self, context: Context, arguments: SecretRedactionArguments, settled: SettledTexts
    ) -> Outcome:
        """Scan every leaf; report findings that may not be changed, and never pass a text that was not scanned."""
        options = self._options(arguments)
        modes = self._modes(arguments.mode)
        arguments.refuse_unscanned(context)
        named_texts = NamedTexts(context.leaves)
        findings = await self.engines.secrets.scan(named_texts.texts, options)
        plan = RedactionPlan(arguments, modes, "secrets")
        spans = named_texts.spans_in_values(findings.spans)
        if options.entropy and (options.providers is None or _NUMBERS_PROVIDER in options.providers):
            spans = [
                of_leaf or _secret_number(leaf, named_texts.own_name(place), options.allow_list)
                for place, (leaf, of_leaf) in enumerate(zip(context.leaves, spans, strict=True))
            ]
        edited = await plan.edited(context, spans)
        settled.count(plan.item_counts)
        if findings.report.degraded:
            settled.of_new.clear()  # what a lesser engine saw is looked at again
        metadata: dict[str, Any] = plan.metadata(context)
        return Outcome(edited, metadata, dict(plan.counts), arguments.vault(), engine=findings.report)

    def _options(self, arguments: SecretRedactionArguments) -> SecretOptions:
        excluded = self._providers(arguments.exclude, "/arguments/exclude")
        providers = None
        if arguments.providers is not None:
            providers = self._providers(arguments.providers, "/arguments/providers") - excluded
        elif excluded:
            providers = self.engines.secrets.providers() - excluded
        return SecretOptions(tuple(arguments.allow_list), providers, arguments.entropy)

    def _providers(self, names: list[str], pointer: str) -> frozenset[str]:
        return frozenset(self._provider(name, f"{pointer}/{index}") for index, name in enumerate(names))

    def _provider(self, name: str, pointer: str) -> str:
        provider = name.lower().removeprefix(_PREFIX.lower())
        known_providers = self.engines.secrets.providers()
        if provider not in known_providers:
            raise InvalidArgumentsError(
                "Unknown provider of secrets; details list the known ones.",
                details={"pointer": pointer, "known": sorted(known_providers)},
            )
        return provider

    def _modes(self, mode: Mode | dict[str, Mode]) -> dict[str, Mode]:
        if isinstance(mode, str):
            return {"": mode}
        return {
            _PREFIX + self._provider(name, "/arguments/mode").upper(): provider_mode
            for name, provider_mode in mode.items()
        }
