"""audit_logging passes a context on unchanged and names only identifiers for the record."""

import pytest
from pydantic import ValidationError

from app.core.content.context import Context
from app.middlewares.audit_logging import AuditLogging, AuditLoggingArguments
from tests.fakes import engines


async def test_the_context_passes_unchanged_and_the_record_holds_no_content() -> None:
    items = [{"type": "text", "text": "John Doe"}]
    arguments = AuditLoggingArguments(model="gpt-5", reason="pii-redacted")
    outcome = await AuditLogging(engines()).apply(Context.parse(items), arguments)
    assert outcome.context.to_json() == items
    assert outcome.audit_details == {"direction": "outbound", "model": "gpt-5", "reason": "pii-redacted"}
    assert outcome.keep_content


def test_prose_is_refused_where_an_identifier_belongs() -> None:
    with pytest.raises(ValidationError):
        AuditLoggingArguments(reason="because John Doe asked")
