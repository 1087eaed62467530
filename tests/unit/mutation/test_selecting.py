"""Which tests a mutant runs: those that call the function, quick and narrow first, within a budget."""

import json
import os

from tests.mutation.reach import ALL, Notes, functions
from tests.mutation.selecting import Reach, RecordedTest, digests, forget, read, stale


def reach(*tests):
    return Reach({"app.room:f": list(tests)})


def names(tests):
    return [test.name for test in tests]


def test_unit_tests_come_first_and_postgresql_last():
    found = reach(
        RecordedTest("tests/protocol/test_p.py::p", 0.1, 1),
        RecordedTest("tests/integration/test_i.py::i[postgresql]", 0.1, 1),
        RecordedTest("tests/integration/test_i.py::i[sqlite]", 0.1, 1),
        RecordedTest("tests/unit/test_u.py::u", 5.0, 900),
    ).select("app.room:f", 60, 10)
    assert [name.split("::")[1] for name in names(found)] == ["u", "i[sqlite]", "i[postgresql]", "p"]


def test_files_that_are_named_after_the_code_come_first():
    tests = [
        RecordedTest("tests/unit/test_boxes.py::t", 0.1, 1),
        RecordedTest("tests/protocol/test_mcp_guards.py::t", 0.1, 900),
        RecordedTest("tests/protocol/test_mcp_guards.py::test_what_permit_refuses", 0.1, 901),
    ]
    found = Reach({"app.protocol.guard:Guard.permit": tests}).select("app.protocol.guard:Guard.permit", 60, 9)
    assert names(found) == [tests[2].name, tests[1].name, tests[0].name]


def test_files_take_turns():
    many = [RecordedTest(f"tests/unit/test_many.py::t[{number}]", 0.1, 1) for number in range(5)]
    found = reach(*many, RecordedTest("tests/unit/test_one.py::t", 0.1, 50)).select("app.room:f", 60, 2)
    assert names(found) == ["tests/unit/test_many.py::t[0]", "tests/unit/test_one.py::t"]


def test_the_budget_of_time_holds_but_one_test_always_runs():
    slow, quick = (
        RecordedTest("tests/unit/test_a.py::slow", 50, 1),
        RecordedTest("tests/unit/test_b.py::quick", 1, 2),
    )
    assert reach(quick, slow).select("app.room:f", 10, 5) == [quick]
    assert reach(slow).select("app.room:f", 10, 5) == [slow]


def test_a_function_that_no_test_calls_has_no_tests():
    assert reach().select("app.room:g", 10, 5) == []


def test_the_newest_record_of_a_test_counts_and_failed_tests_do_not(tmp_path):
    def line(test, fresh, called, *, passed=True):
        return (
            json.dumps({"test": test, "seconds": 1, "passed": passed, "fresh": fresh, "called": called})
            + "\n"
        )

    (tmp_path / "1.jsonl").write_text(line("a", ["f", "g"], [0, 1]) + line("b", ["h"], [1, 2], passed=False))
    (tmp_path / "2.jsonl").write_text(line("a", ["h"], [0]))
    (tmp_path / "libraries.json").write_text('["json"]')
    found = read(tmp_path)
    assert {function: names(tests) for function, tests in found.tests.items()} == {"h": ["a"]}
    assert found.libraries == ["json"]


def test_tests_of_files_that_changed_or_are_gone_are_not_selected(tmp_path):
    def line(test, called):
        return json.dumps({"test": test, "seconds": 1, "passed": True, "fresh": [called], "called": [0]})

    for number, file in enumerate(("test_kept.py", "test_changed.py")):
        (tmp_path / f"{number}.jsonl").write_text(f"{line(f'tests/{file}::t', 'f')}\n")
        os.utime(tmp_path / f"{number}.jsonl", (number, number))
    forget(tmp_path, ["tests/test_kept.py"])
    assert {function: names(tests) for function, tests in read(tmp_path).tests.items()} == {
        "f": ["tests/test_kept.py::t"]
    }
    assert (tmp_path / "0.jsonl").stat().st_mtime == 0, "the order of records is that of their files"


def test_a_changed_test_file_is_recorded_again_and_a_changed_room_records_all(tmp_path):
    (tmp_path / "app").mkdir()
    (tmp_path / "tests").mkdir()
    (tmp_path / "app" / "m.py").write_text("x = 1")
    for name in ("a", "b"):
        (tmp_path / "tests" / f"test_{name}.py").write_text("y = 1")
    kept = tmp_path / "kept"
    kept.mkdir()

    def files(*, trust=False):
        return stale(tmp_path, kept, ["tests"], ["app"], trust=trust)

    assert files() == ["tests/test_a.py", "tests/test_b.py"]
    (kept / "digests.json").write_text(json.dumps(digests(tmp_path, ["tests"], ["app"])))
    assert files() == []
    (tmp_path / "tests" / "test_b.py").write_text("y = 2")
    assert files() == ["tests/test_b.py"]
    (tmp_path / "app" / "m.py").write_text("x = 2")
    assert files() == ["tests/test_a.py", "tests/test_b.py"]
    assert files(trust=True) == ["tests/test_b.py"]


def test_calls_of_a_process_that_a_test_forks_are_noted_with_its_own(tmp_path):
    (tmp_path / "room").mkdir()
    (tmp_path / "room/box.py").write_text("def ours(): pass\nclass A:\n    async def theirs(self): pass\n")
    named = functions(tmp_path, ["room"])
    assert named == ["room.box:A.theirs", "room.box:ours"]
    (tmp_path / ALL).write_text(json.dumps(named))
    notes = Notes()
    notes.open(tmp_path, tmp_path / "1.notes")
    notes.add("room.box:ours")
    child = os.fork()
    if not child:
        notes.add("room.box:A.theirs")
        os._exit(0)
    os.waitpid(child, 0)
    assert notes.names() == named
    notes.clear()
    assert notes.names() == []
