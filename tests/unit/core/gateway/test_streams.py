"""Streamed answers of all families: every type of event, cut at every byte."""

import json
import typing

import anthropic.types.beta as anthropic_types
import anthropic.types.beta.beta_raw_content_block_start_event as anthropic_start
import openai.types.responses as openai_types
import pytest

from app.core.content.handles import Handle, Original
from app.core.gateway.channels import TextPiece
from app.core.gateway.families.anthropic_messages import MessageStream
from app.core.gateway.families.openai_chat import ChatStream
from app.core.gateway.families.openai_responses import ResponseStream
from app.core.gateway.offsets import OffsetMap
from app.core.gateway.requests import NOTE
from app.core.gateway.restoring import HandleRestoration
from tests.sampling import sample
from tests.unit.core.gateway import recorded
from tests.unit.core.gateway.recorded import HANDLE, ORIGINAL, SIGNATURE

SPELLED = json.dumps(ORIGINAL, ensure_ascii=False)[1:-1].encode()
ESCAPED = json.dumps(ORIGINAL, ensure_ascii=False)[1:-1]
FAMILIES = {
    "chat": (ChatStream, recorded.CHAT_STREAM, recorded.chat_texts),
    "legacy": (ChatStream, recorded.LEGACY_STREAM, recorded.chat_texts),
    "messages": (MessageStream, recorded.MESSAGE_STREAM, recorded.message_texts),
    "responses": (ResponseStream, recorded.RESPONSE_STREAM, recorded.response_texts),
    "blocks": (MessageStream, recorded.BLOCK_STREAM, recorded.message_texts),
    "items": (ResponseStream, recorded.ITEM_STREAM, recorded.response_texts),
    **{
        end: (ResponseStream, recorded.ended_with(end), recorded.response_texts)
        for end in ("response.failed", "response.incomplete", "error")
    },
}


def originals(handle):
    return Original(ORIGINAL) if handle == Handle("PERSON", 1) else None


def streamed(family, raw, *cuts, died=False, resolve=originals):
    stream = FAMILIES[family][0](HandleRestoration(resolve))
    out = [stream.feed(raw[i:j]) for i, j in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    return b"".join([*out, stream.end(died=died)]), stream


@pytest.mark.parametrize("family", FAMILIES)
def test_a_stream_does_not_depend_on_its_chunks(family):
    raw = FAMILIES[family][1]
    whole, _ = streamed(family, raw)
    assert streamed(family, raw, *range(1, len(raw)))[0] == whole
    assert whole.count(SPELLED) >= 1 and raw != whole
    for cut in sample(f"cuts of {family}", range(1, len(raw)), 40):
        assert streamed(family, raw, cut)[0] == whole


@pytest.mark.outside
@pytest.mark.parametrize("family", FAMILIES)
def test_a_stream_may_be_cut_at_every_byte(family):
    raw = FAMILIES[family][1]
    whole, _ = streamed(family, raw)
    assert [cut for cut in range(1, len(raw)) if streamed(family, raw, cut)[0] != whole] == []


def types_in(union):
    """Return the values of ``type`` of all members of a union of the packages' types."""
    members = typing.get_args(union)
    inner = [
        typing.get_args(each.model_fields["type"].annotation)
        for each in members
        if hasattr(each, "model_fields")
    ]
    nested = [types_in(each) for each in members if not hasattr(each, "model_fields")]
    return {name for names in (*inner, *nested) for name in names}


def types_of(*names, member=None):
    """Return the types of all events of recorded streams, or of a member of theirs."""
    events = [event for name in names for event in recorded.events_of(FAMILIES[name][1])]
    return {(event if member is None else event.get(member) or {}).get("type") for event in events}


@pytest.mark.parametrize(
    ("union", "recorded_types"),
    [
        (
            openai_types.ResponseStreamEvent,
            types_of("responses", "response.failed", "response.incomplete", "error"),
        ),
        (openai_types.ResponseOutputItem, types_of("responses", "items", member="item")),
        (anthropic_types.BetaRawMessageStreamEvent, types_of("messages")),
        (anthropic_types.BetaRawContentBlockDelta, types_of("messages", member="delta")),
        (anthropic_start.ContentBlock, types_of("messages", "blocks", member="content_block")),
    ],
)
def test_every_type_of_the_packages_is_among_the_recorded_ones(union, recorded_types):
    assert len(types_in(union)) > 5 and types_in(union) - recorded_types == set()


@pytest.mark.parametrize(
    ("family", "member", "kept"),
    [
        ("blocks", "content_block", {"mcp_tool_use"}),
        ("items", "item", {"file_search_call", "mcp_approval_request", "program"}),
    ],
)
def test_what_the_provider_runs_keeps_its_handles_and_nothing_else(family, member, kept):
    events = recorded.events_of(streamed(family, FAMILIES[family][1])[0])
    assert {event[member]["type"] for event in events if member in event and HANDLE in str(event)} == kept


@pytest.mark.parametrize("family", FAMILIES)
def test_a_stream_that_nothing_changes_passes_as_it_came(family):
    raw = FAMILIES[family][1]
    stream = FAMILIES[family][0](lambda _: None)
    assert stream.feed(raw) + stream.end(died=False) == raw


@pytest.mark.parametrize("family", ["chat", "messages", "responses"])
def test_a_stream_of_handles_that_no_scope_gave_keeps_its_texts(family):
    raw, texts = FAMILIES[family][1:]
    assert texts(streamed(family, raw, resolve=lambda _: None)[0]) == texts(raw)


def test_chat_gives_every_original_back():
    texts = recorded.chat_texts(streamed("chat", recorded.CHAT_STREAM)[0])
    assert texts[0, "content"] == f"Dear {ORIGINAL}, hello é"
    assert texts[1, "content"] == f"{ORIGINAL}, [1] and {ORIGINAL} x"
    assert texts[0, "reasoning_content"] == f"think of {ORIGINAL}, then"
    assert texts[0, "refusal"] == f"not for {ORIGINAL} now"
    assert texts[0, "transcript"] == f"it is {ORIGINAL} here"
    assert texts[0, "tool", 0] == f'{{"to": "\\u00e9 {ESCAPED} \\"x\\" \\ud83d\\ude00", "n": 1.0}}'
    assert json.loads(texts[0, "tool", 1]) == {"a": [f'{ORIGINAL} "', 1]}
    assert json.loads(texts[1, "old"]) == {"q": ORIGINAL}
    assert texts[0, "tool", 2] == f"for {ORIGINAL}"
    assert recorded.chat_texts(streamed("legacy", recorded.LEGACY_STREAM)[0]) == {
        (0, "text"): f"By {ORIGINAL}"
    }


def test_probabilities_go_where_text_changed():
    out, stream = streamed("chat", recorded.CHAT_STREAM)
    assert stream.notes["logprobs_dropped"] == 1 and b'"logprob"' not in out
    untouched = recorded.chunk([recorded.choice({"content": "hi"}, logprobs=recorded.LOGPROBS)])
    assert streamed("chat", untouched)[0] == untouched


def test_a_message_gives_every_original_back_but_none_to_a_tool_of_the_provider():
    out, stream = streamed("messages", recorded.MESSAGE_STREAM)
    texts = recorded.message_texts(out)
    assert texts[0, "thinking"] == f"ask {ORIGINAL} first {ORIGINAL}"
    assert texts[2, "text"] == f"Dear {ORIGINAL}, hi é [PE"
    assert texts[3, "text"] == f"as {ORIGINAL} said"
    assert json.loads(texts[3, "citation"])["cited_text"] == f"born as {ORIGINAL} there"
    assert json.loads(texts[4, "partial_json"]) == {"to": f'é {ORIGINAL} "', "l": [ORIGINAL], "n": 1.5}
    assert "1.50" in texts[4, "partial_json"]
    assert json.loads(texts[5, "partial_json"]) == {"query": HANDLE}
    assert json.loads(texts[6, "start"])["content"][0]["title"] == f"on {ORIGINAL} there"
    assert texts[7, "content"] == f"with {ORIGINAL} on"
    assert texts[8, "anything"] == f"of {ORIGINAL} now"
    assert json.loads(texts[8, "start"])["text"] == f"by {ORIGINAL} now"
    assert texts[None, "stop_sequence"] == f"to {ORIGINAL} end"
    assert stream.ids == {} and stream.usage == {"input_tokens": 3, "output_tokens": 4}


def test_signed_blocks_of_a_message_are_told_as_they_were_signed():
    stream = MessageStream(HandleRestoration(originals))
    stop = recorded.named("content_block_stop", index=0)
    before, _, after = recorded.MESSAGE_STREAM.partition(stop)
    stream.feed(before)
    assert stream.take_signed() == []
    stream.feed(stop)
    (thinking,) = stream.take_signed()
    assert json.loads(thinking.raw) == {
        "type": "thinking",
        "thinking": "ask [PERSON_1] first [PERSON_1]",
        "signature": SIGNATURE,
    }
    stream.feed(after)
    assert [block.kind for block in stream.take_signed()] == ["redacted_thinking", "compaction"]
    assert stream.take_signed() == []


def test_the_rest_of_what_was_signed_comes_before_its_signature():
    out, _ = streamed("messages", recorded.MESSAGE_STREAM)
    deltas = [
        data["delta"]["type"]
        for data in recorded.events_of(out)
        if data["type"] == "content_block_delta" and data["index"] == 0
    ]
    assert deltas[-1] == "signature_delta" and deltas.count("thinking_delta") == len(deltas) - 1


def test_texts_of_a_response_agree_wherever_they_come_again():
    out, stream = streamed("responses", recorded.RESPONSE_STREAM)
    events = recorded.events_of(out)
    texts = recorded.response_texts(out)
    final = events[-1]["response"]
    message = final["output"][1]["content"]
    expected = f"Dear {ORIGINAL}, see {ORIGINAL} \\ {{"
    assert message[0]["text"] == texts["response.output_text.delta", 1, 0, None] == expected
    assert message[1]["refusal"] == texts["response.refusal.delta", 1, 1, None] == f"not {ORIGINAL} now"
    arguments = texts["response.function_call_arguments.delta", 2, None, None]
    assert final["output"][2]["arguments"] == arguments and json.loads(arguments)["to"] == f'é {ORIGINAL} "'
    summary = texts["response.reasoning_summary_text.delta", 0, None, 0]
    assert final["output"][0]["summary"][0]["text"] == summary == f"sum {ORIGINAL} up"
    assert final["output"][4]["input"] == texts["response.custom_tool_call_input.delta", 4, None, None]
    assert final["output"][7]["output"][0] == {"stdout": f"out {ORIGINAL} x", "stderr": f"err {ORIGINAL} x"}
    assert texts["response.shell_call_output_content.delta", 7, None, None, "stdout"] == f"out {ORIGINAL} x"
    assert texts["response.audio.transcript.delta", None, None, None] == f"by {ORIGINAL} now"
    assert texts["response.a_new_text.delta", 9, None, None] == f"of {ORIGINAL} now"
    for data in events:
        for member in ("item", "part"):
            if data["type"].endswith(".done") and isinstance(data.get(member), dict):
                assert json.dumps(data[member]) in json.dumps(final)
    assert final["instructions"] == f"for {ORIGINAL} be"
    assert stream.ids == {"response": "resp_1", "conversation": "conv_1"} and stream.usage == recorded.USAGE
    (block,) = stream.take_signed()
    assert json.loads(block.raw)["summary"][0]["text"] == f"sum {HANDLE} up"


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        (f"{NOTE}\n\nfor {HANDLE} be", f"for {ORIGINAL} be"),
        (f"{NOTE}\n\nbe brief", "be brief"),
        (NOTE, None),
        (f"as it says: {NOTE}", f"as it says: {NOTE}"),
    ],
)
def test_a_stream_repeats_the_instructions_as_the_caller_wrote_them(sent, shown):
    instructions = json.dumps({"instructions": f"for {HANDLE} be"})[1:-1].encode()
    raw = recorded.RESPONSE_STREAM.replace(instructions, json.dumps({"instructions": sent})[1:-1].encode())
    events = recorded.events_of(streamed("responses", raw)[0])
    repeated = [event["response"]["instructions"] for event in events if "response" in event]
    assert len(repeated) == 4 and repeated == [shown] * 4


def test_tools_of_the_provider_get_handles_alone():
    final = recorded.events_of(streamed("responses", recorded.RESPONSE_STREAM)[0])[-1]["response"]["output"]
    assert final[3]["arguments"] == '{"q":"[PERSON_1]"}' and final[3]["output"] == f"got {ORIGINAL} there"
    assert final[5]["code"] == "print('[PERSON_1]')" and final[8]["action"]["query"] == HANDLE
    assert final[5]["outputs"][0]["logs"] == f"saw {ORIGINAL} there"


def test_citations_of_a_response_move_with_its_text():
    events = recorded.events_of(streamed("responses", recorded.RESPONSE_STREAM)[0])
    final = events[-1]["response"]["output"][1]["content"][0]
    added = [data["annotation"] for data in events if data["type"].endswith("annotation.added")]
    for annotations in (final["annotations"], added):
        assert len(annotations) == 2
        for annotation in annotations:
            start, end = annotation["start_index"], annotation["end_index"]
            assert final["text"][start:end] == ORIGINAL and annotation["title"] == f"of {ORIGINAL} here"


DYING = {
    "chat": b'"index": 1, "delta": {"content": "] x"}',
    "messages": b'"text": "hi \\u00e9 [PE"',
    "responses": b"_1], see",
}


@pytest.mark.parametrize("family", DYING)
def test_a_stream_that_dies_ends_as_its_family_ends(family):
    raw = FAMILIES[family][1]
    out, stream = streamed(family, raw[: raw.index(DYING[family])], died=True)
    last = recorded.events_of(out)[-1]
    error = last if family == "responses" else last["error"]
    assert error["code"] == "sluice_upstream_interrupted" and error["message"]
    assert last.get("type") == (None if family == "chat" else "error")
    assert b"[DONE]" not in out and stream.ended


def test_what_was_held_back_comes_before_the_error():
    started = recorded.chunk([recorded.choice({"content": "Dear [PERS"})])
    out, _ = streamed("chat", started + b"data: {half", died=True)
    assert recorded.chat_texts(out) == {(0, "content"): "Dear [PERS"} and b"half" not in out


@pytest.mark.parametrize("family", DYING)
def test_a_stream_that_ended_gets_no_error(family):
    raw = FAMILIES[family][1]
    assert streamed(family, raw, died=True)[0] == streamed(family, raw)[0]


def test_an_end_without_an_empty_line_is_an_end():
    raw = recorded.CHAT_STREAM.removesuffix(b"\n\n")
    assert streamed("chat", raw)[0] == streamed("chat", recorded.CHAT_STREAM)[0].removesuffix(b"\n\n")
    tail = streamed("chat", recorded.chunk([recorded.choice({"content": "[PER"})]))[0]
    assert recorded.chat_texts(tail) == {(0, "content"): "[PER"}


@pytest.mark.parametrize(
    "raw", [b"data: {broken\n\n", b"data: \xff\xfe\n\n", b"data: [1]\n\n", b"event: x\n\n", b"retry: 5\n\n"]
)
@pytest.mark.parametrize("family", DYING)
def test_malformed_events_pass_as_they_came(family, raw):
    assert streamed(family, raw)[0] == raw


def test_errors_of_the_provider_pass_as_they_came():
    error = recorded.event({"error": {"message": "of [PERSON_1]", "code": "x"}})
    assert streamed("chat", error, died=True)[0] == error
    error = recorded.named("error", error={"type": "overloaded_error", "message": "of [PERSON_1]"})
    assert streamed("messages", error, died=True)[0] == error


def test_a_completion_is_whole_when_every_choice_has_its_reason():
    last = recorded.chunk([recorded.choice({}, reason="stop")])
    assert streamed("chat", last, died=True)[0] == last
    other = recorded.chunk([recorded.choice({"content": "x"}, 1)])
    assert b"sluice_upstream_interrupted" in streamed("chat", other + last, died=True)[0]


PARTS = (
    "Dear ",
    "[PER",
    "SON_1]",
    ", see ",
    "",
    "https://x.example/?q=[PERSON_1] ",
    "data: [PERSON_1]",
    "[PERSON_1",
)


@pytest.mark.parametrize("more", [{}, {"logprobs": None}, {"finish_reason": None}])
def test_a_chunk_with_text_alone_changes_as_one_with_other_members(more):
    def came(beside):
        deltas = [{"role": "assistant", "content": ""}, *({"content": part} for part in PARTS), {}]
        stream = ChatStream(HandleRestoration(originals))
        out = b""
        for number, delta in enumerate(deltas):
            ends = {"finish_reason": "stop"} if number == len(deltas) - 1 else {}
            choices = [{"index": at, "delta": delta, **more, **beside, **ends} for at in (1, 0)]
            out += stream.feed(b"data: %s\n\n" % json.dumps({"id": "c", "choices": choices}).encode())
        assert stream.ended
        texts = {0: "", 1: ""}
        for event in recorded.events_of(out):
            for choice in event["choices"]:
                texts[choice["index"]] += choice["delta"].get("content", "")
        return texts

    alone = came({})
    assert alone == came({"vendor": 1})
    dear, _, rest = alone[0].partition(", see ")
    assert dear == f"Dear {ORIGINAL}" and rest.startswith("https://x.example/?q=[PERSON_1] ")


def test_citations_of_a_streamed_completion_move_with_its_text():
    citation = {
        "type": "url_citation",
        "url_citation": {"title": "t", "url": "https://a", "start_index": 3, "end_index": 13},
    }
    raw = recorded.chunk([recorded.choice({"content": "To [PERSON_1] now."})])
    raw += recorded.chunk([recorded.choice({"annotations": [citation]})])
    delta = recorded.events_of(streamed("chat", raw)[0])[-1]["choices"][0]["delta"]
    moved = delta["annotations"][0]["url_citation"]
    assert (moved["start_index"], moved["end_index"]) == (3, 3 + len(ORIGINAL)) and "content" not in delta


def test_citations_of_documents_move_in_streams_too():
    document = OffsetMap([TextPiece("born ", "born "), TextPiece("[PERSON_1]", ORIGINAL)])
    stream = MessageStream(HandleRestoration(originals), [document])
    texts = recorded.message_texts(stream.feed(recorded.MESSAGE_STREAM))
    citation = json.loads(texts[3, "citation"])
    assert (citation["start_char_index"], citation["end_char_index"]) == (5, 5 + len(ORIGINAL))


def plainly(text):
    """Return the value of arguments, so that it does not matter how their characters are spelled."""
    return json.loads(text) if text.startswith("{") else text


@pytest.mark.parametrize("family", ["chat", "messages", "responses"])
def test_another_channel_changes_a_stream_by_the_same_places(family):
    """Redaction of answers is another channel; it sees every text, decoded, and holds back what it wants."""

    class Shouting:
        def __init__(self):
            self.parts = []

        def feed(self, text):
            self.parts.append(text)
            return []

        def finish(self):
            whole, self.parts = "".join(self.parts), []
            return [TextPiece(whole, whole.replace("PERSON", "PEER"))]

    stream = FAMILIES[family][0](lambda _: Shouting())
    raw, texts = FAMILIES[family][1:]
    out = stream.feed(raw) + stream.end(died=False)
    changed = texts(out)
    assert changed.keys() == texts(raw).keys()
    for key, text in texts(raw).items():
        assert plainly(changed[key]) == plainly(text.replace("PERSON", "PEER")), key


@pytest.mark.parametrize("family", ["chat", "messages", "responses"])
def test_events_that_are_nested_too_deeply_pass_as_they_came(family):
    deep = "[" * 400 + '"[PERSON_1]"' + "]" * 400
    block = f'"type": "content_block_start", "index": 0, "content_block": {deep}'
    raw = f'data: {{{block}, "choices": [{{"delta": {deep}}}]}}\n\n'
    raw += f'data: {{"type": "response.x.delta", "delta": {deep}}}\n\n'
    assert streamed(family, raw.encode())[0].startswith(raw.encode())
