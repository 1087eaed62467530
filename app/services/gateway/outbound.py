"""Hide what one request holds: pipelines over its texts, then a last look at the bytes that would leave."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from app.core.content.handles import Handle
from app.core.contracts.policy_steps import Step
from app.core.contracts.settled_texts import SettledTexts, SettledTextsChangedError
from app.core.gateway.channels import Path
from app.core.gateway.member_table import LeafRole
from app.core.gateway.offsets import OffsetMap, document_maps
from app.core.gateway.requests import GatewayRequest
from app.core.offload import LIGHT, off_loop
from app.services.gateway import egress
from app.services.gateway.pipeline_use import PipelineUse
from app.services.gateway.request_vaults import RequestVault
from app.services.gateway.settled_items import SettledPart, parted, terms_of
from app.services.gateway.signed_reasoning import SignedBlocks

_FILTER: Final = "tool_filter"
_CONVERSATION: Final = frozenset({LeafRole.SYSTEM, LeafRole.USER, LeafRole.ASSISTANT, LeafRole.TOOL_RESULT})
_UNTOUCHED: Final = frozenset({LeafRole.SIGNED, LeafRole.MACHINE})


@dataclass(frozen=True, slots=True)
class Outbound:
    """Turns a request into the bytes that may leave, in the vault that this request sees."""

    use: PipelineUse
    vault: RequestVault
    signed: SignedBlocks

    async def redacted(self, request: GatewayRequest, steps: Sequence[Step]) -> GatewayRequest:
        """Return the request as ``steps`` leave it.

        ``system`` and ``tools`` get handles of the tenant's stable scope where the conversation has one; the messages
        then use these handles, too. Signed blocks are those that the provider signed; SignedBlockGoneError if one of
        them is gone.
        """
        hiding = [step for step in steps if step.name != _FILTER]
        changed = request.changed(await self._items(request, hiding))
        for step in steps:
            if step.name == _FILTER:
                changed = await self._filtered(changed, step)
        if not request.signed:
            return changed
        blocks = await self.signed.fetch(self.vault, [block.digest for block in request.signed])
        return changed.with_signed({digest: raw.decode() for digest, raw in blocks.items()})

    async def _filtered(self, request: GatewayRequest, step: Step) -> GatewayRequest:
        """Return the request with those of the client's tools that ``step`` finds relevant to the conversation.

        Tools of the provider, those that ``tool_choice`` names, and all where none is relevant, stay.
        """
        offered = {tool.name: tool for tool in request.client_tools}
        if not offered:
            return request
        definitions = [tool.definition for tool in offered.values()]
        arguments = {"availableTools": definitions, **step.arguments}
        asked = step.model_copy(update={"arguments": arguments})
        items = [request.items[number] for number in request.numbers(_CONVERSATION)]
        report = await self.use.report(asked, items, self.vault.scope.name)
        if "suggestedToolSet" not in report:
            return request  # the step failed, and is one that may be skipped
        kept = {*report["suggestedToolSet"], *request.chosen_tools}
        dropped = {tool.number for name, tool in offered.items() if name not in kept}
        return request.without_tools(dropped) if len(dropped) < len(offered) else request

    async def observed(self, request: GatewayRequest, steps: Sequence[Step]) -> None:
        """Count what ``steps`` would hide, and change nothing."""
        await self.use.run(steps, request.items, self.vault.scope.name, observe=True)

    async def checked(
        self, request: GatewayRequest, note: str | None
    ) -> tuple[GatewayRequest, bytes, Mapping[str, int]]:
        """Return the request that leaves and its bytes, without any original that this conversation knows.

        The bytes hold the ``note``; the request is read again with it only where a text was replaced. The last of the
        three counts what was replaced, by label.

        Raises EgressRefusedError where an original stands in a place that cannot be changed.
        """
        body = await off_loop(len(request.edited.body.text) // LIGHT, request.to_bytes, note)

        def noted() -> GatewayRequest:
            return request if note is None else request.with_note(note)

        result = await egress.checked(self.vault, body, lambda: _changeable(noted()))
        if not result.replaced:
            return request, body, result.counts
        request = noted().replaced(result.replaced)
        return request, request.to_bytes(), result.counts

    async def documents(self, came: GatewayRequest, sent: GatewayRequest) -> Sequence[OffsetMap]:
        """Return for each document how offsets in the text that the model sees lead back to the caller's text."""
        after = sent.documents
        if not after:
            return ()
        maps = partial(document_maps, after, came.documents, self.vault.original)
        return await off_loop(sum(map(len, after)) // LIGHT, lambda: tuple(maps()))

    def changed_prefixes(self, came: GatewayRequest, sent: GatewayRequest) -> int:
        """Return how many texts of ``came`` left in an earlier turn in another form than they have now in ``sent``."""
        pairs = list(came.edited.forms(sent.edited))
        return self.vault.count_changed([before for before, _ in pairs], [after for _, after in pairs])

    async def _items(self, request: GatewayRequest, steps: Sequence[Step]) -> list[Any]:
        scope, items = self.vault.scope, list(request.items)
        # What instructs in between is no part of the prefix that conversations share.
        stable = request.opening if scope.stable is not None else []
        added: list[Any] = []
        if scope.stable is not None:
            added += await self._part(items, stable, steps, scope.stable)
            self.vault.share_opening()
        own = [number for number in range(len(items)) if number not in stable]
        return [*added, *await self._part(items, own, steps, scope.name), *items]

    async def _part(
        self, items: list[Any], numbers: list[int], steps: Sequence[Step], scope: str
    ) -> list[Any]:
        """Run the pipeline over some of ``items``, put the results in their places and return what it added.

        Messages that an earlier turn showed take the form that they had then.
        """
        if not numbers:
            return []
        terms = terms_of(
            steps, self.use.policy_version, self.vault.shared if scope == self.vault.scope.name else ()
        )
        part = parted([items[number] for number in numbers], self.vault.settled(scope), terms)
        texts, changed = await self._run(part, steps, scope)
        added = len(changed) - len(part.rest)
        kept = self.vault.settled(scope)
        if kept is not None:
            part.settle(kept, changed[added:], texts)
        for settled in part.settled.values():
            self.use.findings.update(settled.counts)
            for place in settled.handles:
                self.vault.meet(Handle(*place))
        for number, item in zip(numbers, part.merged(changed[added:]), strict=True):
            items[number] = item
        return changed[:added]

    async def _run(
        self, part: SettledPart, steps: Sequence[Step], scope: str
    ) -> tuple[SettledTexts, list[Any]]:
        """Run the pipeline over what is not settled, and over settled items in which something else is found now."""
        while True:
            texts = part.texts()
            items = [part.items[number] for number in part.rest]
            try:
                return texts, await self.use.run(steps, items, scope, settled=texts)
            except SettledTextsChangedError as error:
                part.unsettle(error.numbers)


def _changeable(request: GatewayRequest) -> Collection[Path]:
    """Return the paths of the texts that may still be changed."""
    return {leaf.path for leaf in request.leaves() if leaf.role not in _UNTOUCHED}
