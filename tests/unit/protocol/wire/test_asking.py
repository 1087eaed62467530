"""What a client may be asked, by what it declared."""

import pytest

from app.protocol.wire.asking import missing_capability

FORM = {"message": "Who?", "requestedSchema": {}}
URL = {"mode": "url", "url": "https://example.com", "elicitationId": "1", "message": "Go."}
TOOLS = {"messages": [], "tools": []}


@pytest.mark.parametrize(
    ("capabilities", "method", "params", "missing"),
    [
        ({}, "roots/list", {}, {"roots": {}}),
        ({"roots": {}}, "roots/list", {}, None),
        ({"roots": None}, "roots/list", {}, {"roots": {}}),
        ({"elicitation": {}}, "elicitation/create", FORM, None),
        ({"elicitation": {}}, "elicitation/create", URL, {"elicitation": {"url": {}}}),
        ({"elicitation": {"url": {}}}, "elicitation/create", URL, None),
        ({"elicitation": {"url": {}}}, "elicitation/create", FORM, {"elicitation": {"form": {}}}),
        ({"sampling": {}}, "sampling/createMessage", {"messages": []}, None),
        ({"sampling": {}}, "sampling/createMessage", TOOLS, {"sampling": {"tools": {}}}),
        ({"sampling": {"tools": {}}}, "sampling/createMessage", TOOLS, None),
    ],
)
def test_a_client_may_be_asked_what_it_declared(capabilities, method, params, missing):
    assert missing_capability(capabilities, method, params) == missing


def test_what_is_no_question_of_the_protocol_is_asked_of_nobody():
    assert missing_capability({"sampling": {}, "roots": {}}, "something/else", {}) is not None
