"""Engines elsewhere, one section for each capability; without a URL the embedded engine serves."""

from typing import Literal

from pydantic import Field, SecretStr, model_validator

from app.settings.sections import BaseUrl, Section


class RemoteEngine(Section):
    """An engine elsewhere; the embedded one serves while it fails."""

    kind: str = ""
    url: BaseUrl | None = Field(
        default=None,
        description="Base URL, such as `http://localhost:8080/v1`; without it the embedded engine serves.",
    )
    model: str = Field(default="", max_length=200, description="The model's name, as its server knows it.")
    api_key: SecretStr | None = Field(default=None, description="Sent as a bearer token, and nowhere else.")
    timeout_s: float = Field(
        default=5, gt=0, le=120, description="Time for one call; never more than half of the request's."
    )
    fallback: Literal["embedded", "refuse"] = Field(
        default="embedded",
        description="What happens when it fails: the embedded engine serves, or the call is refused.",
    )
    shadow: bool = Field(
        default=False,
        description="Let the embedded engine serve, and ask this one only to count how often they agree.",
    )
    failures: int = Field(
        default=5, ge=1, le=1000, description="Failures in a row after which it is left alone."
    )
    cool_down_s: float = Field(
        default=30, gt=0, le=3600, description="How long it is left alone before one call tries again."
    )

    @model_validator(mode="after")
    def named(self) -> "RemoteEngine":
        """Refuse an engine without a model where the wire format needs one."""
        if self.url is not None and not self.model and self.kind != "tei-rerank":
            raise ValueError("an engine with a URL needs a model, too")
        return self


class EmbedderEngine(RemoteEngine):
    """Vectors for document retrieval; documents are embedded again when the model changes."""

    kind: Literal["embeddings"] = Field(
        default="embeddings", description="`embeddings` is OpenAI's `/embeddings`."
    )


class ToolsEngine(RemoteEngine):
    """What ranks tools; the embedded engine chooses the 50 that it sees."""

    kind: Literal["rerank", "tei-rerank", "chat"] = Field(
        default="rerank",
        description="`/rerank` as Cohere and Jina have it, as Text Embeddings Inference has it, or a chat model.",
    )


class ModeratorEngine(RemoteEngine):
    """What moderates content."""

    kind: Literal["moderations", "chat", "llama-guard"] = Field(
        default="moderations",
        description="OpenAI's `/moderations`, a chat model as a judge, or a Llama Guard behind `/chat/completions`.",
    )


class InjectionEngine(RemoteEngine):
    """What looks for prompt injection."""

    kind: Literal["chat"] = Field(default="chat", description="A chat model as a judge.")


class SecretsEngine(RemoteEngine):
    """What looks for credentials beside the rules, which always count; it sees them, so it should be yours."""

    kind: Literal["chat"] = Field(default="chat", description="A chat model as a judge.")


class RetrieverEngine(RemoteEngine):
    """What ranks passages again that the caller may read."""

    kind: Literal["rerank", "tei-rerank"] = Field(
        default="rerank",
        description="`/rerank` as Cohere and Jina have it, or as Text Embeddings Inference has it.",
    )


class GroundingEngine(RemoteEngine):
    """What judges whether evidence supports a statement."""

    kind: Literal["chat"] = Field(default="chat", description="A chat model as a judge.")


class EnginesSettings(Section):
    """Bigger engines elsewhere, by capability; docs/engines.md says which servers fit."""

    embedder: EmbedderEngine = EmbedderEngine()
    tools: ToolsEngine = ToolsEngine()
    moderator: ModeratorEngine = ModeratorEngine()
    injection: InjectionEngine = InjectionEngine()
    secrets: SecretsEngine = SecretsEngine()
    retriever: RetrieverEngine = RetrieverEngine()
    grounding: GroundingEngine = GroundingEngine()
