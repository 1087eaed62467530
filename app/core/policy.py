"""What a tenant allows: middlewares, default and fixed arguments, limits."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field


class Limits(BaseModel):
    """Bounds on one tenant's use; the edge enforces the rates, the service the rest."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    requests_per_second: float = Field(
        default=100, ge=0.001, le=1e6, description="Refill rate of the token bucket."
    )
    burst: int = Field(default=300, gt=0, le=10**6, description="Size of the token bucket, in requests.")
    in_flight: int = Field(
        default=64, gt=0, le=10**6, description="Requests of this tenant that may run or wait at once."
    )
    max_blocks: int = Field(
        default=4096, gt=0, le=10**6, description="Content items and nested blocks of one context."
    )
    max_depth: int = Field(default=64, gt=0, le=1000, description="Nesting depth of one context.")
    deadline_ms: int = Field(
        default=30_000, gt=0, le=3_600_000, description="Time limit of one request, in milliseconds."
    )


Milliseconds = Annotated[int, Field(gt=0, le=3_600_000)]


class Policy(BaseModel):
    """One version of a tenant's policy.

    Caller arguments override ``default_arguments``; ``fixed_arguments`` override the caller's, and a caller who
    gives a different value for a fixed argument is refused.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    allowed_middlewares: list[str] | None = Field(default=None, description="Names; null allows all.")
    default_arguments: dict[str, dict[str, Any]] = Field(
        default_factory=dict, description="Per middleware, the arguments used where the caller gives none."
    )
    fixed_arguments: dict[str, dict[str, Any]] = Field(
        default_factory=dict, description="Per middleware, the arguments that callers cannot change."
    )
    timeouts_ms: dict[str, Milliseconds] = Field(
        default_factory=dict,
        description="Per middleware, its time limit in milliseconds, within the request's.",
    )
    audit_content: bool = Field(
        default=False, description="Keep the context, sealed, where audit_logging is invoked."
    )
    scope_ttl_s: int | None = Field(
        default=None, gt=0, le=10**10, description="Life of a new vault scope, in seconds."
    )
    limits: Limits = Field(default_factory=Limits)
