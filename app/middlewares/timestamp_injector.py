"""Tell the model what time it is."""

from datetime import datetime
from typing import Annotated, Literal
from zoneinfo import ZoneInfo, available_timezones

from pydantic import AfterValidator, Field

from app.core.content.context import Context
from app.core.contracts.middleware import Arguments, ImmediateMiddleware, Outcome

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


def known_zone(name: str) -> str:
    """Return ``name`` if it is a time zone of the IANA database."""
    if name != "UTC" and name not in available_timezones():
        raise ValueError("unknown time zone; use an IANA name such as Europe/Berlin")
    return name


class TimestampArguments(Arguments):
    """The format of the time and where to put it."""

    timezone: Annotated[str, AfterValidator(known_zone)] = Field(
        default="UTC", description="IANA name of the time zone, such as Europe/Berlin."
    )
    format: Literal["spoken", "iso", "unix"] = Field(
        default="spoken",
        description="spoken: Saturday, October 4, 2025, 3:42 PM UTC; iso: ISO 8601; unix: seconds since 1970.",
    )
    placement: Literal["before", "after"] = Field(
        default="before", description="Before or after the user's text."
    )


class TimestampInjector(ImmediateMiddleware[TimestampArguments]):
    """Add the current time to the user's text."""

    name = "timestamp_injector"
    title = "Current time"
    description = "Put the current date and time in front of the context, so that no tool call is needed."
    phase = "outbound"
    arguments = TimestampArguments

    def transformed(self, context: Context, arguments: TimestampArguments) -> Outcome:
        """Add one line, never in tool results or assistant turns."""
        now = self.engines.now().astimezone(ZoneInfo(arguments.timezone))
        line = f"[Current time: {written(now, arguments.format)}]"
        if arguments.placement == "after":
            return Outcome(context.prefixed(f"\n\n{line}", after=True))
        return Outcome(context.prefixed(f"{line}\n\n"))


def written(now: datetime, style: str) -> str:
    """Return ``now`` in ``style``, in English regardless of the process's locale."""
    if style == "iso":
        return now.isoformat(timespec="seconds")
    if style == "unix":
        return str(int(now.timestamp()))
    weekday = WEEKDAYS[now.weekday()]
    month = MONTHS[now.month - 1]
    half = "AM" if now.hour < 12 else "PM"  # noqa: PLR2004 - noon
    return f"{weekday}, {month} {now.day}, {now.year}, {now.hour % 12 or 12}:{now.minute:02} {half} {now.tzname()}"
