"""Recognizers that an administrator adds: patterns and word lists in Presidio's YAML form, or classes of their own.

The parent process reads the definitions to know their types; the detection processes build recognizers of them. A
pattern needs no code: it goes through the same pass over the text as all others.
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
    """The definitions cannot be used; the message says which and why."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PatternDefinition(_Part):
    """A regular expression with the score of what it finds."""

    name: str
    regex: str = Field(min_length=1)
    score: float = Field(gt=0, le=1)

    @field_validator("regex")
    @classmethod
    def _compiles(cls, value: str) -> str:
        import regex  # type: ignore[import-untyped]  # noqa: PLC0415 - only where somebody defines recognizers

        try:
            regex.compile(value)
        except regex.error as error:
            raise ValueError(f"the regular expression is faulty: {error.msg} at {error.pos}") from None
        return value


class Definition(_Part):
    """One recognizer, in the form of Presidio's YAML; ``class``, ``label`` and ``needs_context`` are additions.

    ``class`` names a `presidio_analyzer.EntityRecognizer` as ``package.module:Class``, made without arguments.
    ``label`` is what handles carry (default: the entity). With ``needs_context`` a finding counts in *standard* only
    where one of the ``context`` words stands nearby.
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
                raise ValueError("a predefined recognizer can only be taken away: enabled: false")
            return self
        if self.supported_entity is None:
            raise ValueError("supported_entity is missing")
        if self.supported_entity in BUILT_IN:
            raise ValueError(f"{self.supported_entity} is a type that exists already; choose another")
        if self.class_name is not None and not _CLASS.fullmatch(self.class_name):
            raise ValueError("class wants package.module:Class")
        if not (self.patterns or self.deny_list or self.class_name):
            raise ValueError("it wants patterns, a deny_list or a class")
        if self.class_name and (self.patterns or self.deny_list):
            raise ValueError("a class has patterns of its own")
        if self.needs_context and not self.context:
            raise ValueError("needs_context wants context words")
        return self

    @property
    def shown(self) -> str:
        """Return the label of what it finds."""
        return self.label or self.supported_entity or ""


class Definitions(_Part):
    """A file of recognizers."""

    recognizers: tuple[Definition, ...] = ()
    supported_languages: tuple[str, ...] | None = None
    global_regex_flags: int | None = None

    @property
    def custom(self) -> list[Definition]:
        """Return the recognizers that are added."""
        return [one for one in self.recognizers if one.type == "custom" and one.enabled]

    @property
    def taken_away(self) -> frozenset[str]:
        """Return the names of predefined recognizers that do not run."""
        return frozenset(one.name for one in self.recognizers if one.type == "predefined" and not one.enabled)

    def rules(self) -> dict[str, LabelRule]:
        """Return the rule of every type that is added."""
        return {
            one.supported_entity: LabelRule(one.shown, context="yes" if one.needs_context else "no")
            for one in self.custom
            if one.supported_entity is not None
        }

    def labels(self) -> frozenset[str]:
        """Return every label that there is with them."""
        return LABELS | {one.shown for one in self.custom}

    def label_of(self, name: str) -> str | None:
        """Return the label behind ``name``, a label or a type of theirs or of the table; None: unknown."""
        added = {str(one.supported_entity): one.shown for one in self.custom}
        return name if name in self.labels() else added.get(name) or label_of(name)


def read_definitions(text: str) -> Definitions:
    """Return the definitions in the YAML ``text``; an empty one has none. Raises FaultyRecognizersError."""
    try:
        given = yaml.safe_load(text) if text.strip() else {}
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark else ""
        raise FaultyRecognizersError(f"The file of recognizers is no YAML{where}.") from None
    try:
        found = Definitions.model_validate(given)
    except ValidationError as error:
        raise FaultyRecognizersError(_told(error, given)) from None
    entities = [one.supported_entity for one in found.custom]
    twice = sorted({str(one) for one in entities if entities.count(one) > 1})
    if twice:
        raise FaultyRecognizersError(f"Two recognizers find {twice[0]}; give each a type of its own.")
    return found


def check_pace(definitions: Definitions) -> None:
    """Try every pattern that is added on hostile texts; raise FaultyRecognizersError where one takes too long."""
    patterns = [(one, pattern) for one in definitions.custom for pattern in one.patterns]
    if not patterns:
        return
    from app.engines.pii.recognizers.trials import slow_text  # noqa: PLC0415 - only where somebody defines patterns

    for one, pattern in patterns:
        text = slow_text(pattern.regex)
        if text is not None:
            raise FaultyRecognizersError(
                f"Recognizer {one.name!r}: the pattern {pattern.name!r} takes too long on texts such as {text!r} and "
                "so on, since its repetitions can divide them in many ways; let something stand between them, or "
                "make them possessive, as in ++."
            )


def _told(error: ValidationError, given: Any) -> str:
    """Return the first fault in one sentence, with the name of the recognizer where it has one."""
    fault = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = [str(step) for step in fault["loc"]]
    try:
        name = str(given["recognizers"][int(place[1])]["name"])
    except (KeyError, IndexError, TypeError, ValueError):
        name = ""
    where = f"Recognizer {name!r}" if name else "The file of recognizers"
    field = ".".join(place[2:] if name else place)
    problem = fault["msg"].removeprefix("Value error, ")
    return f"{where}: {f'{field}: ' if field else ''}{problem[:1].lower()}{problem[1:]}."


def build(definitions: Iterable[Definition]) -> "Sequence[EntityRecognizer]":
    """Return the recognizers; raises FaultyRecognizersError where a class is not there or is none."""
    from presidio_analyzer import Pattern, PatternRecognizer  # noqa: PLC0415 - heavy

    from app.engines.pii.names.nlp import LANGUAGE  # noqa: PLC0415
    from app.engines.pii.recognizers.patterns import FLAGS  # noqa: PLC0415

    built: list[EntityRecognizer] = []
    for one in definitions:
        if one.class_name is not None:
            built.append(_made(one))
            continue
        patterns = [Pattern(found.name, found.regex, found.score) for found in one.patterns]
        # Presidio's annotations leave out the None that it wants for what is not there.
        options: dict[str, Any] = {
            "patterns": patterns or None,
            "deny_list": list(one.deny_list) or None,
            "deny_list_score": one.deny_list_score,
            "context": list(one.context),
            "global_regex_flags": FLAGS,
        }
        built.append(PatternRecognizer(str(one.supported_entity), one.name, LANGUAGE, **options))
    return built


def _made(one: Definition) -> "EntityRecognizer":
    from presidio_analyzer import EntityRecognizer  # noqa: PLC0415

    module, _, name = str(one.class_name).partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
        recognizer = found()
    except Exception as error:  # noqa: BLE001 - code of the user's: whatever it does, the start must name it
        raise FaultyRecognizersError(
            f"Recognizer {one.name!r}: {one.class_name} cannot be made ({type(error).__name__})."
        ) from None
    if (
        not isinstance(recognizer, EntityRecognizer)
        or one.supported_entity not in recognizer.supported_entities
    ):
        raise FaultyRecognizersError(
            f"Recognizer {one.name!r}: {one.class_name} is no EntityRecognizer for {one.supported_entity}."
        )
    if one.context:
        recognizer.context = list(one.context)
    return recognizer
