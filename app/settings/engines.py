"""Remote engines, one section per capability; without a URL, the embedded engine serves."""

from typing import Literal

from pydantic import Field, SecretStr, model_validator

from app.settings.sections import BaseUrl, Section


class RemoteEngine(Section):
    """A remote engine; the embedded one serves while it fails."""

    kind: str = ""
    url: BaseUrl | None = Field(
        default=None,
        description="Base URL, such as `http://localhost:8080/v1`; without it, the embedded engine serves.",
    )
    model: str = Field(default="", max_length=200, description="Name of the model on its server.")
    api_key: SecretStr | None = Field(
        default=None, description="API key, sent only as a bearer token to this server."
    )
    timeout_s: float = Field(
        default=5,
        gt=0,
        le=120,
        description="Time limit of one call in seconds; at most half of the request's.",
    )
    fallback: Literal["embedded", "refuse"] = Field(
        default="embedded",
        description="What to do if it fails: let the embedded engine serve, or refuse the call.",
    )
    shadow: bool = Field(
        default=False,
        description="Let the embedded engine serve, and call this one only to count how often they agree.",
    )
    failures: int = Field(
        default=5, ge=1, le=1000, description="Consecutive failures after which the engine is not called."
    )
    cool_down_s: float = Field(
        default=30, gt=0, le=3600, description="Seconds without calls before the next attempt."
    )

    @model_validator(mode="after")
    def named(self) -> "RemoteEngine":
        """Refuse an engine without a model if the wire format needs one."""
        if self.url is not None and not self.model and self.kind != "tei-rerank":
            raise ValueError("an engine with a URL also needs a model")
        return self


class EmbedderEngine(RemoteEngine):
    """Vectors for document retrieval; documents are embedded again when the model changes."""

    kind: Literal["embeddings"] = Field(
        default="embeddings", description="`embeddings` is OpenAI's `/embeddings`."
    )


class ToolsEngine(RemoteEngine):
    """The engine that ranks tools; it sees the 50 that the embedded engine chooses."""

    kind: Literal["rerank", "tei-rerank", "chat"] = Field(
        default="rerank",
        description="`/rerank` in the form of Cohere and Jina, in that of Text Embeddings Inference, or a chat model.",
    )


class ModeratorEngine(RemoteEngine):
    """The engine that moderates content."""

    kind: Literal["moderations", "chat", "llama-guard"] = Field(
        default="moderations",
        description="OpenAI's `/moderations`, a chat model as a judge, or a Llama Guard behind `/chat/completions`.",
    )


class InjectionEngine(RemoteEngine):
    """The engine that detects prompt injection."""

    kind: Literal["chat"] = Field(default="chat", description="A chat model as a judge.")


class SecretsEngine(RemoteEngine):
    """The engine that detects credentials in addition to the rules; it sees them, so run it yourself."""

    kind: Literal["chat"] = Field(default="chat", description="A chat model as a judge.")


class RetrieverEngine(RemoteEngine):
    """The engine that reranks passages that the caller may read."""

    kind: Literal["rerank", "tei-rerank"] = Field(
        default="rerank",
        description="`/rerank` in the form of Cohere and Jina, or in that of Text Embeddings Inference.",
    )


class GroundingEngine(RemoteEngine):
    """The engine that judges whether evidence supports a statement."""

    kind: Literal["chat"] = Field(default="chat", description="A chat model as a judge.")


class EnginesSettings(Section):
    """Larger remote engines, by capability; docs/engines.md lists suitable servers."""

    embedder: EmbedderEngine = EmbedderEngine()
    tools: ToolsEngine = ToolsEngine()
    moderator: ModeratorEngine = ModeratorEngine()
    injection: InjectionEngine = InjectionEngine()
    secrets: SecretsEngine = SecretsEngine()
    retriever: RetrieverEngine = RetrieverEngine()
    grounding: GroundingEngine = GroundingEngine()
