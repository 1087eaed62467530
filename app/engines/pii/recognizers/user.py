"""Recognizers that an administrator adds: patterns and word lists in Presidio's YAML format, or Python classes.

The parent process reads the definitions to learn their types; the detection processes build recognizers from them. A
pattern needs no code: it is part of the same pass over the text as all others.
"""

import importlib
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from app.engines.pii.ground.labels import BUILT_IN, LABELS, LabelRule, label_of

if TYPE_CHECKING:
    from presidio_analyzer import EntityRecognizer

_LABEL = r"^[A-Z][A-Z0-9_]{1,30}$"
_CLASS = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


class FaultyRecognizersError(ValueError):
    """The definitions cannot be used; the message names the fault."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PatternDefinition(_Part):
    """A regular expression with the score of its findings."""

    name: str
    regex: str = Field(min_length=1)
    score: float = Field(gt=0, le=1)

    @field_validator("regex")
    @classmethod
    def _compiles(cls, value: str) -> str:
        import regex  # type: ignore[import-untyped]  # noqa: PLC0415 - only if somebody defines recognizers

        try:
            regex.compile(value)
        except regex.error as error:
            raise ValueError(f"the regular expression is faulty: {error.msg} at {error.pos}") from None
        return value


class Definition(_Part):
    """One recognizer in Presidio's YAML format; ``class``, ``label`` and ``needs_context`` are our additions.

    ``class`` names a `presidio_analyzer.EntityRecognizer` as ``package.module:Class``, created without arguments.
    ``label`` is the label of handles (default: the entity). With ``needs_context``, a finding counts in *standard* mode
    only if one of the ``context`` words is nearby.
    """

    name: str = Field(min_length=1, max_length=100)
    type: Literal["custom", "predefined"] = "custom"
    enabled: bool = True
    supported_entity: str | None = Field(default=None, pattern=_LABEL)
    label: str | None = Field(default=None, pattern=_LABEL)
    patterns: tuple[PatternDefinition, ...] = ()
    deny_list: tuple[str, ...] = ()
    deny_list_score: float = Field(default=1.0, gt=0, le=1)
    context: tuple[str, ...] = ()
    needs_context: bool = False
    class_name: str | None = Field(default=None, alias="class")
    supported_language: str | None = None
    supported_languages: tuple[Any, ...] | None = None

    @model_validator(mode="after")
    def _complete(self) -> "Definition":
        if self.type == "predefined":
            if self.enabled:
                return self
            if self.patterns or self.deny_list or self.class_name:
                raise ValueError("a predefined recognizer can only be disabled: enabled: false")
            return self
        if self.supported_entity is None:
            raise ValueError("supported_entity is missing")
        if self.supported_entity in BUILT_IN:
            raise ValueError(f"{self.supported_entity} is a type that exists already; choose another")
        if self.class_name is not None and not _CLASS.fullmatch(self.class_name):
            raise ValueError("class needs the form package.module:Class")
        if not (self.patterns or self.deny_list or self.class_name):
            raise ValueError("it needs patterns, a deny_list or a class")
        if self.class_name and (self.patterns or self.deny_list):
            raise ValueError("a class has patterns of its own")
        if self.needs_context and not self.context:
            raise ValueError("needs_context requires context words")
        return self

    @property
    def shown(self) -> str:
        """Return the label of its findings."""
        return self.label or self.supported_entity or ""


class Definitions(_Part):
    """The content of a file of recognizers."""

    recognizers: tuple[Definition, ...] = ()
    supported_languages: tuple[str, ...] | None = None
    global_regex_flags: int | None = None

    @property
    def custom(self) -> list[Definition]:
        """Return the added recognizers that are enabled."""
        return [
            definition
            for definition in self.recognizers
            if definition.type == "custom" and definition.enabled
        ]

    @property
    def disabled(self) -> frozenset[str]:
        """Return the names of disabled predefined recognizers."""
        return frozenset(
            definition.name
            for definition in self.recognizers
            if definition.type == "predefined" and not definition.enabled
        )

    def rules(self) -> dict[str, LabelRule]:
        """Return the rule of every added type."""
        return {
            definition.supported_entity: LabelRule(
                definition.shown, context="yes" if definition.needs_context else "no"
            )
            for definition in self.custom
            if definition.supported_entity is not None
        }

    def labels(self) -> frozenset[str]:
        """Return every label, built-in and added."""
        return LABELS | {definition.shown for definition in self.custom}

    def label_of(self, name: str) -> str | None:
        """Return the label for ``name``, an added or built-in label or type; None if it is unknown."""
        added = {str(definition.supported_entity): definition.shown for definition in self.custom}
        return name if name in self.labels() else added.get(name) or label_of(name)


def read_definitions(text: str) -> Definitions:
    """Return the definitions in the YAML ``text``; an empty text has none. Raises FaultyRecognizersError."""
    try:
        content = yaml.safe_load(text) if text.strip() else {}
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark else ""
        raise FaultyRecognizersError(f"The file of recognizers is not valid YAML{where}.") from None
    try:
        definitions = Definitions.model_validate(content)
    except ValidationError as error:
        raise FaultyRecognizersError(_fault_in(error, content)) from None
    entities = [definition.supported_entity for definition in definitions.custom]
    twice = sorted({str(entity) for entity in entities if entities.count(entity) > 1})
    if twice:
        raise FaultyRecognizersError(f"Two recognizers find {twice[0]}; give each a type of its own.")
    return definitions


def check_pace(definitions: Definitions) -> None:
    """Test every added pattern on hostile texts; raise FaultyRecognizersError if one takes too long."""
    patterns = [(definition, pattern) for definition in definitions.custom for pattern in definition.patterns]
    if not patterns:
        return
    from app.engines.pii.recognizers.trials import slow_text  # noqa: PLC0415 - only if somebody defines patterns

    for definition, pattern in patterns:
        text = slow_text(pattern.regex)
        if text is not None:
            raise FaultyRecognizersError(
                f"Recognizer {definition.name!r}: the pattern {pattern.name!r} takes too long on texts such as "
                f"{text!r} and so on, since its repetitions can divide them in many ways; separate the repetitions, "
                "or make them possessive, as in ++."
            )


def _fault_in(error: ValidationError, content: Any) -> str:
    """Return the first fault in one sentence, with the name of the recognizer if it has one."""
    fault = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = [str(step) for step in fault["loc"]]
    try:
        name = str(content["recognizers"][int(place[1])]["name"])
    except (KeyError, IndexError, TypeError, ValueError):
        name = ""
    where = f"Recognizer {name!r}" if name else "The file of recognizers"
    field = ".".join(place[2:] if name else place)
    problem = fault["msg"].removeprefix("Value error, ")
    return f"{where}: {f'{field}: ' if field else ''}{problem[:1].lower()}{problem[1:]}."


def build(definitions: Iterable[Definition]) -> "Sequence[EntityRecognizer]":
    """Return the recognizers; raise FaultyRecognizersError if a class is missing or is not a recognizer."""
    from presidio_analyzer import Pattern, PatternRecognizer  # noqa: PLC0415 - heavy

    from app.engines.pii.names.nlp import LANGUAGE  # noqa: PLC0415
    from app.engines.pii.recognizers.patterns import FLAGS  # noqa: PLC0415

    built: list[EntityRecognizer] = []
    for definition in definitions:
        if definition.class_name is not None:
            built.append(_instance_of(definition))
            continue
        patterns = [Pattern(pattern.name, pattern.regex, pattern.score) for pattern in definition.patterns]
        # Presidio's annotations omit the None that it expects for missing values.
        options: dict[str, Any] = {
            "patterns": patterns or None,
            "deny_list": list(definition.deny_list) or None,
            "deny_list_score": definition.deny_list_score,
            "context": list(definition.context),
            "global_regex_flags": FLAGS,
        }
        built.append(
            PatternRecognizer(str(definition.supported_entity), definition.name, LANGUAGE, **options)
        )
    return built


def _instance_of(definition: Definition) -> "EntityRecognizer":
    from presidio_analyzer import EntityRecognizer  # noqa: PLC0415

    module, _, name = str(definition.class_name).partition(":")
    try:
        recognizer = getattr(importlib.import_module(module), name)()
    except Exception as error:  # noqa: BLE001 - user code may raise anything, and the message must name its class
        raise FaultyRecognizersError(
            f"Recognizer {definition.name!r}: {definition.class_name} cannot be created ({type(error).__name__})."
        ) from None
    if (
        not isinstance(recognizer, EntityRecognizer)
        or definition.supported_entity not in recognizer.supported_entities
    ):
        raise FaultyRecognizersError(
            f"Recognizer {definition.name!r}: {definition.class_name} is not an EntityRecognizer for "
            f"{definition.supported_entity}."
        )
    if definition.context:
        recognizer.context = list(definition.context)
    return recognizer
