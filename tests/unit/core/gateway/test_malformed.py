"""Whatever a provider puts into a member, its answer is read: nothing fails without a name, and nothing is lost."""

import json

import pytest

from app.core.gateway.answers import GatewayAnswer
from app.core.gateway.families import anthropic_messages, openai_chat, openai_responses
from app.core.gateway.json_body import JsonBody
from app.core.gateway.restoring import HandleRestoration
from app.core.gateway.streams import EventStream
from tests.sampling import examples
from tests.unit.core.gateway import malformed, recorded
from tests.unit.core.gateway.recorded import HANDLE, ORIGINAL
from tests.unit.core.gateway.test_answers import CHAT, MESSAGE
from tests.unit.core.gateway.test_streams import ESCAPED, FAMILIES, originals

ANSWERS = {
    "chat": (openai_chat.ANSWER, CHAT),
    "messages": (anthropic_messages.ANSWER, MESSAGE),
    "responses": (openai_responses.ANSWER, recorded.events_of(recorded.RESPONSE_STREAM)[-1]["response"]),
    "items": (openai_responses.ANSWER, recorded.events_of(recorded.ITEM_STREAM)[-1]["response"]),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_stream_is_read_whatever_stands_in_an_event(family):
    stream_type, raw = FAMILIES[family][:2]
    for start, end, changed in malformed.streams(f"stream of {family}", raw, examples(3_000, 40)):
        stream = stream_type(HandleRestoration(originals))
        before = stream.feed(changed[:start])
        odd = stream.feed(changed[start:end])
        after = stream.feed(changed[end:]) + stream.end(died=False)
        assert before == streamed_before(family, changed[:start])
        # Nothing that was said is dropped, whatever was held back when the event came.
        out = zip(brackets(before + odd + after), brackets(changed), strict=True)
        assert all(went >= came for went, came in out), changed[start:end]
        assert stream.notes["malformed"] == 0


def brackets(raw):
    """Count the brackets in the texts of a stream; each original counts as the handle that it stood for."""
    texts = "".join(texts_in(recorded.events_of(raw)))
    for original in (ESCAPED, ORIGINAL):
        texts = texts.replace(original, HANDLE)
    return texts.count("["), texts.count("]")


def texts_in(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for name, member in value.items() if isinstance(value, dict) else enumerate(value):
            if name != "logprobs":  # they go where the text changes
                yield from texts_in(member)


def streamed_before(family, raw):
    return FAMILIES[family][0](HandleRestoration(originals)).feed(raw)


@pytest.mark.parametrize("name", ANSWERS)
def test_a_whole_answer_is_read_whatever_stands_in_it(name):
    table, body = ANSWERS[name]
    for changed in malformed.bodies(f"answer of {name}", body, examples(3_000, 60)):
        parsed = JsonBody.lenient(json.dumps(changed))
        answer = GatewayAnswer.read(parsed, table).rewritten(HandleRestoration(originals))
        assert isinstance(json.loads(answer.to_bytes()), dict)
        assert answer.tool_calls is not None and answer.ids is not None and answer.usage is not None


def test_an_event_that_no_rule_foresaw_ends_the_stream_by_name():
    class Failing(openai_chat.ChatStream):
        def changed(self, event, body):
            if b"odd" in event.raw:
                raise TypeError("unhashable")
            return super().changed(event, body)

    said = recorded.chunk([recorded.choice({"content": "Dear [PERS"})])
    odd, more = recorded.event({"choices": "odd"}), recorded.chunk([recorded.choice({"content": "more"})])
    for chunks in ([said, odd, more], [said + odd + more], [said + odd[:-2]]):
        stream: EventStream = Failing(HandleRestoration(originals))
        out, died = b"", False
        try:
            for chunk in chunks:
                out += stream.feed(chunk)
        except Exception as error:
            died = error.code == "upstream_unavailable"
        out += stream.end(died=died)
        events = recorded.events_of(out)
        assert recorded.chat_texts(out.rpartition(b"data:")[0]) == {(0, "content"): "Dear [PERS"}
        assert events[-1]["error"]["code"] == "sluice_upstream_interrupted" and b"more" not in out
        assert stream.notes["malformed"] == 1
