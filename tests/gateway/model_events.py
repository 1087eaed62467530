"""The events in which OpenAI streams a response."""

from collections.abc import Iterator
from typing import Any

from tests.gateway.provider import Provider, named

Event = tuple[str, dict[str, Any]]


def response_events(provider: Provider, head: dict[str, Any], whole: dict[str, Any]) -> list[str]:
    """Return the events of a response, numbered, with its texts in pieces."""
    started = {**head, "status": "in_progress", "output": [], "usage": None}
    kinds: list[Event] = [("response.created", {"response": started})]
    kinds.append(("response.in_progress", {"response": started}))
    for index, item in enumerate(whole["output"]):
        kinds += _of_item(provider, index, item)
    kinds.append(("response.completed", {"response": whole}))
    return [named(kind, sequence_number=number, **members) for number, (kind, members) in enumerate(kinds)]


def _of_item(provider: Provider, index: int, item: dict[str, Any]) -> Iterator[Event]:
    streamed = {"message": _message, "reasoning": _reasoning, "function_call": _call}[item["type"]]
    empty = {"content": [], "summary": [], "arguments": "", "status": "in_progress"}
    opened = {name: empty.get(name, member) for name, member in item.items()}
    yield "response.output_item.added", {"output_index": index, "item": opened}
    yield from streamed(provider, {"item_id": item["id"], "output_index": index}, item)
    yield "response.output_item.done", {"output_index": index, "item": item}


def _message(provider: Provider, place: dict[str, Any], item: dict[str, Any]) -> Iterator[Event]:
    place = {**place, "content_index": 0}
    (part,) = item["content"]
    yield "response.content_part.added", {**place, "part": {**part, "text": "", "annotations": []}}
    for piece in provider.parts(part["text"]):
        yield "response.output_text.delta", {**place, "delta": piece, "logprobs": []}
    for number, annotation in enumerate(part["annotations"]):
        members = {"annotation_index": number, "annotation": annotation}
        yield "response.output_text.annotation.added", {**place, **members}
    yield "response.output_text.done", {**place, "text": part["text"], "logprobs": []}
    yield "response.content_part.done", {**place, "part": part}


def _reasoning(provider: Provider, place: dict[str, Any], item: dict[str, Any]) -> Iterator[Event]:
    for number, part in enumerate(item["summary"]):
        where = {**place, "summary_index": number}
        yield "response.reasoning_summary_part.added", {**where, "part": {**part, "text": ""}}
        for piece in provider.parts(part["text"]):
            yield "response.reasoning_summary_text.delta", {**where, "delta": piece}
        yield "response.reasoning_summary_text.done", {**where, "text": part["text"]}
        yield "response.reasoning_summary_part.done", {**where, "part": part}


def _call(provider: Provider, place: dict[str, Any], item: dict[str, Any]) -> Iterator[Event]:
    for piece in provider.parts(item["arguments"]):
        yield "response.function_call_arguments.delta", {**place, "delta": piece}
    done = {"arguments": item["arguments"], "name": item["name"]}
    yield "response.function_call_arguments.done", {**place, **done}
