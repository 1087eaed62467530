"""Moderate texts with the OpenAI-compatible ``/moderations``."""

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import Field

from app.core.contracts.engines import EngineReport, Moderation, Moderator
from app.engines.remote.client import RemoteAnswer, RemoteClient
from app.engines.remote.windows import windows
from app.engines.resilience import RemoteEngineError

ENGINE = "remote-moderations"
_TEXTS_AT_ONCE = 32
_FLAGGED = 0.5
_BELOW = 0.499
# Category names of OpenAI's and Mistral's moderation models, up to the first "/", with "-" written as "_".
_POLICIES = {
    "violence": "violence",
    "violence_and_threats": "violence",
    "harassment": "harassment",
    "hate": "hate",
    "hate_and_discrimination": "hate",
    "sexual": "sexual",
    "self_harm": "self_harm",
    "selfharm": "self_harm",
    "illicit": "illicit",
    "dangerous_and_criminal_content": "illicit",
}

Score = Annotated[float, Field(ge=0, le=1)]


class _Result(RemoteAnswer):
    category_scores: dict[str, Score]
    categories: dict[str, bool] = Field(default_factory=dict)


class _Results(RemoteAnswer):
    results: list[_Result]


class RemoteModerations:
    """Asks a moderation endpoint; the embedded engine judges policies that its model does not know."""

    def __init__(self, client: RemoteClient, embedded: Moderator) -> None:
        self._client = client
        self._embedded = embedded

    async def moderate(self, texts: Sequence[str], policies: Sequence[str]) -> Moderation:
        """Return scores of at least 0.5 where the endpoint itself flags a text, and below where it does not."""
        parts = [(position, part) for position, text in enumerate(texts) for part in windows(text)]
        scores: list[dict[str, float]] = [{} for _ in texts]
        covered: set[str] = set(policies)
        for start in range(0, len(parts), _TEXTS_AT_ONCE):
            batch = parts[start : start + _TEXTS_AT_ONCE]
            for (position, _), by_policy in zip(
                batch, await self._batch([part for _, part in batch]), strict=True
            ):
                covered &= by_policy.keys()
                for policy in covered:
                    scores[position][policy] = max(scores[position].get(policy, 0.0), by_policy[policy])
        report = EngineReport(ENGINE, self._client.options.model)
        judged: list[Mapping[str, float]] = [
            {policy: row[policy] for policy in covered if policy in row} for row in scores
        ]
        missing = [policy for policy in policies if policy not in covered]
        if missing:
            added = (await self._embedded.moderate(texts, missing)).scores
            judged = [{**row, **more} for row, more in zip(judged, added, strict=True)]
        return Moderation(judged, report)

    async def _batch(self, texts: Sequence[str]) -> list[dict[str, float]]:
        body = {"model": self._client.options.model, "input": list(texts)}
        results = (await self._client.post("/moderations", body, _Results)).results
        if len(results) != len(texts):
            raise RemoteEngineError("wrong number of results")
        return [_by_policy(result) for result in results]


def _by_policy(result: _Result) -> dict[str, float]:
    by_policy: dict[str, float] = {}
    for category, score in result.category_scores.items():
        policy = _POLICIES.get(category.partition("/")[0].replace("-", "_"))
        if policy is not None:
            by_policy[policy] = max(
                by_policy.get(policy, 0.0), _calibrated(score, result.categories.get(category))
            )
    return by_policy


def _calibrated(score: float, flagged: bool | None) -> float:
    """Scale ``score`` so that the endpoint flags from 0.5 on, whatever the threshold of its category."""
    if flagged is None:
        return score
    return _FLAGGED + score / 2 if flagged else min(score, _BELOW)
