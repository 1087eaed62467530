"""Content that no engine can scan or nobody can change: images, audio, binary data, sealed reasoning."""

from typing import Any, Literal

from pydantic import Field

from app.core.content.context import Context
from app.core.contracts.middleware import Arguments
from app.core.errors import UnscannableContentError


class ScanningArguments(Arguments):
    """Arguments of a middleware that either refuses or reports content it could not scan."""

    unscanned: Literal["report", "block"] = Field(
        default="report", description="Count content that cannot be scanned or changed, or refuse the call."
    )

    @property
    def blocks_findings(self) -> bool:
        """Return whether a finding refuses the call, so that nothing may pass that was not scanned."""
        return False

    def refuse_unscanned(self, context: Context) -> None:
        """Raise UnscannableContentError if the context has unscannable content and the caller blocks that."""
        if self.blocks_findings and context.unseen:
            raise UnscannableContentError(
                "The context contains something that cannot be scanned, and mode: block lets nothing pass unseen.",
                details={"unscanned": context.unseen},
            )
        if self.unscanned == "block" and context.unscanned:
            raise UnscannableContentError(
                "The context contains something that cannot be scanned, and unscanned: block refuses that.",
                details={"unscanned": dict(context.unscanned)},
            )


def unscanned_metadata(context: Context) -> dict[str, Any]:
    """Return the metadata that counts content that was not scanned; empty if everything was."""
    return {"unscanned": dict(context.unscanned)} if context.unscanned else {}
