"""Every middleware that judges contents says what it could not look into, or refuses it."""

from typing import Any

import pytest

from app.core.content.context import Context
from app.core.contracts.middleware import Middleware
from app.core.errors import UnscannableContentError
from app.middlewares.content_moderation import ContentModeration
from app.middlewares.pii_redaction.middleware import PiiRedaction
from app.middlewares.prompt_injection.middleware import PromptInjection
from app.middlewares.secret_redaction import SecretRedaction
from tests.fakes import engines

IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
ITEMS = ["Hello", {"role": "user", "content": [IMAGE]}, {"type": "input_video", "src": "x"}]


@pytest.mark.parametrize("kind", [PiiRedaction, SecretRedaction, ContentModeration, PromptInjection])
async def test_what_was_not_scanned_is_counted_or_refused(kind: type[Middleware[Any]]) -> None:
    middleware = kind(engines())
    outcome = await middleware.apply(Context.parse(ITEMS), kind.arguments())
    assert outcome.metadata["unscanned"] == {"image": 1, "video": 1}
    assert "unscanned" not in (await middleware.apply(Context.parse(["Hello"]), kind.arguments())).metadata
    with pytest.raises(UnscannableContentError) as caught:
        await middleware.apply(Context.parse(ITEMS), kind.arguments(unscanned="block"))
    assert caught.value.details == {"unscanned": {"image": 1, "video": 1}}
