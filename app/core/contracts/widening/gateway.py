"""How a change of what a policy says of the gateway widens rights; see ``policies``."""

from collections.abc import Iterator, Sequence

from app.core.contracts.gateway_policy import GatewayPolicy, GatewayRoute, ToolArgumentRule


def gateway_widenings(before: GatewayPolicy, after: GatewayPolicy) -> Iterator[tuple[str, str]]:
    """Yield pointer and reason of what ``after`` allows and ``before`` does not; what is not proven narrower counts."""
    if before.mode == "enforce" and after.mode == "observe":
        yield "/gateway/mode", "nothing is hidden from providers"
    if before.unscanned == "block" and after.unscanned == "count":
        yield "/gateway/unscanned", "what cannot be scanned passes"
    if before.pipelines != after.pipelines:
        yield "/gateway/pipelines", "other middlewares for requests or answers"
    yield from _routes(before.routes, after.routes)
    if not set(after.shared_scopes) <= set(before.shared_scopes):
        yield "/gateway/shared_scopes", "several callers may use a scope"
    if _arguments_widened(before.tool_arguments, after.tool_arguments):
        yield "/gateway/tool_arguments", "tools may get more originals"
    if after.stable_scope and not before.stable_scope:
        yield "/gateway/stable_scope", "conversations share handles"


def _routes(before: Sequence[GatewayRoute], after: Sequence[GatewayRoute]) -> Iterator[tuple[str, str]]:
    """Yield what changed; a route that refuses, and stands behind all others, only narrows."""
    if list(after[: len(before)]) != list(before):
        yield "/gateway/routes", "requests go elsewhere, or are refused no longer"
        return
    for number in range(len(before), len(after)):
        if not after[number].refuse:
            yield f"/gateway/routes/{number}", "requests go elsewhere"


def _arguments_widened(before: Sequence[ToolArgumentRule], after: Sequence[ToolArgumentRule]) -> bool:
    """Return whether rules may restore more: rules that only withhold, behind the ones before, do not."""
    return list(after[: len(before)]) != list(before) or any(rule.restore for rule in after[len(before) :])
