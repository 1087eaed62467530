"""A middleware of another distribution: exclamation marks behind the user's text."""

from pydantic import BaseModel, ConfigDict, Field

from app.core.content.context import Context
from app.core.contracts.middleware import Arguments, Middleware, Outcome


class ShoutingSettings(BaseModel):
    """What the installation decides: SLUICE_PLUGINS='{"shouting": {"marks": 3}}'."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    marks: int = Field(default=1, ge=1, le=10, description="How many marks, where the caller does not say.")


class ShoutingArguments(Arguments):
    """What the caller decides; a tenant's policy may fix it."""

    marks: int | None = Field(default=None, ge=1, le=10, description="How many marks.")


class Shouting(Middleware[ShoutingArguments]):
    """Put exclamation marks behind what the user says."""

    api = 1
    configuration = ShoutingSettings
    name = "shouting"
    title = "Shouting"
    description = "Put exclamation marks behind what the user says"
    phase = "outbound"
    arguments = ShoutingArguments

    async def apply(self, context: Context, arguments: ShoutingArguments) -> Outcome:
        """Add the marks; the service checks arguments, keeps the time limit and writes the record."""
        marks = self.settings.marks if arguments.marks is None else arguments.marks
        return Outcome(context.prefixed("!" * marks, after=True), {"marks": marks}, {"marks": marks})
