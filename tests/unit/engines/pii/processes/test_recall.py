"""What is remembered changes no finding: laws of the span cache, over conversations of every shape."""

import asyncio
import re
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.contracts.engines import DetectionOptions, Span
from app.engines.pii.names.carrying import carry, names_in
from app.engines.pii.processes import frames
from app.engines.pii.processes.pool import PoolDetector
from app.engines.pii.processes.recall import Keys, Recall, runs_of
from app.engines.pii.processes.startup import Startup
from app.engines.pii.processes.worker import Service
from tests.proportion import assert_in_proportion

OPTIONS = DetectionOptions()
MARKED = re.compile(r"<([^<>]*)>|\{([^{}]*)\}|#([^#]*)#")


class Marked:
    """An analyzer that finds what is marked: ``<sure person>``, ``{unsure person}``, ``#number#``."""

    def scan(self, text: str, options: DetectionOptions) -> list[Span]:
        kinds = {1: ("PERSON", 0.9), 2: ("PERSON", 0.55), 3: ("SSN", 0.85)}
        found = [
            Span(*match.span(match.lastindex or 1), *kinds[match.lastindex or 1])
            for match in MARKED.finditer(text)
            if match.end() - match.start() > 2
        ]
        return [span for span in found if span.label not in options.exclude]


class Here:
    """Answers questions in this process and counts what is scanned."""

    deaths = 0
    loaded = True

    def __init__(self) -> None:
        self.service = Service(Marked())  # type: ignore[arg-type] - all that the service asks of it
        self.startup = Startup()
        self.scanned: list[str] = []

    @property
    def version(self) -> bytes:
        return self.startup.version

    async def start(self) -> None: ...

    async def reload(self, startup: Startup) -> None:
        self.startup = startup

    async def ask_all(
        self, questions: Sequence[tuple[int, frames.Frame]], until: float
    ) -> list[frames.Frame]:
        answers = []
        for _size, question in questions:
            asked = frames.unpacked(frames.packed(question)[frames.HEADER.size :])
            self.scanned += [text for run in asked.get("runs", ()) for text in run]
            answer = frames.unpacked(frames.packed(self.service.answer(asked))[frames.HEADER.size :])
            answers.append(answer | {"version": self.version})
        return answers


def detector(cache_bytes: int = 1 << 20) -> tuple[PoolDetector, Here]:
    here = Here()
    pool = PoolDetector(1, cache_bytes=cache_bytes)
    pool._workers = here  # type: ignore[assignment] - see `Here`
    return pool, here


def spans(
    pool: PoolDetector, texts: Sequence[str], options: DetectionOptions = OPTIONS, **more: str
) -> list[list[Span]]:
    return asyncio.run(pool.detect(texts, options, **{"tenant": "acme", **more})).spans


def at_once(texts: Sequence[str], options: DetectionOptions) -> list[list[Span]]:
    """Return what is found where nothing is remembered: the names of all texts are looked for in all texts."""
    found = [Marked().scan(text, options) for text in texts]
    return carry(texts, found, names_in(texts, found), options)


WORDS = [
    *(
        "Jane",
        "JANE",
        "jane",
        "Roe",
        "ROE",
        "van der Berg",
        "van",
        "Berg",
        "Mark",
        "April",
        "O'Neil",
        "O'NEIL",
    ),
    *("Jean-Luc", "Janet", "Ana", "and", "met", "Mr.", "Dr", "[PERSON_1]", "Émile", "Li", "李明", "\ud800"),
    *(
        "<Jane Roe>",
        "<Mark April>",
        "<Ana van der Berg>",
        "<Roe>",
        "{Berg}",
        "{Jean-Luc O'Neil}",
        "<Émile Li>",
    ),
    *("<van der Berg>", "#123#", "#Jane#", "<JANE ROE>", "<Jane  Roe>", "<O'Neil>", "<Ana>"),
]
GAPS = [" ", "  ", ", ", ". ", "\n", "-", ""]
text = st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(GAPS)), max_size=9).map(
    lambda parts: "".join(map("".join, parts))
)
options = st.sampled_from(
    [
        *(OPTIONS, OPTIONS, OPTIONS, DetectionOptions(allow_list=("Roe",))),
        *(DetectionOptions(exclude=frozenset({"PERSON"})), DetectionOptions(exclude=frozenset({"SSN"}))),
    ]
)
step = st.tuples(
    st.sampled_from(["append", "append", "append", "edit", "drop", "fork"]), text, st.integers(0, 9), options
)


def conversation(
    steps: Iterable[tuple[str, str, int, DetectionOptions]],
) -> Iterable[tuple[list[str], DetectionOptions]]:
    texts: list[str] = []
    for kind, new, place, asked in steps:
        if kind == "append" or not texts:
            texts = [*texts, new]
        elif kind == "edit":
            texts = [*texts[: place % len(texts)], new, *texts[place % len(texts) + 1 :]]
        elif kind == "drop":
            texts = texts[: place % len(texts)] + texts[place % len(texts) + 1 :]
        else:
            texts = [*texts[: place % len(texts)], new]
        yield texts, asked


@settings(max_examples=150, deadline=None)
@given(st.lists(step, min_size=2, max_size=9), st.sampled_from([1 << 20, 100_000, 0]))
def test_what_is_remembered_changes_no_finding(
    steps: list[tuple[str, str, int, DetectionOptions]], cache_bytes: int
) -> None:
    pool, _ = detector(cache_bytes)
    for texts, asked in conversation(steps):
        assert spans(pool, texts, asked) == at_once(texts, asked)


def test_the_law_notices_names_that_are_not_carried_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control of the test above."""
    monkeypatch.setattr("app.engines.pii.processes.recall.Recall.search", lambda _recall, _names: iter(()))
    pool, _ = detector()
    assert spans(pool, ["ask Roe"]) == [[]]
    assert spans(pool, ["ask Roe", "<Jane Roe>"]) != at_once(["ask Roe", "<Jane Roe>"], OPTIONS)


def test_only_unseen_texts_are_scanned_and_equal_ones_once() -> None:
    pool, here = detector()
    spans(pool, ["<Jane Roe>", "hello", "hello", ""])
    assert here.scanned == ["<Jane Roe>", "hello"]
    assert spans(pool, ["hello", "new", "<Jane Roe>"])[0] == []
    assert here.scanned[2:] == ["new"]
    assert pool.counts()["hits"] == 2
    assert pool.counts()["misses"] == 3


def test_the_same_text_of_another_tenant_is_scanned_again() -> None:
    pool, here = detector()
    spans(pool, ["<Jane Roe>"], tenant="acme")
    spans(pool, ["<Jane Roe>"], tenant="globex")
    assert here.scanned == ["<Jane Roe>"] * 2


def test_what_belongs_to_nobody_is_not_remembered() -> None:
    pool, here = detector()
    spans(pool, ["hello"], tenant="")
    spans(pool, ["hello"], tenant="")
    assert here.scanned == ["hello"] * 2
    assert pool.counts()["bytes"] == 0


@pytest.mark.parametrize(
    "changed",
    [
        DetectionOptions(strict=True),
        DetectionOptions(language="en"),
        DetectionOptions(names="accurate"),
        DetectionOptions(entities=frozenset({"PERSON"})),
        DetectionOptions(exclude=frozenset({"IP"})),
        DetectionOptions(allow_list=("Jane",)),
        DetectionOptions(deny_list=("Jane",)),
    ],
)
def test_a_changed_policy_is_another_key(changed: DetectionOptions) -> None:
    pool, here = detector()
    spans(pool, ["<Jane Roe>"])
    spans(pool, ["<Jane Roe>"], changed)
    assert here.scanned == ["<Jane Roe>"] * 2
    spans(pool, ["<Jane Roe>"])
    assert len(here.scanned) == 2


def test_changed_recognizers_are_another_key() -> None:
    pool, here = detector()
    spans(pool, ["<Jane Roe>"])
    asyncio.run(pool.reload(Startup(recognizers="recognizers: []")))
    spans(pool, ["<Jane Roe>"])
    assert here.scanned == ["<Jane Roe>"] * 2
    asyncio.run(pool.reload(Startup()))
    spans(pool, ["<Jane Roe>"])
    assert len(here.scanned) == 2


def test_an_answer_of_other_recognizers_than_asked_for_is_not_remembered() -> None:
    pool, here = detector()
    asked = here.ask_all

    async def by_another(questions: Sequence[tuple[int, frames.Frame]], until: float) -> list[frames.Frame]:
        return [answer | {"version": b"other"} for answer in await asked(questions, until)]

    here.ask_all = by_another  # type: ignore[method-assign]
    assert spans(pool, ["<Jane Roe>"]) == at_once(["<Jane Roe>"], OPTIONS)
    assert pool.counts()["bytes"] == 0


def test_a_text_in_a_run_is_another_than_alone() -> None:
    pool, here = detector()
    asyncio.run(pool.detect(["a", "b", "c"], OPTIONS, tenant="acme"))
    asyncio.run(pool.detect(["a", "b", "c"], OPTIONS, tenant="acme", joined=[[0, 1]]))
    assert here.scanned == ["a", "b", "c", "a", "b"]
    asyncio.run(pool.detect(["x", "a", "b"], OPTIONS, tenant="acme", joined=[[1, 2]]))
    assert here.scanned[5:] == ["x"]
    asyncio.run(pool.detect(["b", "a"], OPTIONS, tenant="acme", joined=[[0, 1]]))
    assert here.scanned[6:] == ["b", "a"]


def test_the_cache_holds_no_part_of_a_text() -> None:
    pool, _ = detector()
    texts = ["<Wilhelmina Quackenbush>", "ask Quackenbush about #canary-4711#", "WILHELMINA said so"]
    for end in range(1, 4):
        assert spans(pool, texts[:end])[-1]
    held = repr(pool._memory.cache._tenants).encode() + b"".join(everything(pool._memory.cache._tenants))
    assert held
    for word in ("Wilhelmina", "Quackenbush", "canary", "4711", "said"):
        assert word.encode() not in held
        assert word.upper().encode() not in held


def everything(held: object) -> Iterable[bytes]:
    """Yield all bytes that are to be reached from ``held``."""
    if isinstance(held, bytes):
        yield held
    elif isinstance(held, str):
        yield held.encode("utf-8", "surrogatepass")
    elif isinstance(held, dict):
        for key, value in held.items():
            yield from everything(key)
            yield from everything(value)
    elif isinstance(held, tuple | list | set):
        for one in held:
            yield from everything(one)
    else:
        assert held is None


def test_the_search_for_names_lets_others_have_a_turn_after_each_text() -> None:
    service = Service(Marked())  # type: ignore[arg-type] - all that the service asks of it
    texts = [f"<Jane Roe> wrote number {number}" for number in range(40)]
    keys = Keys(bytes(64))
    runs = runs_of(len(texts), ())
    recall = Recall(None, "", texts, OPTIONS, keys, runs, keys.of_texts(texts, runs))
    for run in recall.unseen():
        question = {"ask": "scan", "names": [], "options": frames.raw_options(OPTIONS)}
        recall.learn([run], service.answer(question | {"runs": [[texts[place] for place in run]]}))

    assert sum(1 for _ in recall.search([*recall.names(), "Ann Poe"])) >= len(texts)


@given(st.integers(0, 30), st.data())
def test_runs_are_the_parts_that_groups_tie_together(count: int, data: st.DataObject) -> None:
    places = st.lists(st.integers(0, max(0, count - 1)), min_size=1, max_size=5)
    groups = data.draw(st.lists(places, max_size=8)) if count else []
    runs = runs_of(count, groups)
    assert sorted(place for run in runs for place in run) == list(range(count))
    assert runs == sorted(tuple(sorted(run)) for run in runs)
    run_of = {place: run for run in runs for place in run}
    assert all(len({run_of[place] for place in group}) == 1 for group in groups)
    tied = {place for group in groups for place in group}
    assert all(len(run) == 1 for run in runs if tied.isdisjoint(run))


def test_one_run_of_as_many_texts_as_a_context_has_takes_no_time() -> None:
    """Thousands of texts that may belong together once stopped the event loop for seconds."""
    texts = [f"text {number}" for number in range(4096)]

    def tied(count: int) -> tuple[tuple[int, ...], list[bytes]]:
        (run,) = runs_of(count, [range(count)])
        return run, Keys(bytes(64)).of_texts(texts[:count], [run])

    assert_in_proportion(tied, 512, 4096)
    run, keys = tied(4096)
    assert run == tuple(range(4096))
    assert len(set(keys)) == 4096
    other = Keys(bytes(64)).of_texts([*texts[:-1], "another"], [run])
    assert not set(keys) & set(other), "each key depends on all texts of the run"
