"""Requests in the shapes of the providers' reference texts, with something in every kind of place."""

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SCHEMA = {
    "type": "object",
    "description": "a form",
    "properties": {"city": {"type": "string", "enum": ["Bern", "Rome"], "default": "Bern", "const": "Bern"}},
    "required": ["city"],
    "examples": [{"city": "Oslo"}],
}

CHAT = {
    "model": "gpt-5",
    "messages": [
        {"role": "developer", "content": "be brief"},
        {"role": "system", "content": [{"type": "text", "text": "be kind"}], "name": "ops"},
        {
            "role": "user",
            "name": "anna",
            "content": [
                {"type": "text", "text": "hello", "prompt_cache_breakpoint": {"mode": "explicit"}},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}", "detail": "low"}},
                {"type": "input_audio", "input_audio": {"data": PNG, "format": "wav"}},
                {"type": "file", "file": {"file_data": PNG, "filename": "cv.pdf", "file_id": "file-1"}},
            ],
        },
        {
            "role": "assistant",
            "content": [{"type": "refusal", "refusal": "no"}, {"type": "text", "text": "yes"}],
            "refusal": "never",
            "audio": {"id": "audio_1"},
            "function_call": {"name": "old", "arguments": '{"a": "b"}'},
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "f", "arguments": '{"to": "x", "n": [1]}'},
                },
                {"id": "c2", "type": "custom", "custom": {"name": "g", "input": "free text"}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "done"},
        {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "done"}]},
        {"role": "function", "name": "old", "content": "done"},
    ],
    "tools": [
        {"type": "function", "function": {"name": "f", "description": "finds", "parameters": SCHEMA}},
        {
            "type": "custom",
            "custom": {
                "name": "g",
                "description": "does",
                "format": {"type": "grammar", "grammar": {"definition": "start: x", "syntax": "lark"}},
            },
        },
    ],
    "functions": [{"name": "old", "description": "was", "parameters": SCHEMA}],
    "tool_choice": {"type": "function", "function": {"name": "f"}},
    "response_format": {
        "type": "json_schema",
        "json_schema": {"name": "s", "description": "d", "schema": SCHEMA},
    },
    "prediction": {"type": "content", "content": [{"type": "text", "text": "guess"}]},
    "web_search_options": {"user_location": {"type": "approximate", "approximate": {"city": "Bern"}}},
    "stop": ["END"],
    "metadata": {"ticket": "t 1"},
    "user": "u-1",
    "safety_identifier": "u-1",
    "prompt_cache_key": "k-1",
    "temperature": 1.0,
    "stream": True,
    "stream_options": {"include_usage": True},
    "service_tier": "auto",
}

LEGACY = {
    "model": "davinci",
    "prompt": ["hello", "there"],
    "suffix": "end",
    "user": "u",
    "stop": "END",
    "n": 2,
}

RESPONSES = {
    "model": "gpt-5",
    "instructions": "be brief",
    "input": [
        {"role": "user", "content": "hello"},
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "more"},
                {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "auto"},
                {"type": "input_file", "file_data": PNG, "filename": "cv.pdf"},
            ],
        },
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [
                {
                    "type": "output_text",
                    "text": "see this",
                    "annotations": [
                        {
                            "type": "url_citation",
                            "title": "page",
                            "url": "https://a.example/x y",
                            "start_index": 0,
                            "end_index": 3,
                        }
                    ],
                },
                {"type": "refusal", "refusal": "no"},
            ],
        },
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "thought"}],
            "encrypted_content": "gAAAA" * 12,
        },
        {"type": "reasoning", "id": "rs_2", "summary": [{"type": "summary_text", "text": "open thought"}]},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"to": "x"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "done"},
        {"type": "custom_tool_call", "call_id": "c2", "name": "g", "input": "free"},
        {"type": "custom_tool_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "r"}]},
        {
            "type": "file_search_call",
            "id": "fs",
            "status": "completed",
            "queries": ["who"],
            "results": [{"attributes": {"a": "b"}, "filename": "x y", "text": "t"}],
        },
        {"type": "computer_call", "id": "cc", "call_id": "c3", "action": {"type": "type", "text": "typed"}},
        {
            "type": "web_search_call",
            "id": "ws",
            "status": "completed",
            "action": {
                "type": "search",
                "query": "who is",
                "sources": [{"type": "url", "url": "https://b.example"}],
            },
        },
        {
            "type": "code_interpreter_call",
            "id": "ci",
            "code": "print(1)",
            "outputs": [{"type": "logs", "logs": "1"}],
        },
        {
            "type": "local_shell_call",
            "id": "l",
            "call_id": "c4",
            "action": {"type": "exec", "command": ["ls", "-l x"]},
        },
        {"type": "local_shell_call_output", "id": "l", "output": "files"},
        {"type": "shell_call", "call_id": "c5", "action": {"commands": ["ls -l"]}},
        {"type": "shell_call_output", "call_id": "c5", "output": [{"stdout": "o", "stderr": "e"}]},
        {
            "type": "apply_patch_call",
            "call_id": "c6",
            "operation": {"type": "update_file", "path": "a b", "diff": "+x"},
        },
        {"type": "apply_patch_call_output", "call_id": "c6", "output": "ok", "status": "completed"},
        {
            "type": "mcp_list_tools",
            "id": "m",
            "server_label": "s",
            "tools": [{"name": "t", "input_schema": SCHEMA}],
        },
        {
            "type": "mcp_call",
            "id": "m",
            "name": "t",
            "server_label": "s",
            "arguments": '{"a": "b"}',
            "output": "out",
        },
        {"type": "mcp_approval_response", "approval_request_id": "m", "approve": True, "reason": "since"},
        {"type": "program", "id": "p", "call_id": "c7", "code": "run()"},
        {"type": "program_output", "id": "p", "call_id": "c7", "result": "ran"},
        {"type": "a_future_item", "wholly": {"new": ["text"]}},
    ],
    "tools": [
        {"type": "function", "name": "f", "description": "finds", "parameters": SCHEMA, "strict": True},
        {
            "type": "file_search",
            "vector_store_ids": ["v"],
            "filters": {"type": "eq", "key": "k", "value": "x y"},
        },
        {"type": "web_search", "user_location": {"type": "approximate", "city": "Bern"}},
        {
            "type": "mcp",
            "server_label": "s",
            "server_url": "https://mcp.example",
            "authorization": "Bearer t",
        },
        {"type": "namespace", "name": "n", "description": "d", "tools": [{"type": "custom", "name": "g"}]},
    ],
    "tool_choice": "auto",
    "text": {"format": {"type": "json_schema", "name": "s", "schema": SCHEMA}, "verbosity": "low"},
    "prompt": {"id": "pmpt_1", "variables": {"name": "x", "more": {"type": "input_text", "text": "y"}}},
    "conversation": {"id": "conv_1"},
    "metadata": {"ticket": "t 1"},
    "safety_identifier": "u-1",
    "prompt_cache_key": "k-1",
    "store": False,
    "include": ["reasoning.encrypted_content"],
}

MESSAGES = {
    "model": "claude-opus",
    "max_tokens": 100,
    "system": [{"type": "text", "text": "be brief", "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "hello"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
                {
                    "type": "document",
                    "title": "cv",
                    "context": "of anna",
                    "source": {"type": "text", "media_type": "text/plain", "data": "born in Bern"},
                    "citations": {"enabled": True},
                },
                {
                    "type": "search_result",
                    "source": "wiki x",
                    "title": "t",
                    "content": [{"type": "text", "text": "c"}],
                },
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "EqQB" * 20},
                {"type": "redacted_thinking", "data": "EmwK" * 20},
                {
                    "type": "text",
                    "text": "as said",
                    "citations": [
                        {
                            "type": "char_location",
                            "cited_text": "born",
                            "document_title": "cv",
                            "document_index": 0,
                            "start_char_index": 0,
                            "end_char_index": 4,
                        },
                        {
                            "type": "web_search_result_location",
                            "cited_text": "x",
                            "title": "y",
                            "url": "https://c.example",
                            "encrypted_index": "Eo8B" * 20,
                        },
                    ],
                },
                {"type": "tool_use", "id": "t1", "name": "f", "input": {"to": "x", "deep": [{"er": "y"}]}},
                {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "who"}},
                {
                    "type": "web_search_tool_result",
                    "tool_use_id": "s1",
                    "content": [
                        {
                            "type": "web_search_result",
                            "title": "t",
                            "url": "https://d.example",
                            "encrypted_content": "Eo8B" * 20,
                        }
                    ],
                },
                {"type": "mcp_tool_use", "id": "m1", "name": "g", "server_name": "s", "input": {"a": "b"}},
                {"type": "mcp_tool_result", "tool_use_id": "m1", "content": [{"type": "text", "text": "r"}]},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "done"}]},
                {"type": "tool_result", "tool_use_id": "t1", "content": "done", "is_error": True},
                {"type": "text", "text": "go on", "cache_control": {"type": "ephemeral"}},
            ],
        },
    ],
    "tools": [
        {"name": "f", "description": "finds", "input_schema": SCHEMA, "input_examples": [{"to": "x"}]},
        {
            "type": "web_search_20250305",
            "name": "web_search",
            "user_location": {"type": "approximate", "city": "B"},
        },
    ],
    "tool_choice": {"type": "tool", "name": "f"},
    "mcp_servers": [
        {"type": "url", "name": "s", "url": "https://m.example", "authorization_token": "tok en"}
    ],
    "stop_sequences": ["END"],
    "metadata": {"user_id": "user_1_session_2"},
    "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
    "container": {"id": "c", "skills": [{"type": "custom", "skill_id": "s", "version": "1"}]},
    "thinking": {"type": "enabled", "budget_tokens": 10},
}
