"""What a family's table says of the members of a request: where text lives, whose it is, what only machines read."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class LeafRole(StrEnum):
    """Whose text a leaf of a body is, or what it is for."""

    SYSTEM = "system"
    TOOLS = "tools"
    FORMAT = "format"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL_RESULT = "tool_result"
    METADATA = "metadata"
    STOP = "stop"
    NAME = "name"
    USER_ID = "user_id"
    SIGNED = "signed"
    """Signed by the provider: it goes back byte for byte."""
    MACHINE = "machine"
    """Only machines read it: it is scanned, and never changed."""
    UNKNOWN = "unknown"
    """No table names the member: it is scanned like text, and counted."""


class MemberForm(StrEnum):
    """How a member of a request is read."""

    MESSAGES = "messages"
    """A list of messages or items; a string is what the user says."""
    SPEECH = "speech"
    """The content of one message: a string or blocks."""
    TEXTS = "texts"
    """A string, a list of them, or tokens, which nobody can read."""
    DEFINITION = "definition"
    """Definitions of tools, schemas, options: names and types stay, all else is text."""
    VALUES = "values"
    """Free JSON: every string is text."""
    MACHINE = "machine"


@dataclass(frozen=True, slots=True)
class MemberRule:
    """How one member is read, and whose its text is."""

    form: MemberForm
    role: LeafRole


MACHINE: Final = MemberRule(MemberForm.MACHINE, LeafRole.MACHINE)
UNKNOWN: Final = MemberRule(MemberForm.VALUES, LeafRole.UNKNOWN)


def definition(role: LeafRole) -> MemberRule:
    """Return the rule for definitions, options and metadata."""
    return MemberRule(MemberForm.DEFINITION, role)


def machine_members(*names: str) -> dict[str, MemberRule]:
    """Return the rules for members that only machines read."""
    return dict.fromkeys(names, MACHINE)
