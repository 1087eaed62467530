"""Whole answers: every text, whose tool it goes to, and what moves when it changes."""

import json

import pytest

from app.core.content.handles import Handle, Original
from app.core.errors import InternalError, InvalidArgumentsError
from app.core.gateway.answers import GatewayAnswer
from app.core.gateway.channels import ChannelKind, TextPiece, ToolRunner
from app.core.gateway.families import anthropic_messages, openai_chat, openai_responses
from app.core.gateway.json_body import JsonBody
from app.core.gateway.offsets import OffsetMap, compared
from app.core.gateway.requests import value_at
from app.core.gateway.restoring import HandleRestoration
from tests.unit.core.gateway import recorded
from tests.unit.core.gateway.recorded import HANDLE, ORIGINAL, SIGNATURE
from tests.unit.core.gateway.test_json_body import paths_of

CHAT = {
    "id": "c",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "logprobs": {"content": [{"token": "x", "logprob": -0.10}]},
            "message": {
                "role": "assistant",
                "content": "To [PERSON_1], as [PERSON_1].",
                "refusal": None,
                "annotations": [
                    {
                        "type": "url_citation",
                        "url_citation": {
                            "start_index": 18,
                            "end_index": 28,
                            "title": "t",
                            "url": "https://a",
                        },
                    }
                ],
                "tool_calls": [
                    {
                        "id": "t",
                        "type": "function",
                        "function": {"name": "f", "arguments": '{"a": "[PERSON_1]"}'},
                    },
                    {"id": "u", "type": "custom", "custom": {"name": "g", "input": "for [PERSON_1]"}},
                ],
            },
        },
        {"index": 1, "logprobs": {"content": []}, "message": {"role": "assistant", "content": "plain"}},
    ],
    "usage": {"total_tokens": 1.0},
}
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "content": [
        {"type": "thinking", "thinking": "of [PERSON_1] now", "signature": SIGNATURE},
        {"type": "text", "text": "as [PERSON_1] said", "citations": [recorded.CITATION]},
        {
            "type": "tool_use",
            "id": "t",
            "name": "f",
            "input": {"to": "[PERSON_1]", "deep": [{"er": "x [PERSON_1]"}]},
        },
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "[PERSON_1]"}},
        recorded.SEARCHED,
    ],
    "stop_reason": "tool_use",
    "usage": {"input_tokens": 1},
}
RESPONSE = recorded.events_of(recorded.RESPONSE_STREAM)[-1]["response"]
ANSWERS = {
    "chat": (CHAT, openai_chat.ANSWER),
    "message": (MESSAGE, anthropic_messages.ANSWER),
    "response": (RESPONSE, openai_responses.ANSWER),
}


def answer(name, body=None, documents=()):
    standard, table = ANSWERS[name]
    return GatewayAnswer.read(
        JsonBody.parse(json.dumps(body or standard, indent=1).encode()), table, documents
    )


def originals(handle):
    return Original(ORIGINAL) if handle == Handle("PERSON", 1) else None


def restored(name, **more):
    result = answer(name, **more).rewritten(HandleRestoration(originals))
    return result, json.loads(result.to_bytes())


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_that_nothing_changes_passes_as_it_came(name):
    before = answer(name)
    assert before.rewritten(lambda _: None).to_bytes() == before.to_bytes()
    assert before.changed(before.items).to_bytes() == before.to_bytes()
    assert before.rewritten(HandleRestoration(lambda _: None)).to_bytes() == before.to_bytes()


@pytest.mark.parametrize("name", ANSWERS)
def test_every_text_of_an_answer_is_told(name):
    body = ANSWERS[name][0]
    told = {text.path for text in answer(name).texts}
    with_handles = {
        path
        for path in paths_of(body)
        if HANDLE in str(value_at(body, path)) and isinstance(value_at(body, path), str)
    }
    assert with_handles and with_handles <= told


def test_a_completion_is_restored():
    result, body = restored("chat")
    message = body["choices"][0]["message"]
    assert message["content"] == f"To {ORIGINAL}, as {ORIGINAL}."
    assert json.loads(message["tool_calls"][0]["function"]["arguments"]) == {"a": ORIGINAL}
    assert message["tool_calls"][1]["custom"]["input"] == f"for {ORIGINAL}"
    citation = message["annotations"][0]["url_citation"]
    assert message["content"][citation["start_index"] : citation["end_index"]] == ORIGINAL
    assert body["choices"][0]["logprobs"] is None and result.notes == {"logprobs_dropped": 1}
    assert body["choices"][1] == CHAT["choices"][1]
    assert b'"total_tokens": 1.0' in result.to_bytes()


def test_a_message_is_restored_but_for_what_its_provider_runs():
    result, body = restored("message")
    thinking, text, call, search, found_pages = body["content"]
    assert thinking["thinking"] == f"of {ORIGINAL} now" and thinking["signature"] == SIGNATURE
    assert text["text"] == f"as {ORIGINAL} said"
    assert call["input"] == {"to": ORIGINAL, "deep": [{"er": f"x {ORIGINAL}"}]}
    assert search["input"] == {"query": HANDLE}
    assert found_pages["content"][0]["title"] == f"on {ORIGINAL} there"
    assert json.loads(result.signed[0].raw)["thinking"] == "of [PERSON_1] now"
    assert result.ids == {} and result.usage == {"input_tokens": 1}


def test_citations_of_documents_move_to_the_caller_s_text():
    document = OffsetMap([TextPiece("born ", "born "), TextPiece("[PERSON_1]", ORIGINAL)])
    citation = restored("message", documents=[document])[1]["content"][1]["citations"][0]
    assert (citation["start_char_index"], citation["end_char_index"]) == (5, 5 + len(ORIGINAL))
    assert citation["cited_text"] == f"born as {ORIGINAL} there"
    assert restored("message")[1]["content"][1]["citations"][0]["end_char_index"] == 15


def test_a_whole_response_is_what_its_stream_says():
    streamed = recorded.events_of(stream_of_response())[-1]["response"]
    assert restored("response")[1] == streamed


def stream_of_response():
    stream = openai_responses.ResponseStream(HandleRestoration(originals))
    return stream.feed(recorded.RESPONSE_STREAM) + stream.end(died=False)


def test_tool_calls_say_who_runs_them():
    assert [(call.name, call.runner) for call in answer("chat").tool_calls] == [
        ("f", ToolRunner.CLIENT),
        ("g", ToolRunner.CLIENT),
    ]
    assert [call.runner for call in answer("message").tool_calls] == [ToolRunner.CLIENT, ToolRunner.PROVIDER]
    runners = {call.name: call.runner for call in answer("response").tool_calls if call.name}
    assert runners == {"f": ToolRunner.CLIENT, "t": ToolRunner.PROVIDER, "g": ToolRunner.CLIENT}


def test_channels_say_what_a_text_is():
    kinds = {text.path: text.channel for text in answer("message").texts}
    assert kinds["content", 0, "thinking"].kind is ChannelKind.REASONING
    assert kinds["content", 1, "text"].run == "message"
    arguments = kinds["content", 2, "input", "deep", 0, "er"]
    assert (arguments.kind, arguments.tool, arguments.inner) == (ChannelKind.ARGUMENTS, "f", "/deep/0/er")
    assert arguments.path == ("content", 2, "input")
    assert kinds["content", 4, "content", 0, "url"].address
    echo = {text.path: text.channel.kind for text in answer("response").texts}
    assert echo["instructions",] is ChannelKind.ECHO


def test_middlewares_change_an_answer_and_its_citations_follow():
    before = answer("chat")
    items = json.loads(json.dumps(before.items).replace("To [PERSON_1]", "Dear reader"))
    result = before.changed(items)
    message = json.loads(result.to_bytes())["choices"][0]["message"]
    citation = message["annotations"][0]["url_citation"]
    assert message["content"][citation["start_index"] : citation["end_index"]] == HANDLE
    with pytest.raises(InvalidArgumentsError):
        before.changed([{"role": "user", "content": "x"}, *before.items])
    with pytest.raises(InternalError):
        before.changed(before.items[1:])


@pytest.mark.parametrize("name", ANSWERS)
def test_what_middlewares_change_in_an_answer_changes_where_it_stands(name):
    before = answer(name)
    items = json.loads(json.dumps(before.items).replace(HANDLE, "Ben"))
    changed = json.loads(before.changed(items).to_bytes())
    # What a response repeats of its request is no item.
    unchanged = {"instructions": RESPONSE["instructions"]} if name == "response" else {}
    expected = {**json.loads(json.dumps(ANSWERS[name][0]).replace(HANDLE, "Ben")), **unchanged}
    texts = {path: value_at(expected, path) for path in paths_of(expected)}
    texts = {path: text for path, text in texts.items() if isinstance(text, str) and "Ben" in text}
    assert texts and {path: value_at(changed, path) for path in texts} == texts


def test_an_original_is_not_put_where_it_acts():
    body = {
        **CHAT,
        "choices": [{"index": 0, "message": {"content": "[x](https://evil.example/?q=[PERSON_1])"}}],
    }
    restoration = HandleRestoration(originals)
    before = answer("chat", body)
    assert before.rewritten(restoration).to_bytes() == before.to_bytes() and restoration.withheld == 1
    everywhere = before.rewritten(HandleRestoration(originals, safe=False))
    assert HANDLE not in everywhere.to_bytes().decode()


def test_a_link_may_begin_in_one_block_and_end_in_the_next():
    blocks = [
        {"type": "text", "text": "[x](https://evil.example/?q="},
        {"type": "text", "text": "[PERSON_1])"},
    ]
    restoration = HandleRestoration(originals)
    answer("message", {**MESSAGE, "content": blocks}).rewritten(restoration)
    assert (restoration.withheld, restoration.restored) == (1, {})
    restoration = HandleRestoration(originals)
    answer("message", {**MESSAGE, "content": blocks[1:]}).rewritten(restoration)
    assert restoration.restored == {"PERSON": 1}


def test_structured_output_stays_json():
    body = {"choices": [{"index": 0, "message": {"content": '{"name": "[PERSON_1]"}'}}]}
    content = restored("chat", body=body)[1]["choices"][0]["message"]["content"]
    assert json.loads(content) == {"name": ORIGINAL}


@pytest.mark.parametrize(
    ("offset", "start", "end"), [(0, 0, 0), (2, 2, 2), (3, 2, 7), (5, 2, 7), (6, 7, 7), (8, 9, 9)]
)
def test_offsets_inside_of_what_was_replaced_go_to_its_edges(offset, start, end):
    offsets = OffsetMap([TextPiece("ab", "ab"), TextPiece("cdef", "VWXYZ"), TextPiece("gh", "gh")])
    assert (offsets.start(offset), offsets.end(offset)) == (start, end)


def test_texts_are_compared_where_nobody_said_what_changed():
    offsets = compared("see Anna and Ben now", "see [PERSON_1] and [PERSON_2] now")
    assert offsets.start(13) == 19 and offsets.end(20) == 33
    long = compared("a" + "x" * 9_000 + "b", "a" + "y" * 5_000 + "b")
    assert (long.start(1), long.end(9_001), long.end(9_002)) == (1, 5_001, 5_002)


@pytest.mark.parametrize("name", ANSWERS)
def test_what_is_nested_too_deeply_passes_as_it_came(name):
    deep = "[" * 400 + '"[PERSON_1]"' + "]" * 400
    rest = f'"deep": {deep}, "b": "of [PERSON_1] now"}}'
    body = json.dumps(ANSWERS[name][0]).removesuffix("}") + ", " + rest
    before = GatewayAnswer.read(JsonBody.lenient(body), ANSWERS[name][1])
    out = before.rewritten(HandleRestoration(originals)).to_bytes().decode()
    assert deep in out and json.loads(out)["b"] == f"of {ORIGINAL} now"


def test_a_citation_that_cuts_an_original_covers_all_of_it():
    text = f"To {HANDLE}, as said."
    begin = text.index(HANDLE)
    citation = {"start_index": begin + 2, "end_index": begin + 5, "title": "t", "url": "https://a"}
    message = {"content": text, "annotations": [{"type": "url_citation", "url_citation": citation}]}
    body = {"id": "c", "choices": [{"index": 0, "message": {"role": "assistant", **message}}]}
    read = GatewayAnswer.read(JsonBody.parse(json.dumps(body).encode()), openai_chat.ANSWER)
    moved = json.loads(read.rewritten(HandleRestoration(originals)).to_bytes())["choices"][0]["message"]
    place = moved["annotations"][0]["url_citation"]
    assert moved["content"][place["start_index"] : place["end_index"]] == ORIGINAL


@pytest.mark.parametrize(("first", "last"), [(2, 5), (0, 10), (9, 10)])
def test_a_citation_of_a_document_that_cuts_an_original_covers_all_of_it(first, last):
    offsets = compared(f"By {HANDLE}, then.", f"By {ORIGINAL}, then.")
    citation = {"type": "char_location", "document_index": 0, "cited_text": "x", "document_title": None}
    citation |= {"start_char_index": 3 + first, "end_char_index": 3 + last}
    body = {"content": [{"type": "text", "text": "So.", "citations": [citation]}]}
    read = GatewayAnswer.read(JsonBody.parse(json.dumps(body).encode()), anthropic_messages.ANSWER, [offsets])
    moved = json.loads(read.rewritten(HandleRestoration(originals)).to_bytes())["content"][0]["citations"][0]
    cited = f"By {ORIGINAL}, then."[moved["start_char_index"] : moved["end_char_index"]]
    assert cited == ORIGINAL
