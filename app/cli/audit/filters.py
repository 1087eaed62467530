"""The options of ``sluice audit`` by which events are chosen."""

from collections.abc import Callable
from datetime import datetime
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from app.cli.times import moment
from app.core.audit import AUDIT_FILTERS

if TYPE_CHECKING:
    from app.services.audit.audit import AuditQuery

Since = Annotated[
    datetime | None, typer.Option(parser=moment, metavar="TIME", help="Only events at or after this time.")
]
Until = Annotated[
    datetime | None, typer.Option(parser=moment, metavar="TIME", help="Only events before this time.")
]
Archive = Annotated[
    str | None,
    typer.Option(
        metavar="PLACE", help="Archive to read beside the database: a folder, or s3://bucket/folder."
    ),
]
_KINDS: Final = {
    "time": datetime | None,
    "word": str | None,
    "outcome": Literal["ok", "refused", "failed", "sent"] | None,
    "user": str | None,
}


def with_filters(command: Callable[..., None]) -> Callable[..., None]:
    """Give ``command`` an option for each filter of the audit log instead of its parameter ``filters``."""

    @wraps(command, assigned=("__name__", "__doc__"))
    def receive(target: Any, **values: Any) -> None:
        from app.services.audit.audit import AuditQuery

        chosen = {each.name: values.pop(each.name) for each in AUDIT_FILTERS}
        command(target, filters=AuditQuery(**chosen), **values)

    options = []
    for each in AUDIT_FILTERS:
        option = typer.Option(help=each.help)
        if each.kind == "time":
            option.parser, option.metavar = moment, "TIME"
        options.append(
            Parameter(
                each.name,
                Parameter.KEYWORD_ONLY,
                default=None,
                annotation=Annotated[_KINDS[each.kind], option],
            )
        )
    parameters = dict(signature(command).parameters)
    target = parameters.pop("target")
    parameters.pop("filters")
    # Typer reads the options from the signature.
    vars(receive)["__signature__"] = Signature([target, *options, *parameters.values()])
    return receive


def filter_query(filters: "AuditQuery") -> dict[str, Any]:
    """Return filters as the parameters of a route."""
    return {each.name: getattr(filters, each.name) for each in AUDIT_FILTERS}
