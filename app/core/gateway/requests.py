"""Requests to a provider: their texts, what they say of the conversation, and the same bytes with changed texts."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from app.core.errors import InvalidArgumentsError, InvalidRequestError
from app.core.gateway.body_parts import BodyLeaf, read_members
from app.core.gateway.channels import Path, ToolRunner
from app.core.gateway.edited_body import EditedBody
from app.core.gateway.json_body import JsonBody
from app.core.gateway.member_table import LeafRole, MemberRule
from app.core.gateway.signed_blocks import SignedBlock, original_members, signed_in

NOTE: Final = (
    "Some values in this conversation are replaced by placeholders in square brackets, each made of the kind of the "
    "value in capital letters, an underscore and a number. Treat each as the value that it stands for, and repeat it "
    "exactly as it is written wherever you would write that value, also in the arguments of tools. Do not guess what "
    "is behind it."
)
"""What the model is told of handles; constant, so that it does not change the prefix that a provider caches.

It shows none: a model that quotes it must not quote what a conversation may have given.
"""


@dataclass(frozen=True, slots=True)
class Placement:
    """New values of members, and elements to put in front of lists."""

    values: Mapping[Path, Any] = field(default_factory=dict)
    fronts: Mapping[Path, Sequence[Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RequestTable:
    """What a family says of its requests.

    ``members`` is the one table of what is text and what only machines read. ``messages`` are the members with the
    conversation, ``signed`` the types of blocks that a provider signs. ``sessions`` are paths of values that stay the
    same through a conversation; ``conversation`` and ``previous`` those of ids that the provider gave. ``note`` places
    a text for the model, ``added`` messages in front. ``runner`` tells who runs a tool that the request defines,
    ``documents`` the texts that answers cite by number.
    """

    members: Mapping[str, MemberRule]
    messages: tuple[str, ...] = ()
    signed: frozenset[str] = frozenset()
    sessions: tuple[Path, ...] = ()
    conversation: tuple[Path, ...] = ()
    previous: tuple[Path, ...] = ()
    note: Callable[[Mapping[str, Any], str], Placement] | None = None
    added: Callable[[Mapping[str, Any], list[Any]], Placement] | None = None
    runner: Callable[[Mapping[str, Any]], ToolRunner] | None = None
    documents: Callable[[Mapping[str, Any]], Iterator[str]] | None = None


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool that a request defines: its name (None if it has none), who runs it, and where it stands."""

    name: str | None
    runner: ToolRunner
    path: Path


@dataclass(frozen=True, slots=True)
class ClientTool:
    """A function of the caller's: its place among the tools, its name, and its definition in MCP's form."""

    number: int
    name: str
    definition: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ConversationFacts:
    """What a request says beside its texts. ``sessions`` are by their dotted path; ``first_user_texts`` are raw."""

    model: str | None
    stream: bool
    conversation: str | None
    previous_response: str | None
    sessions: Mapping[str, str]
    first_user_texts: tuple[str, ...]
    tools: tuple[OfferedTool, ...]


@dataclass(frozen=True, slots=True)
class GatewayRequest:
    """A parsed request; immutable. Bytes that no change touches are those that came."""

    table: RequestTable
    edited: EditedBody
    signed: tuple[SignedBlock, ...]
    counts: Mapping[str, int]

    @classmethod
    def read(cls, body: JsonBody, table: RequestTable) -> "GatewayRequest":
        """Read a body; raise InvalidRequestError if it is no object."""
        if not isinstance(body.value, dict):
            raise InvalidRequestError("The body must be a JSON object.")
        counts: Counter[str] = Counter()
        parts = tuple(read_members(body.value, table.members, counts))
        signed = tuple(signed_in(body, table.messages, table.signed))
        return cls(table, EditedBody(body, parts), signed, counts)

    @property
    def items(self) -> list[Any]:
        """Return the context items, in the order of the body's members, for middlewares and pipelines."""
        return self.edited.items

    @property
    def roles(self) -> tuple[LeafRole, ...]:
        """Return whose each item is; what middlewares put in front is the user's."""
        return (*(LeafRole.USER for _ in self.edited.added), *(part.role for part in self.edited.parts))

    def numbers(self, roles: Collection[LeafRole]) -> list[int]:
        """Return the numbers of the items of ``roles``."""
        return [number for number, role in enumerate(self.roles) if role in roles]

    @property
    def opening(self) -> list[int]:
        """Return the numbers of the items with which every conversation of an application begins.

        These are its tools, and what instructs the model before anybody speaks.
        """
        messages, numbers = {(name,) for name in self.table.messages}, []
        has_begun = False
        for number, part in enumerate(self.edited.parts, start=len(self.edited.added)):
            is_said = part.base[:1] in messages
            has_begun = has_begun or (is_said and part.role is not LeafRole.SYSTEM)
            if part.role is LeafRole.TOOLS or (part.role is LeafRole.SYSTEM and not (is_said and has_begun)):
                numbers.append(number)
        return numbers

    def leaves(self) -> Iterator[BodyLeaf]:
        """Yield every text, whose it is, and where it stands in the body."""
        return self.edited.leaves([block.path for block in self.signed])

    @property
    def unscanned(self) -> dict[str, int]:
        """Return by kind how much nobody can scan, and how many members no table names (``unknown``)."""
        counts = Counter(self.counts)
        counts.update(self.edited.unread)
        return dict(+counts)

    def changed(self, items: Sequence[Any]) -> "GatewayRequest":
        """Return the request with changed ``items``; items in front that it did not have are added to the messages.

        Raise InternalError if items are missing or changed their form, InvalidArgumentsError if this request takes no
        additions.
        """
        edited = self.edited.changed(items)
        if edited.added and self.table.added is None:
            raise InvalidArgumentsError("This request has no place for the text that a middleware adds.")
        return replace(self, edited=edited)

    def replaced(self, values: Mapping[Path, Any]) -> "GatewayRequest":
        """Return the request with other values at paths of its body; a member that is absent is added."""
        return GatewayRequest.read(self._whole().replaced(values), self.table)

    def with_signed(self, originals: Mapping[str, str]) -> "GatewayRequest":
        """Return the request with signed blocks as the provider wrote them, by their digests.

        Members that only the caller's block has, such as cache_control, stay.
        """
        values: dict[Path, Any] = {}
        for block in self.signed:
            if block.digest in originals:
                values.update(original_members(block, originals[block.digest]))
        return self.replaced(values) if values else self

    def with_model(self, name: str) -> "GatewayRequest":
        """Return the request for another model."""
        return self.replaced({("model",): name})

    @property
    def client_tools(self) -> list[ClientTool]:
        """Return the functions that the caller's program runs, as they are now."""
        runner, tools = self.table.runner, self.edited.written.value.get("tools")
        return [
            ClientTool(number, name, _definition(name, tool))
            for number, tool in enumerate(tools if isinstance(tools, list) else ())
            if isinstance(tool, dict)
            and runner is not None
            and runner(tool) is ToolRunner.CLIENT
            and (name := _tool_name(tool)) is not None
        ]

    @property
    def chosen_tools(self) -> set[str]:
        """Return the names in ``tool_choice``."""
        return set(_names(self.edited.body.value.get("tool_choice")))

    def without_tools(self, numbers: Collection[int]) -> "GatewayRequest":
        """Return the request without some of its definitions of tools."""
        tools = self.edited.written.value["tools"]
        left = [tool for number, tool in enumerate(tools) if number not in numbers]
        return self.replaced({("tools",): left}) if len(left) < len(tools) else self

    def with_note(self, text: str) -> "GatewayRequest":
        """Return the request with a text for the model in front of its instructions."""
        return self if self.table.note is None else GatewayRequest.read(self._whole(text), self.table)

    def to_bytes(self, note: str | None = None) -> bytes:
        """Return the body, as ``with_note`` has it if there is a ``note``; what no change touched is as it came."""
        return self._whole(note).text.encode()

    def _whole(self, note: str | None = None) -> JsonBody:
        edited = self.edited
        if note is not None and self.table.note is not None and not edited.added:
            placement = self.table.note(edited.body.value, note)
            # What stands in front of lists does not depend on the changed texts, so one pass writes both.
            if not placement.values and edited.values.keys().isdisjoint(placement.fronts):
                return edited.body.replaced(edited.values, placement.fronts)
        body = edited.written
        if self.edited.added and self.table.added is not None:
            placement = self.table.added(body.value, list(self.edited.added))
            body = body.replaced(placement.values, placement.fronts)
        if note is not None and self.table.note is not None:
            placement = self.table.note(body.value, note)
            body = body.replaced(placement.values, placement.fronts)
        return body

    @property
    def documents(self) -> tuple[str, ...]:
        """Return the texts of the documents that answers cite by number, as they are now.

        What has no plain text, such as an image of a page, counts with an empty one.
        """
        if self.table.documents is None:
            return ()
        return tuple(self.table.documents(self.edited.written.value))

    @property
    def facts(self) -> ConversationFacts:
        """Return what the request says beside its texts; the values are as they came."""
        value, table = self.edited.body.value, self.table
        sessions = {
            ".".join(map(str, path)): text
            for path in table.sessions
            if isinstance(text := value_at(value, path), str)
        }
        return ConversationFacts(
            model=_text_at(value, (("model",),)),
            stream=value.get("stream") is True,
            conversation=_id_at(value, table.conversation),
            previous_response=_id_at(value, table.previous),
            sessions=sessions,
            first_user_texts=_first_user_texts(value, table.messages),
            tools=tuple(self._tools()),
        )

    def _tools(self) -> Iterator[OfferedTool]:
        if self.table.runner is None:
            return
        for member in ("tools", "functions"):
            tools = self.edited.body.value.get(member)
            for number, tool in enumerate(tools if isinstance(tools, list) else ()):
                if isinstance(tool, dict):
                    yield OfferedTool(_tool_name(tool), self.table.runner(tool), (member, number))


def value_at(value: Any, path: Path) -> Any:
    """Return the value at ``path``, or None."""
    for step in path:
        if isinstance(step, str) and isinstance(value, dict):
            value = value.get(step)
        elif isinstance(step, int) and isinstance(value, list) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def _text_at(value: Any, paths: Sequence[Path]) -> str | None:
    return next((text for path in paths if isinstance(text := value_at(value, path), str)), None)


def _id_at(value: Mapping[str, Any], paths: Sequence[Path]) -> str | None:
    """Return the id at one of ``paths``; raise InvalidRequestError for any other value: whose it is, nobody can say."""
    text = _text_at(value, paths)
    if text is None and any(value.get(str(path[0])) is not None for path in paths):
        raise InvalidRequestError(f"{paths[0][0]} must be the id of what the provider stored.")
    return text


def _tool_name(tool: Mapping[str, Any]) -> str | None:
    inner = next((tool[kind] for kind in ("function", "custom") if isinstance(tool.get(kind), dict)), tool)
    name = inner.get("name") or tool.get("server_label") or tool.get("mcp_server_name")
    return name if isinstance(name, str) else None


def _definition(name: str, tool: Mapping[str, Any]) -> dict[str, Any]:
    inner = tool["function"] if isinstance(tool.get("function"), dict) else tool
    schema = inner.get("parameters", inner.get("input_schema"))
    description = inner.get("description")
    return {
        "name": name,
        "description": description if isinstance(description, str) else "",
        "inputSchema": schema if isinstance(schema, dict) else {"type": "object"},
    }


def _names(value: Any) -> Iterator[str]:
    if isinstance(value, list | dict):
        for step, member in value.items() if isinstance(value, dict) else enumerate(value):
            if step == "name" and isinstance(member, str):
                yield member
            yield from _names(member)


def _first_user_texts(value: Mapping[str, Any], members: tuple[str, ...]) -> tuple[str, ...]:
    """Return the texts of the first message of the user, without what is around them, such as cache marks."""
    for member in members:
        messages = value.get(member)
        if isinstance(messages, str):
            return (messages,)
        for message in messages if isinstance(messages, list) else ():
            texts = _user_texts(message)
            if texts:
                return texts
    return ()


def _user_texts(message: Any) -> tuple[str, ...]:
    if isinstance(message, str):
        return (message,)
    if not isinstance(message, dict) or message.get("role") != "user":
        return ()
    content = message.get("content")
    if isinstance(content, str):
        return (content,)
    blocks = content if isinstance(content, list) else []
    return tuple(
        block["text"] for block in blocks if isinstance(block, dict) and isinstance(block.get("text"), str)
    )
