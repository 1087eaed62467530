"""The one table of errors, and how each looks on the wire."""

import pytest

from app.core.errors import InternalError, RateLimitedError, StoreUnavailableError, all_errors
from app.protocol.wire.errors import WIRE_ERRORS
from tests.protocol.mcp_harness import Access, Invoke, build
from tests.protocol.mcp_wire import connected
from tests.protocol.requirements import covers


@covers("ERR-TABLE")
def test_every_error_has_a_row_and_no_row_is_left_over():
    assert set(WIRE_ERRORS) == {error.code for error in all_errors()}


@covers("ERR-RANGE")
def test_new_codes_lie_outside_the_range_of_json_rpc_and_are_distinct():
    ours = [row.code for row in WIRE_ERRORS.values() if row.code > -32768]
    new = [code for code in ours if not -32768 <= code <= -32000]

    assert set(ours) - set(new) <= {-32600, -32602, -32603}
    assert len(new) == len(set(new))
    assert min(new) > 0


@covers("ERR-DATA")
@pytest.mark.parametrize("kind", all_errors(), ids=lambda kind: kind.code)
async def test_an_error_has_its_code_its_request_id_and_its_details(revision, kind):
    async def refuse(*_):
        raise kind("Refused for a test.", details={"limit": "things", "maximum": 3})

    async with connected(build(invoke=Invoke(script=refuse)), revision) as wire:
        reply = await wire.invoke("x")

    row = WIRE_ERRORS[kind.code]
    shown = "invalid_arguments" if kind.code == "not_found" else kind.code
    assert reply.error["code"] == row.code
    assert reply.error["data"]["code"] == shown
    assert reply.error["data"]["requestId"]
    if kind is not InternalError:
        assert reply.error["message"] == "Refused for a test."
        assert reply.error["data"]["maximum"] == 3
    expected = 400 if wire.modern and row.code in {-32600, -32602} else row.status
    assert reply.status == expected


@covers("ERR-RETRY")
async def test_a_rate_limit_says_when_to_try_again(revision):
    async def refuse(*_):
        raise RateLimitedError("Too fast.", retry_after_s=1.2)

    async with connected(build(invoke=Invoke(script=refuse)), revision) as wire:
        reply = await wire.invoke("x")

    assert reply.status == 429
    assert reply.headers["retry-after"] == "2"


async def test_a_failure_before_the_method_has_the_same_form(revision, caplog):
    class Down(Access):
        async def authenticate(self, _bearer, _address):
            raise self.error

    access = Down()
    async with connected(build(authenticator=access), revision, key=None) as wire:
        access.error = StoreUnavailableError("The database does not answer.", retry_after_s=2)
        down = await wire.call("middleware/list")
        access.error = RuntimeError("canary-4711")
        broken = await wire.call("middleware/list")

    assert (down.status, down.error["data"]["code"], down.headers["retry-after"]) == (
        503,
        "store_unavailable",
        "2",
    )
    assert (broken.status, broken.error["code"]) == (500, -32603)
    assert broken.error["data"]["requestId"] in caplog.text
    assert "canary-4711" not in broken.text + caplog.text
