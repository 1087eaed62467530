"""Search for credentials with a chat model, in addition to the embedded rules."""

from collections.abc import Iterator, Sequence

from pydantic import Field

from app.core.contracts.engines import EngineReport, SecretFindings, SecretOptions, SecretScanner, Span
from app.engines.remote.chat import ENGINE, ChatJudge
from app.engines.remote.client import RemoteAnswer
from app.engines.remote.judges import windowed
from app.engines.resilience import RemoteEngineError

OTHER = "other"
_SURE = 0.8
_TASK = (
    "You look for credentials in the text: passwords, API keys, tokens, private keys, connection strings. Copy each "
    "one exactly as the text has it, and name the service it belongs to in one lower-case word, or say other. "
    "Placeholders, checksums, identifiers and public keys are no credentials."
)


class _Secret(RemoteAnswer):
    text: str = Field(min_length=6)
    provider: str


class _Secrets(RemoteAnswer):
    secrets: list[_Secret]


class ChatSecretScanner:
    """Adds a chat model's findings to those of the rules; the rules' findings are always kept."""

    def __init__(self, embedded: SecretScanner, judge: ChatJudge) -> None:
        self._embedded = embedded
        self._judge = judge

    def providers(self) -> frozenset[str]:
        """Return the providers that the rules know, and one name for all others."""
        return self._embedded.providers() | {OTHER}

    async def scan(self, texts: Sequence[str], options: SecretOptions) -> SecretFindings:
        """Scan each text; raises RemoteEngineError where a quoted credential is not in the text."""
        ruled = await self._embedded.scan(texts, options)
        judged = await windowed(texts, self._ask_about)
        spans = []
        for text, ruled_spans, parts in zip(texts, ruled.spans, judged, strict=True):
            added = [span for part in parts for secret in part for span in self._spans(text, secret, options)]
            spans.append(_merged(ruled_spans, added))
        return SecretFindings(spans, EngineReport(ENGINE, self._judge.model))

    async def _ask_about(self, text: str) -> list[_Secret]:
        form = '{"secrets": [{"text": "…", "provider": "…"}]}'
        secrets = (await self._judge.ask(_TASK, form, {"text": text}, _Secrets)).secrets
        if any(secret.text not in text for secret in secrets):
            raise RemoteEngineError("quotes what is not there")
        return secrets

    def _spans(self, text: str, secret: _Secret, options: SecretOptions) -> Iterator[Span]:
        is_known = secret.provider in self._embedded.providers()
        provider = secret.provider if is_known else OTHER
        if secret.text in options.allow_list:
            return
        if options.providers is not None and provider not in options.providers:
            return
        start = text.find(secret.text)
        while start >= 0:
            end = start + len(secret.text)
            yield Span(start, end, f"SECRET_{provider.upper()}", _SURE)
            start = text.find(secret.text, end)


def _merged(certain: Sequence[Span], added: Sequence[Span]) -> list[Span]:
    """Return all of ``certain``, and those of ``added`` that overlap no span chosen before."""
    kept = list(certain)
    for span in sorted(added, key=lambda span: (span.start - span.end, span.start)):
        if all(span.end <= other.start or other.end <= span.start for other in kept):
            kept.append(span)
    return sorted(kept, key=lambda span: span.start)
