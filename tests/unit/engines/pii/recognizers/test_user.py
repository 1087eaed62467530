"""Recognizers of a user's own: Presidio's YAML is read, faults are named, classes are made."""

import pytest
from presidio_analyzer import EntityRecognizer

from app.engines.pii.recognizers import patterns, trials
from app.engines.pii.recognizers.user import FaultyRecognizersError, build, check_pace, read_definitions

BADGE = """
recognizers:
  - name: Badges
    supported_language: en
    supported_entity: BADGE
    patterns:
      - {name: badge, regex: "B-\\\\d{6}", score: 0.6}
    context: [badge]
  - name: Projects
    supported_entity: PROJECT
    label: CODE_NAME
    deny_list: [Bluebird, Red Kite]
  - name: UsSsnRecognizer
    type: predefined
    enabled: false
"""


class Initials(EntityRecognizer):
    """Finds nothing; stands for a class of the user's."""

    def __init__(self) -> None:
        super().__init__(supported_entities=["INITIALS"], name="Initials")

    def load(self) -> None: ...

    def analyze(self, text, entities, nlp_artifacts=None):
        return []


def classed(name: str, entity: str = "INITIALS") -> str:
    return f"recognizers:\n  - {{name: Mine, supported_entity: {entity}, class: '{name}'}}"


def test_presidios_yaml_gives_recognizers_rules_and_labels():
    found = read_definitions(BADGE)

    badges, projects = build(found.custom)

    assert [badges.supported_entities, projects.supported_entities] == [["BADGE"], ["PROJECT"]]
    assert badges.context == ["badge"] and len(projects.patterns) == 1
    assert {entity: rule.label for entity, rule in found.rules().items()} == {
        "BADGE": "BADGE",
        "PROJECT": "CODE_NAME",
    }
    assert {"BADGE", "CODE_NAME"} < found.labels() and found.label_of("PROJECT") == "CODE_NAME"
    assert found.disabled == {"UsSsnRecognizer"}


def test_no_file_has_no_recognizers():
    assert read_definitions("").custom == [] and read_definitions("").disabled == frozenset()


def test_a_class_is_made_and_keeps_its_own_ways():
    (made,) = build(read_definitions(classed(f"{__name__}:Initials")).custom)

    assert isinstance(made, Initials)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("recognizers: [", "not valid YAML in line 1"),
        (
            "recognizers:\n  - {name: A, supported_entity: A_B}",
            "'A': it needs patterns, a deny_list or a class",
        ),
        ("recognizers:\n  - {name: A, deny_list: [x]}", "'A': supported_entity is missing"),
        ("recognizers:\n  - {name: A, supported_entity: US_SSN, deny_list: [x]}", "exists already"),
        (
            "recognizers:\n  - {name: A, supported_entity: BADGE, patterns: [{name: p, regex: '(', score: 1}]}",
            "'A': patterns.0.regex: the regular expression is faulty: missing ) at 1",
        ),
        ("recognizers:\n  - {name: A, supported_entity: lower, deny_list: [x]}", "'A': supported_entity"),
        (
            "recognizers:\n  - {name: A, supported_entity: BADGE, denylist: [x]}",
            "'A': denylist: extra inputs",
        ),
        (
            "recognizers:\n  - {name: A, supported_entity: BADGE, deny_list: [x], needs_context: true}",
            "needs_context requires context words",
        ),
        (BADGE + BADGE.split("\n", 2)[2], "Two recognizers find BADGE"),
        (classed("nowhere"), "package.module:Class"),
    ],
)
def test_a_fault_is_named_with_its_recognizer(text, told):
    with pytest.raises(FaultyRecognizersError) as refused:
        read_definitions(text)

    assert told in str(refused.value)


@pytest.mark.parametrize(
    ("name", "entity", "told"),
    [
        ("app.nowhere:Class", "INITIALS", "cannot be created (ModuleNotFoundError)"),
        ("builtins:dict", "INITIALS", "is not an EntityRecognizer"),
        (f"{__name__}:Initials", "OTHER", "is not an EntityRecognizer for OTHER"),
    ],
)
def test_a_class_that_cannot_serve_is_refused(name, entity, told):
    definitions = read_definitions(classed(name, entity))

    with pytest.raises(FaultyRecognizersError) as refused:
        build(definitions.custom)

    assert told in str(refused.value)


@pytest.mark.parametrize("regex", ["(a|a)+b", r"(\\w+\\s?)+:", r"(?=(\\d+)+x)\\d", "(?:(?:a+)-?)+(?<!-)@"])
def test_a_pattern_that_a_short_text_can_keep_busy_is_refused_by_name(monkeypatch, regex):
    monkeypatch.setattr(trials, "_LIMIT_S", 0.3)
    definitions = read_definitions(BADGE.replace("B-\\\\d{6}", regex))

    with pytest.raises(
        FaultyRecognizersError, match="'Badges': the pattern 'badge' takes too long on texts such as"
    ):
        check_pace(definitions)


@pytest.mark.parametrize(
    "regex",
    ["B-\\\\d{6}", "(?:[a-z]+[.])+com", "[a-z.]+@[a-z]+", "(?:\\\\w++ ?)++:", "\\\\p{Lu}{2}\\\\d+", "x*y"],
)
def test_other_patterns_are_not_refused(regex):
    definitions = read_definitions(BADGE.replace("B-\\\\d{6}", regex))

    check_pace(definitions)

    assert definitions.custom[0].patterns[0].regex == regex.replace("\\\\", "\\")


def test_patterns_are_tried_as_they_run():
    assert trials.FLAGS == patterns.FLAGS
