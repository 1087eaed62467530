"""Every row of the tables of shapes of four interfaces, each with planted values, and shapes that nobody knows.

A row of the tables is one path with text. Values that must stay (addresses, ids, what is signed) are planted as kept.
"""

import json
from collections.abc import Callable
from typing import Any, Final

from tests.planting import Planter

Make = Callable[[Planter], Any]


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def _with_picture(p: Planter) -> dict[str, str]:
    return {"name": "f", "arguments": json.dumps({"a": p.text(), "shot": p.picture()})}


def _chat_call(p: Planter) -> Any:
    return {
        "role": "assistant",
        "content": None,
        "refusal": p.text(),
        "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "send_mail", "arguments": p.json()}},
            {"id": "call_2", "type": "custom", "custom": {"name": "note", "input": p.text()}},
        ],
    }


def _chat_answer(p: Planter) -> Any:
    citation = {"title": p.text(), "url": p.kept_address(), "start_index": 0, "end_index": 9_999_999}
    return {
        "role": "assistant",
        "content": p.text(),
        "annotations": [{"type": "url_citation", "url_citation": citation}],
        "audio": {"id": "audio_1", "data": p.picture(), "expires_at": 1_741_476_777, "transcript": p.text()},
        "function_call": {"name": "send_mail", "arguments": p.json()},
        "reasoning_content": p.text(),
    }


def _file_search(p: Planter) -> Any:
    row = {"file_id": "file-1", "filename": p.text(), "text": p.text(), "score": 0.5}
    return {
        "type": "file_search_call",
        "id": "fs_1",
        "status": "completed",
        "queries": [p.text()],
        "results": [{**row, "attributes": {"author": p.text()}}],
    }


def _output_text(p: Planter) -> Any:
    annotations = [
        {"type": "file_citation", "file_id": "file-1", "filename": p.text(), "index": 1},
        {"type": "url_citation", "title": p.text(), "url": p.kept_address(), "start_index": 1},
    ]
    return {"type": "output_text", "text": p.text(), "annotations": annotations}


OPENAI: Final[dict[str, Make]] = {
    "chat developer": lambda p: {"role": "developer", "content": p.text()},
    "chat system blocks": lambda p: {"role": "system", "content": [{"type": "text", "text": p.text()}]},
    "chat user name": lambda p: {"role": "user", "name": p.text(), "content": p.text()},
    "chat image": lambda p: user(
        {"type": "text", "text": p.text()},
        {"type": "image_url", "image_url": {"url": p.kept_address(), "detail": "auto"}},
    ),
    "chat film": lambda p: user(
        {"type": "text", "text": p.text()},
        {"type": "video_url", "video_url": {"url": p.kept_address()}},
    ),
    "chat call with a picture": lambda p: {
        "role": "assistant",
        "tool_calls": [{"id": "c", "type": "function", "function": _with_picture(p)}],
    },
    "chat sound": lambda p: user(
        {"type": "input_audio", "input_audio": {"data": p.picture(), "format": "wav"}}
    ),
    "chat file": lambda p: user(
        {
            "type": "file",
            "file": {"filename": p.text(), "file_data": f"data:text/plain;base64,{p.code()}"},
        }
    ),
    "chat refusal block": lambda p: assistant({"type": "refusal", "refusal": p.text()}),
    "chat calls": _chat_call,
    "chat answer": _chat_answer,
    "chat tool": lambda p: {"role": "tool", "tool_call_id": "call_1", "content": p.json()},
    "chat tool blocks": lambda p: {
        "role": "tool",
        "tool_call_id": "call_1",
        "content": [{"type": "text", "text": p.text()}],
    },
    "chat function": lambda p: {"role": "function", "name": "send_mail", "content": p.text()},
    "input_text": lambda p: user({"type": "input_text", "text": p.text()}),
    "input_text alone": lambda p: {"type": "input_text", "text": p.text()},
    "input_image": lambda p: user(
        {"type": "input_image", "image_url": f"data:image/png;base64,{p.picture()}", "detail": "low"}
    ),
    "input_file": lambda p: user(
        {"type": "input_file", "filename": p.text(), "file_data": p.code("utf-16")},
        {"type": "input_file", "file_url": p.kept_address()},
    ),
    "output_text": lambda p: {
        "type": "message",
        "id": "msg_1",
        "status": "completed",
        "role": "assistant",
        "content": [_output_text(p), {"type": "refusal", "refusal": p.text()}],
    },
    "file_search_call": _file_search,
    "computer_call": lambda p: {
        "type": "computer_call",
        "id": "cu_1",
        "call_id": "call_1",
        "action": {"type": "type", "text": p.text()},
        "actions": [{"type": "keypress", "keys": ["CTRL"]}, {"type": "type", "text": p.text()}],
        "pending_safety_checks": [{"id": "sc_1", "code": "x", "message": p.text()}],
    },
    "computer_call_output": lambda p: {
        "type": "computer_call_output",
        "call_id": "call_1",
        "output": {"type": "computer_screenshot", "image_url": f"data:image/png;base64,{p.picture()}"},
        "acknowledged_safety_checks": [{"id": "sc_1", "message": p.text()}],
    },
    "web_search_call": lambda p: {
        "type": "web_search_call",
        "id": "ws_1",
        "action": {"type": "search", "query": p.text(), "queries": [p.text()]},
    },
    "function_call": lambda p: {
        "type": "function_call",
        "call_id": "call_1",
        "name": "send_mail",
        "arguments": p.json(),
    },
    "function_call_output": lambda p: {
        "type": "function_call_output",
        "call_id": "call_1",
        "output": p.json(),
    },
    "function_call_output blocks": lambda p: {
        "type": "function_call_output",
        "call_id": "call_1",
        "output": [
            {"type": "input_text", "text": p.text()},
            {"type": "input_file", "filename": p.text(), "file_data": p.code()},
        ],
    },
    "tool_search": lambda p: {"type": "tool_search_call", "id": "ts_1", "arguments": p.data()},
    "tool_search_output": lambda p: {
        "type": "tool_search_output",
        "call_id": "call_1",
        "tools": [
            {
                "type": "function",
                "name": "send_mail",
                "description": p.text(),
                "parameters": schema(p),
            }
        ],
    },
    "reasoning": lambda p: {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": p.text()}],
        "content": [{"type": "reasoning_text", "text": p.text()}],
    },
    "reasoning encrypted": lambda p: {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": p.kept_text()}],
        "encrypted_content": p.picture(),
    },
    "compaction": lambda p: {"type": "compaction", "id": "cmp_1", "encrypted_content": p.picture()},
    "image_generation_call": lambda p: {
        "type": "image_generation_call",
        "id": "ig_1",
        "result": p.picture(),
        "revised_prompt": p.text(),
    },
    "code_interpreter_call": lambda p: {
        "type": "code_interpreter_call",
        "id": "ci_1",
        "container_id": "cntr_1",
        "code": p.text(),
        "outputs": [{"type": "logs", "logs": p.text()}, {"type": "image", "url": p.kept_address()}],
    },
    "local_shell_call": lambda p: {
        "type": "local_shell_call",
        "id": "ls_1",
        "call_id": "call_1",
        "action": {"type": "exec", "command": ["mail", p.text()], "env": {"TO": p.text()}},
    },
    "local_shell_call_output": lambda p: {
        "type": "local_shell_call_output",
        "id": "ls_1",
        "output": p.text(),
    },
    "shell_call": lambda p: {"type": "shell_call", "call_id": "call_1", "action": {"commands": [p.text()]}},
    "shell_call_output": lambda p: {
        "type": "shell_call_output",
        "call_id": "call_1",
        "output": [{"stdout": p.text(), "stderr": p.text(), "outcome": {"type": "exit", "exit_code": 0}}],
    },
    "apply_patch_call": lambda p: {
        "type": "apply_patch_call",
        "call_id": "call_1",
        "operation": {"type": "update_file", "path": "a.py", "diff": p.text()},
    },
    "apply_patch_call_output": lambda p: {
        "type": "apply_patch_call_output",
        "call_id": "call_1",
        "output": p.text(),
    },
    "mcp_list_tools": lambda p: {
        "type": "mcp_list_tools",
        "id": "mcpl_1",
        "server_label": "crm",
        "error": p.text(),
        "tools": [{"name": "find", "description": p.text(), "input_schema": schema(p)}],
    },
    "mcp_approval_request": lambda p: {
        "type": "mcp_approval_request",
        "id": "mcpr_1",
        "name": "find",
        "server_label": "crm",
        "arguments": p.json(),
    },
    "mcp_approval_response": lambda p: {
        "type": "mcp_approval_response",
        "approval_request_id": "mcpr_1",
        "approve": True,
        "reason": p.text(),
    },
    "mcp_call": lambda p: {
        "type": "mcp_call",
        "id": "mcp_1",
        "name": "find",
        "server_label": "crm",
        "arguments": p.json(),
        "output": p.text(),
        "error": {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": p.text()}]},
    },
    "custom_tool_call": lambda p: {
        "type": "custom_tool_call",
        "call_id": "call_1",
        "name": "note",
        "input": p.text(),
    },
    "custom_tool_call_output": lambda p: {
        "type": "custom_tool_call_output",
        "call_id": "call_1",
        "output": [{"type": "input_text", "text": p.text()}],
    },
    "program": lambda p: {"type": "program", "id": "prog_1", "call_id": "call_1", "code": p.text()},
    "program_output": lambda p: {"type": "program_output", "call_id": "call_1", "result": p.text()},
}


def schema(p: Planter) -> dict[str, Any]:
    """Return the schema of a tool's arguments; its names, types and required members stay."""
    return {
        "type": "object",
        "properties": {
            "to": {"type": "string", "description": p.text(), "default": p.text()},
            "kind": {"type": "string", "enum": [p.text(), "other"], "examples": [p.text()]},
            "name": {"const": p.text(), "title": p.text()},
        },
        "required": ["to"],
        "additionalProperties": False,
    }


def _citations(p: Planter) -> list[dict[str, Any]]:
    return [
        {
            "type": "char_location",
            "cited_text": p.text(),
            "document_title": p.text(),
            "document_index": 0,
            "start_char_index": 0,
        },
        {
            "type": "web_search_result_location",
            "cited_text": p.text(),
            "title": p.text(),
            "url": p.kept_address(),
            "encrypted_index": p.picture(),
        },
        {"type": "search_result_location", "cited_text": p.text(), "source": p.text(), "title": p.text()},
    ]


def _search_result(p: Planter) -> dict[str, Any]:
    content = [{"type": "text", "text": p.text()}]
    return {"type": "search_result", "source": p.text(), "title": p.text(), "content": content}


def _server_result(kind: str, content: Any) -> Any:
    return assistant({"type": f"{kind}_tool_result", "tool_use_id": "srvtoolu_1", "content": content})


def _execution(kind: str, p: Planter) -> dict[str, Any]:
    outputs = [{"type": f"{kind}_output", "file_id": "file_1"}]
    return {"type": f"{kind}_result", "stdout": p.text(), "stderr": p.text(), "content": outputs}


def _document(source: dict[str, Any], p: Planter) -> dict[str, Any]:
    return {"type": "document", "title": p.text(), "context": p.text(), "source": source}


ANTHROPIC: Final[dict[str, Make]] = {
    "text citations": lambda p: assistant({"type": "text", "text": p.text(), "citations": _citations(p)}),
    "image": lambda p: user(
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": p.picture()}}
    ),
    "image url": lambda p: user({"type": "image", "source": {"type": "url", "url": p.kept_address()}}),
    "document text": lambda p: user(
        _document({"type": "text", "media_type": "text/plain", "data": p.text()}, p)
    ),
    "document content": lambda p: user(
        _document({"type": "content", "content": [{"type": "text", "text": p.text()}]}, p)
    ),
    "document content string": lambda p: user(_document({"type": "content", "content": p.text()}, p)),
    "document pdf": lambda p: user(
        _document({"type": "base64", "media_type": "application/pdf", "data": p.picture()}, p)
    ),
    "document base64 text": lambda p: user(
        _document({"type": "base64", "media_type": "text/csv", "data": p.code("latin-1")}, p)
    ),
    "search_result": lambda p: user(_search_result(p)),
    "thinking": lambda p: assistant({"type": "thinking", "thinking": p.text(), "signature": ""}),
    "thinking signed": lambda p: assistant(
        {"type": "thinking", "thinking": p.kept_text(), "signature": p.picture()}
    ),
    "redacted_thinking": lambda p: assistant({"type": "redacted_thinking", "data": p.picture()}),
    "tool_use": lambda p: assistant(
        {"type": "tool_use", "id": "toolu_1", "name": "send_mail", "input": p.data()}
    ),
    "tool_result": lambda p: user(
        {
            "type": "tool_result",
            "tool_use_id": "toolu_1",
            "content": [
                {"type": "text", "text": p.text()},
                _search_result(p),
                _document({"type": "text", "media_type": "text/plain", "data": p.text()}, p),
            ],
        }
    ),
    "tool_result string": lambda p: user(
        {"type": "tool_result", "tool_use_id": "toolu_1", "is_error": True, "content": p.json()}
    ),
    "browser_state": lambda p: user(
        {
            "type": "tool_result",
            "tool_use_id": "toolu_1",
            "content": [
                {"type": "browser_state", "tabs": [{"tab_id": "t1", "title": p.text(), "active": True}]}
            ],
        }
    ),
    "server_tool_use": lambda p: assistant(
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": p.text()}}
    ),
    "web_search": lambda p: _server_result(
        "web_search",
        [
            {
                "type": "web_search_result",
                "title": p.text(),
                "url": p.kept_address(),
                "encrypted_content": p.picture(),
                "page_age": "2 days",
            }
        ],
    ),
    "web_fetch": lambda p: _server_result(
        "web_fetch",
        {
            "type": "web_fetch_result",
            "url": p.kept_address(),
            "content": _document({"type": "text", "media_type": "text/plain", "data": p.text()}, p),
        },
    ),
    "code_execution": lambda p: _server_result("code_execution", _execution("code_execution", p)),
    "bash": lambda p: _server_result("bash_code_execution", _execution("bash_code_execution", p)),
    "text_editor": lambda p: _server_result(
        "text_editor_code_execution",
        {
            "type": "text_editor_code_execution_view_result",
            "file_type": "text",
            "content": p.text(),
            "lines": [p.text()],
        },
    ),
    "tool_search_error": lambda p: _server_result(
        "tool_search", {"type": "tool_search_tool_result_error", "error_message": p.text()}
    ),
    "container_upload": lambda p: user({"type": "container_upload", "file_id": "file_1", "note": p.text()}),
}
