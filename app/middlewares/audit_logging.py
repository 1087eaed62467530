"""Record that a context was sent to a model, and keep the context itself if the tenant's policy requires it."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from app.core.content.context import Context
from app.core.contracts.middleware import Arguments, ImmediateMiddleware, Outcome

Label = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:/-]{0,63}$")]


class AuditLoggingArguments(Arguments):
    """Members of the record besides digests and counts; names and reasons are identifiers, never prose."""

    direction: Literal["outbound", "inbound"] = Field(
        default="outbound", description="Whether the context goes to a model or comes from one."
    )
    model: Label | None = Field(default=None, description="The model to which the context is sent.")
    conversation: Label | None = Field(
        default=None, description="The caller's own reference to the conversation."
    )
    reason: Label | None = Field(default=None, description="Why the context was changed, as a short code.")


class AuditLogging(ImmediateMiddleware[AuditLoggingArguments]):
    """Leave an audit event about the context and pass it on unchanged."""

    name = "audit_logging"
    title = "Audit logging"
    description = (
        "Record digests, sizes and counts of the context in the audit log and pass it on unchanged. "
        "The content itself is kept, sealed, only if the tenant's policy requires it (audit_content)."
    )
    phase = "outbound"
    arguments = AuditLoggingArguments

    def transformed(self, context: Context, arguments: AuditLoggingArguments) -> Outcome:
        """Request that the service keeps the content, which it does only if the policy requires it."""
        details = arguments.model_dump(exclude_none=True, exclude={"strict"})
        return Outcome(context, keep_content=True, audit_details=details)
