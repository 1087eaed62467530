"""What the steps of a pipeline say together, what is on record of them, and with which arguments they run."""

from typing import Any

import pytest

import app.middlewares
from app.core.contracts.pipelines import Pipeline, PipelineStep
from app.core.contracts.policy import Policy
from app.core.contracts.registry import Registry
from app.core.errors import BlockedByPolicyError, InvalidArgumentsError, NotFoundError
from app.services.invoke.pipeline_steps import StepReport, audited, changes, failure_of, overall, ready
from tests.fakes import engines

MIDDLEWARES = Registry.discover(app.middlewares, engines()).middlewares


def report(name: str, outcome: str = "ok", **metadata: Any) -> StepReport:
    return StepReport(name, outcome, 1500, metadata)


def test_what_two_steps_say_speaks_for_neither_and_what_one_says_for_the_whole() -> None:
    reports = [
        report("a", suspected=True, score=0.9),
        report("b", suspected=False, flags=[]),
        report("c", suspected=True, unresolved=0),
    ]
    assert overall(reports) == {"score": 0.9, "flags": [], "unresolved": 0}


def test_even_what_two_steps_say_alike_is_left_to_the_steps() -> None:
    assert overall([report("a", score=1), report("b", score=1)]) == {}


def test_what_is_said_of_one_step_is_never_said_of_the_whole() -> None:
    assert overall([report("a", engine={"name": "x"}, warnings=["w"], unscanned={"image": 1})]) == {}


def test_one_degraded_step_degrades_the_whole_even_where_two_say_so() -> None:
    degraded = report("a", degraded=True)
    assert (
        overall([report("b"), degraded]) == overall([degraded, report("b"), degraded]) == {"degraded": True}
    )
    assert overall([report("a", degraded=False)]) == {"degraded": False}


def test_the_record_numbers_the_steps_from_one() -> None:
    first, second = report("a", degraded=True), StepReport("b", "internal_error", 7, {}, {"flagged": 2})
    assert audited([first, second]) == {
        "step_1": "a",
        "step_1_outcome": "ok",
        "step_1_us": 1500,
        "step_1_degraded": True,
        "step_2": "b",
        "step_2_outcome": "internal_error",
        "step_2_us": 7,
        "step_2_flagged": 2,
    }


def test_a_skipped_step_tells_its_error_and_its_time_in_milliseconds() -> None:
    assert report("a").shown() == {"name": "a", "outcome": "ok", "durationMs": 1.5}
    assert report("a", "deadline_exceeded").shown() == {
        "name": "a",
        "outcome": "skipped",
        "durationMs": 1.5,
        "error": "deadline_exceeded",
    }


def test_changes_are_told_by_the_item_before_whatever_was_put_in_front() -> None:
    assert changes(["a", "b"], ["n", "a", "c"]) == {
        "changes": [{"item": 1, "before": "b", "after": "c"}],
        "added": ["n"],
    }
    assert changes(["a"], ["a"]) == {"changes": [], "added": []}
    assert changes(["a", "b"], ["c"])["changes"] == [{"before": ["a", "b"], "after": ["c"]}]


def test_a_failure_that_is_no_answer_of_ours_is_an_internal_error() -> None:
    assert failure_of(NotFoundError("x")) == "not_found"
    assert failure_of(ValueError("x")) == "internal_error"


def pipeline_of(**arguments: Any) -> Pipeline:
    return Pipeline(name="p", steps=[PipelineStep(name="pii_redaction", arguments=arguments)])


def arguments_of(policy: Policy, pipeline: Pipeline, given: dict[str, Any]) -> Any:
    _, (step,) = ready(pipeline, MIDDLEWARES, policy, given)
    return step.arguments


def test_a_step_takes_what_the_policy_fixes_before_the_pipeline_the_caller_and_the_defaults() -> None:
    usual = Policy(
        default_arguments={"pii_redaction": {"language": "de", "names": "accurate", "mode": "hash"}}
    )
    made = arguments_of(usual, pipeline_of(mode="mask"), {"pii_redaction": {"names": "fast"}})
    assert (made.language, made.names, made.mode) == ("de", "fast", "mask")
    fixed = Policy(fixed_arguments={"pii_redaction": {"mode": "remove"}})
    assert arguments_of(fixed, pipeline_of(mode="mask"), {}).mode == "remove"


@pytest.mark.parametrize(
    ("policy", "pipeline"),
    [
        (Policy(), pipeline_of(mode="mask")),
        (Policy(fixed_arguments={"pii_redaction": {"mode": "mask"}}), pipeline_of()),
    ],
)
def test_a_caller_may_repeat_what_is_set_and_not_change_it(policy: Policy, pipeline: Pipeline) -> None:
    assert arguments_of(policy, pipeline, {"pii_redaction": {"mode": "mask"}}).mode == "mask"
    with pytest.raises(BlockedByPolicyError) as refused:
        arguments_of(policy, pipeline, {"pii_redaction": {"mode": "handle"}})
    assert refused.value.details == {"pointer": "/arguments/pii_redaction/mode"}


def test_the_scope_of_the_whole_is_every_step_s_and_another_is_refused() -> None:
    assert arguments_of(Policy(), pipeline_of(), {"scope": "s"}).scope == "s"
    assert arguments_of(Policy(), pipeline_of(scope="s"), {"scope": "s"}).scope == "s"
    assert arguments_of(Policy(), pipeline_of(scope="t"), {}).scope == "t"
    with pytest.raises(BlockedByPolicyError) as refused:
        arguments_of(Policy(), pipeline_of(scope="t"), {"scope": "s"})
    assert refused.value.details == {"pointer": "/arguments/scope"}


def test_the_arguments_of_a_step_are_an_object_and_names_of_others_are_unknown() -> None:
    for given in ({"pii_redaction": 1}, {"pii_restoration": {}}):
        with pytest.raises(InvalidArgumentsError):
            arguments_of(Policy(), pipeline_of(), given)
    with pytest.raises(NotFoundError):
        ready(Pipeline(name="p", steps=[PipelineStep(name="gone")]), MIDDLEWARES, Policy(), {})
