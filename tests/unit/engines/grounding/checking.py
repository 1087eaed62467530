"""What one check finds, for the tests of this folder."""

from app.core.contracts.grounding import CheckOptions
from app.engines.grounding.checker import RuleChecker


async def findings(check, answer, *sources, **packages):
    options = CheckOptions(frozenset({check}), {key: frozenset(names) for key, names in packages.items()})
    (found,) = await RuleChecker().check([answer], list(sources), options)
    return found


async def found_texts(check, answer, *sources, **packages):
    return [answer[one.start : one.end] for one in await findings(check, answer, *sources, **packages)]
