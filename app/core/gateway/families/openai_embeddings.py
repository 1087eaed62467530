"""Embeddings and moderations of OpenAI: texts go in, numbers come out."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from app.core.gateway.answers import AnswerTable, ToolCall, plain_texts
from app.core.gateway.body_parts import BodyItem
from app.core.gateway.member_table import LeafRole, MemberForm, MemberRule, definition, machine_members
from app.core.gateway.requests import RequestTable

MEMBERS: Final[Mapping[str, MemberRule]] = {
    **machine_members("model", "dimensions", "encoding_format"),
    "input": MemberRule(MemberForm.TEXTS, LeafRole.USER),
    "user": definition(LeafRole.USER_ID),
}


def _items(_body: Mapping[str, Any]) -> Iterator[BodyItem]:
    yield from ()


def _calls(_body: Mapping[str, Any]) -> Iterator[ToolCall]:
    yield from ()


REQUEST: Final = RequestTable(members=MEMBERS, sessions=(("user",),))
ANSWER: Final = AnswerTable(items=_items, texts=plain_texts, calls=_calls)
