"""What no engine can look into: images, audio, binary data, sealed reasoning, items of unknown types."""

from typing import Any, Literal

from pydantic import Field

from app.core.content.context import Context
from app.core.contracts.middleware import Arguments
from app.core.errors import UnscannableContentError


class ScanningArguments(Arguments):
    """Arguments of a middleware that passes on only what it looked at, or says what it did not look at."""

    unscanned: Literal["report", "block"] = Field(
        default="report", description="What cannot be scanned or changed: count it, or refuse the call."
    )

    def refuse_unscanned(self, context: Context) -> None:
        """Raise where the context holds what cannot be scanned and the caller wants no such context."""
        if self.unscanned == "block" and context.unscanned:
            raise UnscannableContentError(
                "The context holds something that cannot be scanned, and unscanned: block refuses that.",
                details={"unscanned": dict(context.unscanned)},
            )


def told_unscanned(context: Context) -> dict[str, Any]:
    """Return the member of the metadata that counts what was not scanned; none where everything was."""
    return {"unscanned": dict(context.unscanned)} if context.unscanned else {}
