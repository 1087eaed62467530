"""The declarative file: the server list of MCP hosts with Sluice's additions, validated as a whole."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from app.core.catalog.concerns import ConcernDefinition, ConcernMapping
from app.core.catalog.groups import GroupDefinition, GroupTree
from app.core.catalog.naming import split_name
from app.core.catalog.primitives import Disclosure, PrimitiveKind
from app.core.catalog.servers import MCPServerSettings, ServerEntry, ServerName
from app.core.catalog.tool_filter import ExposedTools
from app.core.contracts.pipelines import Pipeline
from app.core.contracts.policy import Policy
from app.core.gateway.providers import MAX_PROVIDERS, ProviderEntry

Pointer = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class DeclarationFault:
    """A fault in a declaration: the path to it and a sentence about it."""

    at: Pointer
    message: str


class DeclarationError(Exception):
    """The declaration is invalid and was not applied; ``faults`` are all faults and do not repeat values."""

    def __init__(self, faults: Sequence[DeclarationFault]) -> None:
        super().__init__("; ".join(fault.message for fault in faults))
        self.faults = tuple(faults)


class Declaration(BaseModel):
    """The content of one file; names are exposed names, members are patterns."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    mcpServers: dict[ServerName, MCPServerSettings] = Field(default_factory=dict)  # noqa: N815 - the file's name
    groups: list[GroupDefinition] = Field(default_factory=list)
    concerns: list[ConcernDefinition] = Field(default_factory=list)
    concernMappings: list[ConcernMapping] = Field(default_factory=list)  # noqa: N815 - as above
    toolFilter: dict[str, list[str] | None] = Field(default_factory=dict)  # noqa: N815 - as above
    aliases: dict[str, str] = Field(default_factory=dict)
    disclosure: dict[str, Disclosure] = Field(default_factory=dict)
    pipelines: list[Pipeline] = Field(default_factory=list)
    providers: list[ProviderEntry] = Field(default_factory=list, max_length=MAX_PROVIDERS)
    policy: Policy | None = None

    @classmethod
    def read(cls, value: Any) -> "Declaration":
        """Validate ``value`` as a declaration, or raise DeclarationError with every fault."""
        if not isinstance(value, Mapping):
            raise DeclarationError(
                [DeclarationFault((), "The file must contain an object with the member mcpServers.")]
            )
        try:
            read = cls.model_validate(value)
        except ValidationError as error:
            raise DeclarationError(
                [_fault(details) for details in error.errors(include_input=False)]
            ) from None
        faults = [
            *_server_faults(read),
            *_group_faults(read),
            *_concern_faults(read),
            *_repetitions("pipelines", [pipeline.name for pipeline in read.pipelines]),
            *_repetitions("providers", [provider.name for provider in read.providers]),
        ]
        if faults:
            raise DeclarationError(faults)
        return read

    def entries(self) -> list[ServerEntry]:
        """Return the servers with what is exposed of each."""
        aliases: dict[str, dict[str, str]] = {}
        for alias, target in self.aliases.items():
            server_and_name = split_name(target, self.mcpServers)
            if server_and_name is not None:
                aliases.setdefault(server_and_name[0], {})[alias] = server_and_name[1]
        return [
            ServerEntry(
                name=name,
                settings=settings,
                tool_filter=self.toolFilter.get(name),
                aliases=aliases.get(name, {}),
                disclosure=self.disclosure.get(name, "flat"),
            )
            for name, settings in self.mcpServers.items()
        ]

    def ordered_providers(self) -> list[ProviderEntry]:
        """Return the providers; one without ``order`` gets that of its place in the file."""
        return [
            provider.model_copy(update={"order": number}) if provider.order is None else provider
            for number, provider in enumerate(self.providers, start=1)
        ]


_MESSAGES: Final[Mapping[str, str]] = {
    "extra_forbidden": "There is no such member; the documentation of the file lists all members.",
    "missing": "This member is missing.",
}


def _fault(error: Any) -> DeclarationFault:
    message = _MESSAGES.get(error["type"]) or f"{error['msg'].removeprefix('Value error, ').rstrip('.')}."
    # Union types add steps that the file does not have; the search for the line falls back to the nearest real step.
    return DeclarationFault(tuple(error["loc"]), f"{message[:1].upper()}{message[1:]}")


def _repetitions(section: str, names: Sequence[str]) -> Iterator[DeclarationFault]:
    for number, name in enumerate(names):
        if name in names[:number]:
            yield DeclarationFault((section, number), f"{name} is listed twice.")


def _server_faults(declaration: Declaration) -> Iterator[DeclarationFault]:
    for section in ("toolFilter", "disclosure"):
        for name in getattr(declaration, section):
            if name not in declaration.mcpServers:
                yield DeclarationFault((section, name), f"There is no server {name} in mcpServers.")
    for name, names in declaration.toolFilter.items():
        try:
            ExposedTools.parse(names)
        except ValueError as error:
            yield DeclarationFault(("toolFilter", name), f"{str(error)[:1].upper()}{str(error)[1:]}.")
    for alias, target in declaration.aliases.items():
        if split_name(target, declaration.mcpServers) is None:
            yield DeclarationFault(
                ("aliases", alias), "An alias must map to server__tool of a server in mcpServers."
            )


def _group_faults(declaration: Declaration) -> Iterator[DeclarationFault]:
    yield from _repetitions("groups", [group.name for group in declaration.groups])
    names = {group.name for group in declaration.groups}
    for number, group in enumerate(declaration.groups):
        for member in group.members:
            if member.kind is PrimitiveKind.GROUP and member.name not in names:
                yield DeclarationFault(
                    ("groups", number, "members"), f"There is no group {member.name} in groups."
                )
            if member.server is not None and member.server not in declaration.mcpServers:
                yield DeclarationFault(
                    ("groups", number, "members"), f"There is no server {member.server} in mcpServers."
                )
    cycle = GroupTree.build(declaration.groups).cycle
    if cycle:
        number = next(
            index for index, candidate in enumerate(declaration.groups) if candidate.name == cycle[0]
        )
        yield DeclarationFault(
            ("groups", number), f"Groups must not contain themselves: {' > '.join(cycle)}."
        )


def _concern_faults(declaration: Declaration) -> Iterator[DeclarationFault]:
    yield from _repetitions("concerns", [concern.name for concern in declaration.concerns])
    yield from _repetitions(
        "concernMappings", [f"{mapping.kind} {mapping.name}" for mapping in declaration.concernMappings]
    )
    definitions = {concern.name: concern for concern in declaration.concerns}
    for number, mapping in enumerate(declaration.concernMappings):
        for name, mapped in mapping.concerns.items():
            at: Pointer = ("concernMappings", number, "concerns", name)
            if name not in definitions:
                yield DeclarationFault(at, f"There is no concern {name} in concerns.")
            elif definitions[name].misfit(mapped) is not None:
                yield DeclarationFault(
                    at, f"The concern {name} has no such value; concerns lists its values."
                )
