"""A step of what a policy runs."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Step(BaseModel):
    """A middleware and its arguments."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(description="Name of a middleware or pipeline.")
    arguments: dict[str, Any] = Field(default_factory=dict, description="Its arguments.")
