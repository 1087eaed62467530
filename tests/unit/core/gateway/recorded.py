"""Streams in the shapes of the providers' reference texts, with every type of event, as clients read them."""

# ruff: noqa: E501 - an event is one line, as it was recorded

import itertools
import json

HANDLE = "[PERSON_1]"
ORIGINAL = 'Zoë "Z" Änder\\son'
USAGE = {"input_tokens": 3, "output_tokens": 4}


def event(data, name=None):
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode()


def chunk(choices, **more):
    return event({"id": "c-1", "object": "chat.completion.chunk", "model": "m", "choices": choices, **more})


def choice(delta, number=0, reason=None, **more):
    return {"index": number, "delta": delta, "logprobs": None, "finish_reason": reason, **more}


def call(number, arguments, **more):
    return {"tool_calls": [{"index": number, "function": {"arguments": arguments, **more}}]}


LOGPROBS = {
    "content": [{"token": "[PER", "logprob": -0.10, "bytes": [91], "top_logprobs": []}],
    "refusal": None,
}

CHAT_STREAM = b"".join(
    [
        b": keep-alive\r\n\r\n",
        chunk([choice({"role": "assistant", "content": "", "refusal": None})], obfuscation="xx"),
        chunk([choice({"content": "Dear "}), choice({"content": "[PERS"}, 1)]),
        chunk([choice({"content": "[PER"}, logprobs=LOGPROBS)]),
        chunk([choice({"content": "ON_1], "}, 1)]),
        chunk([choice({"content": "SON"})]),
        chunk([choice({"content": "_1], hello é"})]),
        chunk([choice({"content": "[1] and [PERSON_1"}, 1)]),
        chunk([choice({"reasoning_content": "think of [PERSON_1], then"})]),
        chunk([choice({"refusal": "not for [PERSON_1] now"})]),
        chunk([choice({"tool_calls": [{"index": 0, "id": "t0", "type": "function", **call(0, "", name="f")["tool_calls"][0]}]})]),
        chunk([choice(call(0, '{"to": "\\u00'))]),
        chunk([choice({"tool_calls": [{"index": 1, "id": "t1", "type": "function", "function": {"name": "g", "arguments": '{"a'}}]})]),
        chunk([choice(call(0, "e9 [PER"))]),
        chunk([choice(call(1, '": ["[PERSON_1] \\'))]),
        chunk([choice(call(0, 'SON_1] \\"x\\" \\ud83d'))]),
        chunk([choice(call(1, '"", 1]}'))]),
        chunk([choice(call(0, '\\ude00", "n": 1.0}'))]),
        chunk([choice({"function_call": {"name": "old", "arguments": '{"q":"[PERSON_1]"}'}}, 1)]),
        chunk([choice({"tool_calls": [{"index": 2, "id": "t2", "type": "custom", "custom": {"name": "h", "input": "for [PERSON_1]"}}]})]),
        chunk([choice({"audio": {"id": "a", "data": "UklGRg==", "transcript": "it is [PERSON_1] here", "expires_at": 1}})]),
        chunk([choice({}, 0, "tool_calls")]),
        chunk([choice({"content": "] x"}, 1, "stop")]),
        chunk([], usage={"prompt_tokens": 1, "completion_tokens": 2}),
        b"data: [DONE]\n\n",
    ]
)  # fmt: skip

LEGACY_STREAM = b"".join(
    [
        event({"id": "l", "object": "text_completion", "choices": [{"index": 0, "text": "By [PERSO", "finish_reason": None}]}),
        event({"id": "l", "object": "text_completion", "choices": [{"index": 0, "text": "N_1]", "finish_reason": "stop"}]}),
        b"data: [DONE]\n\n",
    ]
)  # fmt: skip


def named(kind, **data):
    return event({"type": kind, **data}, kind)


def block(number, start, *deltas):
    pieces = [named("content_block_start", index=number, content_block=start)]
    pieces += [named("content_block_delta", index=number, delta=delta) for delta in deltas]
    return b"".join([*pieces, named("content_block_stop", index=number)])


def text_delta(text):
    return {"type": "text_delta", "text": text}


def json_delta(text):
    return {"type": "input_json_delta", "partial_json": text}


SIGNATURE = "EqQBCkYIBxgC" * 4
CITATION = {
    "type": "char_location",
    "cited_text": "born as [PERSON_1] there",
    "document_title": "cv of [PERSON_1] here",
    "document_index": 0,
    "start_char_index": 5,
    "end_char_index": 15,
}
SEARCHED = {
    "type": "web_search_tool_result",
    "tool_use_id": "s",
    "content": [
        {"type": "web_search_result", "title": "on [PERSON_1] there", "url": "https://a.example", "encrypted_content": SIGNATURE}
    ],
}  # fmt: skip
MESSAGE_STREAM = b"".join(
    [
        named("message_start", message={"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None, "usage": {"input_tokens": 3}}),
        named("ping"),
        block(
            0,
            {"type": "thinking", "thinking": "", "signature": ""},
            {"type": "thinking_delta", "thinking": "ask [PERSO"},
            {"type": "thinking_delta", "thinking": "N_1] first [PERSON_1"},
            {"type": "thinking_delta", "thinking": "]"},
            {"type": "signature_delta", "signature": SIGNATURE},
        ),
        block(1, {"type": "redacted_thinking", "data": SIGNATURE}),
        block(2, {"type": "text", "text": ""}, text_delta("Dear "), text_delta("[PERSON"), text_delta("_1], "), text_delta("hi é [PE")),
        block(3, {"type": "text", "text": "", "citations": []}, {"type": "citations_delta", "citation": CITATION}, text_delta("as [PERSON_1] said")),
        block(4, {"type": "tool_use", "id": "t", "name": "f", "input": {}}, json_delta(""), json_delta('{"to": "\\u00'), json_delta("e9 [PERSON"), json_delta("_1] \\"), json_delta('"", "l": ["[PERSON_1]"], "n": 1.50}')),
        block(5, {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}, json_delta('{"query": "[PERSON_1]"}')),
        block(6, SEARCHED),
        block(7, {"type": "compaction", "content": None}, {"type": "compaction_delta", "content": "with [PERSON_1] on", "encrypted_content": "EqQBCkYI" * 8}),
        block(8, {"type": "a_new_block", "text": "by [PERSON_1] now"}, {"type": "a_new_delta", "anything": "of [PERSON_1] now"}),
        block(9, {"type": "container_upload", "file_id": "file_1"}),
        named("message_delta", delta={"stop_reason": "stop_sequence", "stop_sequence": "to [PERSON_1] end"}, usage={"output_tokens": 4}),
        named("message_stop"),
    ]
)  # fmt: skip


class Numbered:
    """Give each event the next number."""

    def __init__(self):
        self.number = -1

    def __call__(self, kind, **data):
        self.number += 1
        return named(kind, sequence_number=self.number, **data)


def response_stream():
    made = Numbered()
    text = "Dear [PERSON_1], see [PERSON_1] \\ {"
    citation = {
        "type": "url_citation",
        "title": "of [PERSON_1] here",
        "url": "https://a.example",
        "start_index": 5,
        "end_index": 15,
    }
    far = {**citation, "start_index": 21, "end_index": 31}
    arguments = '{"to": "\\u00e9 [PERSON_1] \\"", "n": 1}'
    part = {"type": "output_text", "text": text, "annotations": [citation, far], "logprobs": []}
    items = [
        {"id": "rs", "type": "reasoning", "summary": [{"type": "summary_text", "text": "sum [PERSON_1] up"}], "content": [{"type": "reasoning_text", "text": "why [PERSON_1] so"}], "encrypted_content": SIGNATURE},
        {"id": "msg", "type": "message", "role": "assistant", "status": "completed", "content": [part, {"type": "refusal", "refusal": "not [PERSON_1] now"}]},
        {"id": "fc", "type": "function_call", "call_id": "c", "name": "f", "arguments": arguments, "status": "completed"},
        {"id": "mc", "type": "mcp_call", "name": "t", "server_label": "s", "arguments": '{"q":"[PERSON_1]"}', "output": "got [PERSON_1] there"},
        {"id": "ct", "type": "custom_tool_call", "call_id": "d", "name": "g", "input": "find [PERSON_1] now"},
        {"id": "ci", "type": "code_interpreter_call", "code": "print('[PERSON_1]')", "outputs": [{"type": "logs", "logs": "saw [PERSON_1] there"}]},
        {"id": "sh", "type": "shell_call", "call_id": "e", "action": {"commands": ["id [PERSON_1] x"]}, "environment": {"type": "local"}},
        {"id": "so", "type": "shell_call_output", "call_id": "e", "output": [{"stdout": "out [PERSON_1] x", "stderr": "err [PERSON_1] x"}]},
        {"id": "ws", "type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "[PERSON_1]"}},
        {"id": "ig", "type": "image_generation_call", "status": "completed", "result": "iVBORw0KGgo=", "revised_prompt": "draw [PERSON_1] now"},
    ]  # fmt: skip

    def added(number, **empty):
        return made("response.output_item.added", output_index=number, item={**items[number], **empty})

    def done(number):
        return made("response.output_item.done", output_index=number, item=items[number])

    def parts(kind, text, *cuts, **at):
        bounds = [0, *cuts, len(text)]
        return [made(f"{kind}.delta", delta=text[i:j], **at) for i, j in itertools.pairwise(bounds)]

    base = {
        "id": "resp_1",
        "object": "response",
        "model": "m",
        "instructions": "for [PERSON_1] be",
        "tools": [],
    }
    started = {**base, "status": "in_progress", "output": []}
    ended = {**base, "status": "completed", "output": items, "usage": USAGE, "conversation": {"id": "conv_1"}}
    at, refusal = (
        {"item_id": "msg", "output_index": 1, "content_index": 0},
        {"item_id": "msg", "output_index": 1, "content_index": 1},
    )
    summary, thought = (
        {"item_id": "rs", "output_index": 0, "summary_index": 0},
        {"item_id": "rs", "output_index": 0, "content_index": 0},
    )
    deltas = parts("response.output_text", text, 7, 12, 31, **at)
    return b"".join([
        made("response.created", response=started), made("response.queued", response=started), made("response.in_progress", response=started),
        added(0, summary=[], content=[], encrypted_content=""),
        made("response.reasoning_summary_part.added", part={"type": "summary_text", "text": ""}, **summary),
        *parts("response.reasoning_summary_text", "sum [PERSON_1] up", 9, **summary),
        made("response.reasoning_summary_text.done", text="sum [PERSON_1] up", **summary),
        made("response.reasoning_summary_part.done", part={"type": "summary_text", "text": "sum [PERSON_1] up"}, **summary),
        *parts("response.reasoning_text", "why [PERSON_1] so", 8, **thought),
        made("response.reasoning_text.done", text="why [PERSON_1] so", **thought),
        done(0),
        added(1, content=[]),
        made("response.content_part.added", part={**part, "text": "", "annotations": []}, **at),
        *deltas[:3],
        made("response.output_text.annotation.added", annotation=citation, annotation_index=0, **at),
        made("response.output_text.annotation.added", annotation=far, annotation_index=1, **at),
        *deltas[3:],
        made("response.output_text.done", text=text, logprobs=[{"token": "[PER", "logprob": -0.1, "top_logprobs": []}], **at),
        made("response.content_part.done", part=part, **at),
        *parts("response.refusal", "not [PERSON_1] now", 6, **refusal),
        made("response.refusal.done", refusal="not [PERSON_1] now", **refusal),
        done(1),
        added(2, arguments=""), *parts("response.function_call_arguments", arguments, 9, 12, 14, 20, 28, item_id="fc", output_index=2),
        made("response.function_call_arguments.done", arguments=arguments, item_id="fc", output_index=2), done(2),
        added(3, arguments="", output=None), made("response.mcp_call.in_progress", item_id="mc", output_index=3),
        *parts("response.mcp_call_arguments", '{"q":"[PERSON_1]"}', 10, item_id="mc", output_index=3),
        made("response.mcp_call_arguments.done", arguments='{"q":"[PERSON_1]"}', item_id="mc", output_index=3),
        made("response.mcp_call.completed", item_id="mc", output_index=3), made("response.mcp_call.failed", item_id="mc", output_index=3), done(3),
        made("response.mcp_list_tools.in_progress", item_id="ml", output_index=3), made("response.mcp_list_tools.completed", item_id="ml", output_index=3), made("response.mcp_list_tools.failed", item_id="ml", output_index=3),
        added(4, input=""), *parts("response.custom_tool_call_input", "find [PERSON_1] now", 11, item_id="ct", output_index=4),
        made("response.custom_tool_call_input.done", input="find [PERSON_1] now", item_id="ct", output_index=4), done(4),
        added(5, code="", outputs=[]), made("response.code_interpreter_call.in_progress", item_id="ci", output_index=5),
        *parts("response.code_interpreter_call_code", "print('[PERSON_1]')", 12, item_id="ci", output_index=5),
        made("response.code_interpreter_call_code.done", code="print('[PERSON_1]')", item_id="ci", output_index=5),
        made("response.code_interpreter_call.interpreting", item_id="ci", output_index=5), made("response.code_interpreter_call.completed", item_id="ci", output_index=5), done(5),
        added(6, action={"commands": []}), made("response.shell_call_command.added", command="", command_index=0, output_index=6),
        *parts("response.shell_call_command", "id [PERSON_1] x", 8, command_index=0, output_index=6),
        made("response.shell_call_command.done", command="id [PERSON_1] x", command_index=0, output_index=6), done(6),
        added(7, output=[]), made("response.shell_call_output_content.delta", delta={"stdout": "out [PERS"}, command_index=0, item_id="so", output_index=7),
        made("response.shell_call_output_content.delta", delta={"stdout": "ON_1] x", "stderr": "err [PERSON_1] x"}, command_index=0, item_id="so", output_index=7),
        made("response.shell_call_output_content.done", output=items[7]["output"], command_index=0, item_id="so", output_index=7), done(7),
        added(8), made("response.web_search_call.in_progress", item_id="ws", output_index=8), made("response.web_search_call.searching", item_id="ws", output_index=8), made("response.web_search_call.completed", item_id="ws", output_index=8), done(8),
        made("response.file_search_call.in_progress", item_id="fs", output_index=8), made("response.file_search_call.searching", item_id="fs", output_index=8), made("response.file_search_call.completed", item_id="fs", output_index=8),
        added(9, revised_prompt=None, result=None), made("response.image_generation_call.in_progress", item_id="ig", output_index=9), made("response.image_generation_call.generating", item_id="ig", output_index=9),
        made("response.image_generation_call.partial_image", partial_image_b64="iVBORw0KGgo=", partial_image_index=0, item_id="ig", output_index=9), made("response.image_generation_call.completed", item_id="ig", output_index=9), done(9),
        made("response.audio.delta", delta="UklGRg=="), made("response.audio.transcript.delta", delta="by [PER"), made("response.audio.transcript.delta", delta="SON_1] now"),
        made("response.audio.transcript.done"), made("response.audio.done"), made("response.compaction.compacting", item_id="cp", output_index=9),
        made("response.a_new_text.delta", delta="of [PERSON_1", output_index=9), made("response.a_new_text.delta", delta="] now", output_index=9),
        made("response.completed", response=ended),
    ])  # fmt: skip


RESPONSE_STREAM = response_stream()

RESULT_TEXT = [{"type": "text", "text": "got [PERSON_1] there"}]
BLOCKS = [
    {"type": "mcp_tool_use", "id": "m", "name": "t", "server_name": "s", "input": {"q": "[PERSON_1]"}},
    {"type": "mcp_tool_result", "tool_use_id": "m", "is_error": False, "content": RESULT_TEXT},
    {"type": "mcp_tool_listing", "server_name": "s", "tools": [{"name": "t", "description": "for [PERSON_1] alone"}]},
    {"type": "code_execution_tool_result", "tool_use_id": "s", "content": {"type": "code_execution_result", "stdout": "saw [PERSON_1] there", "stderr": "", "return_code": 0, "content": []}},
    {"type": "bash_code_execution_tool_result", "tool_use_id": "s", "content": {"type": "bash_code_execution_result", "stdout": "ran [PERSON_1] there", "stderr": "", "return_code": 0, "content": []}},
    {"type": "text_editor_code_execution_tool_result", "tool_use_id": "s", "content": {"type": "text_editor_code_execution_view_result", "file_type": "text", "content": "read [PERSON_1] there"}},
    {"type": "tool_search_tool_result", "tool_use_id": "s", "content": {"type": "tool_search_tool_search_result", "tool_references": [{"type": "tool_reference", "tool_name": "f"}]}},
    {"type": "web_fetch_tool_result", "tool_use_id": "s", "content": {"type": "web_fetch_result", "url": "https://a.example", "retrieved_at": "2026-01-01", "content": {"type": "document", "title": "of [PERSON_1] here", "source": {"type": "text", "media_type": "text/plain", "data": "has [PERSON_1] in it"}}}},
    {"type": "advisor_tool_result", "tool_use_id": "s", "content": {"type": "advisor_result", "text": "ask [PERSON_1] now"}},
    {"type": "fallback", "from": {"model": "m"}, "to": {"model": "n"}},
]  # fmt: skip
BLOCK_STREAM = b"".join(
    [
        named("message_start", message={"id": "msg_2", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": {}}),
        *(block(number, each) for number, each in enumerate(BLOCKS)),
        named("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 4}),
        named("message_stop"),
    ]
)  # fmt: skip

ITEMS = [
    {"id": "i0", "type": "apply_patch_call", "call_id": "a", "status": "completed", "operation": {"type": "update_file", "path": "a.txt", "diff": "+ [PERSON_1] x"}},
    {"id": "i1", "type": "apply_patch_call_output", "call_id": "a", "status": "completed", "output": "put [PERSON_1] in"},
    {"id": "i2", "type": "computer_call", "call_id": "b", "action": {"type": "type", "text": "for [PERSON_1] now"}, "pending_safety_checks": [], "status": "completed"},
    {"id": "i3", "type": "computer_call_output", "call_id": "b", "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,iVBORw0KGgo="}},
    {"id": "i4", "type": "custom_tool_call_output", "call_id": "d", "output": "had [PERSON_1] there"},
    {"id": "i5", "type": "function_call_output", "call_id": "c", "output": '{"who": "[PERSON_1]"}'},
    {"id": "i6", "type": "file_search_call", "status": "completed", "queries": ["where is [PERSON_1] now"], "results": [{"file_id": "f", "filename": "n.txt", "score": 0.5, "text": "by [PERSON_1] then"}]},
    {"id": "i7", "type": "local_shell_call", "call_id": "e", "status": "completed", "action": {"type": "exec", "command": ["echo", "[PERSON_1]"], "env": {}}},
    {"id": "i8", "type": "local_shell_call_output", "call_id": "e", "output": "echoed [PERSON_1] back"},
    {"id": "i9", "type": "mcp_approval_request", "name": "t", "server_label": "s", "arguments": '{"q":"[PERSON_1]"}'},
    {"id": "i10", "type": "mcp_approval_response", "approval_request_id": "i9", "approve": True, "reason": "as [PERSON_1] said"},
    {"id": "i11", "type": "mcp_list_tools", "server_label": "s", "tools": [{"name": "t", "description": "for [PERSON_1] alone", "input_schema": {}}]},
    {"id": "i12", "type": "tool_search_call", "execution": "client", "arguments": {"q": "[PERSON_1]"}, "status": "completed"},
    {"id": "i13", "type": "tool_search_output", "tools": [{"type": "function", "name": "f", "description": "by [PERSON_1] then"}], "status": "completed"},
    {"id": "i14", "type": "program", "call_id": "p", "code": "print('[PERSON_1]')"},
    {"id": "i15", "type": "program_output", "call_id": "p", "output": "ran [PERSON_1] there"},
    {"id": "i16", "type": "additional_tools", "tools": []},
    {"id": "i17", "type": "compaction", "encrypted_content": SIGNATURE},
]  # fmt: skip


def item_stream():
    made = Numbered()
    base = {"id": "resp_2", "object": "response", "model": "m", "tools": []}
    events = [made("response.created", response={**base, "status": "in_progress", "output": []})]
    for number, item in enumerate(ITEMS):
        events.append(
            made("response.output_item.added", output_index=number, item={**item, "status": "in_progress"})
        )
        events.append(made("response.output_item.done", output_index=number, item=item))
    return b"".join(
        [*events, made("response.completed", response={**base, "status": "completed", "output": ITEMS})]
    )


ITEM_STREAM = item_stream()


def ended_with(kind):
    """Return a short stream that ends before its answer is whole."""
    made = Numbered()
    base = {"id": "resp_3", "object": "response", "model": "m", "tools": []}
    at = {"item_id": "msg", "output_index": 0, "content_index": 0}
    part = {"type": "output_text", "text": "Dear [PERSON_1], and [PERS", "annotations": []}
    item = {"id": "msg", "type": "message", "role": "assistant", "status": "incomplete", "content": [part]}
    status = kind.removeprefix("response.")
    fault = {"code": "server_error", "message": "no [PERSON_1] here"}
    ended = {**base, "status": status, "output": [item], "error": fault}
    last = made(kind, **fault, param=None) if kind == "error" else None
    return b"".join(
        [
            made("response.created", response={**base, "status": "in_progress", "output": []}),
            made("response.output_item.added", output_index=0, item={**item, "content": []}),
            made("response.content_part.added", part={**part, "text": ""}, **at),
            made("response.output_text.delta", delta="Dear [PER", **at),
            made("response.output_text.delta", delta="SON_1], and [PERS", **at),
            last or made(kind, response=ended),
        ]
    )


def events_of(raw):
    """Return the data of the events of a stream, as a client reads them."""
    parsed = []
    for part in raw.decode().replace("\r\n", "\n").split("\n\n"):
        lines = [line[6:] for line in part.split("\n") if line.startswith("data: ")]
        if lines and lines != ["[DONE]"]:
            parsed.append(json.loads("\n".join(lines)))
    return parsed


def _add(texts, key, value):
    if isinstance(value, str):
        texts[key] = texts.get(key, "") + value


def chat_texts(raw):
    """Put the texts of a streamed completion together, by choice and member."""
    texts = {}
    for data in events_of(raw):
        for piece in data.get("choices", []):
            number = piece["index"]
            _add(texts, (number, "text"), piece.get("text"))
            delta = piece.get("delta", {})
            for member in ("content", "refusal", "reasoning_content"):
                _add(texts, (number, member), delta.get(member))
            _add(texts, (number, "transcript"), delta.get("audio", {}).get("transcript"))
            _add(texts, (number, "old"), delta.get("function_call", {}).get("arguments"))
            for tool in delta.get("tool_calls", []):
                inner = tool.get("function") or tool.get("custom") or {}
                _add(texts, (number, "tool", tool["index"]), inner.get("arguments") or inner.get("input"))
    return texts


def message_texts(raw):
    """Put the texts of a streamed message together, by block and member."""
    texts = {}
    for data in events_of(raw):
        if data["type"] == "content_block_start":
            texts[data["index"], "start"] = json.dumps(data["content_block"])
        for member, value in data.get("delta", {}).items():
            if member == "citation":
                texts[data["index"], "citation"] = json.dumps(value)
            elif member not in {"type", "stop_reason"}:
                _add(texts, (data.get("index"), member), value)
    return texts


def response_texts(raw):
    """Put the deltas of a streamed response together, by kind and indices."""
    texts = {}
    for data in events_of(raw):
        delta = data.get("delta")
        if data["type"].endswith(".delta"):
            key = (
                data["type"],
                *(data.get(name) for name in ("output_index", "content_index", "summary_index")),
            )
            if isinstance(delta, dict):
                for member, value in delta.items():
                    _add(texts, (*key, member), value)
            else:
                _add(texts, key, delta)
    return texts
