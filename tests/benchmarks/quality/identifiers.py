# ruff: noqa: E501 - tables of templates and values keep a row on a line
"""Precision and recall of identifiers, per class, beside Presidio as it comes; false findings on ordinary text."""

import asyncio
import json
import logging
import os
import random
import sysconfig
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from app.core.content.context import Context
from app.core.contracts.engines import Detection, DetectionOptions
from app.engines.pii.ground.labels import NAME_LABELS, RULES
from app.middlewares.pii_redaction.middleware import PiiRedaction, PiiRedactionArguments
from tests.benchmarks.speed import detection
from tests.benchmarks.speed.report import table
from tests.benchmarks.speed.sizes import SMOKE, Sizes
from tests.fakes import FakeDetector, engines
from tests.pii_identifiers import KINDS, Case, Half, cases

Found = list[tuple[int, int, str]]
Detect = Callable[[str, bool], Found]
"""From a text, and whether everything is asked for, to what is found: start, end, label."""

_MEGABYTE = 1_000_000


class Figures(NamedTuple):
    """Counts of one class: values hidden whole under any label, under the right one, findings that are none."""

    texts: int
    hidden: int
    right: int
    false: int

    @property
    def recall(self) -> float:
        """Return the share of values that are hidden whole, whatever they are called."""
        return self.hidden / max(self.texts, 1)

    @property
    def named(self) -> float:
        """Return the share of values that are hidden whole and called what they are."""
        return self.right / max(self.texts, 1)

    @property
    def precision(self) -> float:
        """Return the share of findings of the labels of the class that are right."""
        return self.right / max(self.right + self.false, 1)

    @property
    def score(self) -> float:
        """Return the harmonic mean of precision and recall under the right label."""
        return 2 * self.precision * self.named / max(self.precision + self.named, 1e-9)


def tables(sizes: Sizes, _folder: Path) -> Iterator[str]:
    """Yield the table of classes, of national identifiers where there are cases, and of false findings."""
    logging.getLogger("presidio-analyzer").setLevel(logging.ERROR)
    count = 4 if sizes is SMOKE else 200
    theirs, ours = _vanilla(), detector()  # Presidio loads its classes by name: it must not meet ours
    rows = []
    for kind, made in figures(ours, "held-out", count).items():
        beside = figures(theirs, "held-out", count // 4, (kind,))[kind]
        rows.append((kind, made.texts, made.precision, made.recall, made.named, made.score,
                     beside.precision, beside.recall, beside.named))  # fmt: skip
    yield table(
        "Identifiers by class",
        ("class", "texts", "precision", "recall, any label", "recall, right label", "F1",
         "Presidio: precision", "Presidio: recall, any label", "Presidio: right label"),
        rows,
        "Held-out half of the templates and cues. A value counts when it is hidden whole; precision counts findings of the "
        "labels of the class in all texts of the class and its look-alikes. Sluice: what the middleware pii_redaction replaces.",
    )  # fmt: skip
    yield _national(ours, theirs, count)
    yield _false_findings(ours, theirs, 40_000 if sizes is SMOKE else 2_000_000)


class AnalyzerDetector(FakeDetector):
    """Our analyzer behind the contract, in this process."""

    def __init__(self, analyzer: Any) -> None:
        super().__init__()
        self.analyzer = analyzer

    async def detect(
        self,
        texts: Sequence[str],
        options: DetectionOptions,
        *,
        tenant: str = "",
        joined: Sequence[Sequence[int]] = (),
    ) -> Detection:
        """Scan ``texts``; no text of a benchmark is adjacent to another."""
        return Detection(self.analyzer.analyze_all(texts, options), "analyzer")


def detector(analyzer: Any = None) -> Detect:
    """Return what `pii_redaction` replaces in a text, in *standard* or in *strict*, at its place in the text."""
    analyzer = analyzer or detection.built()
    middleware = PiiRedaction(engines(AnalyzerDetector(analyzer)))
    arguments = {
        strict: PiiRedactionArguments(aggressiveness="strict" if strict else "standard")
        for strict in (False, True)
    }
    runner = asyncio.Runner()

    def detect(text: str, strict: bool) -> Found:
        context = Context.parse([{"type": "text", "text": text}])
        outcome = runner.run(middleware.apply(context, arguments[strict]))
        # A text that would turn into JSON becomes one LITERAL, which hides its value as well.
        return [(edit.start, edit.end, edit.replacement.label) for edit in outcome.context.edits]

    return detect


def _vanilla() -> Detect:

    engine = detection.vanilla_engine()

    def detect(text: str, strict: bool) -> Found:
        del strict
        found = engine.analyze(text, language="en")
        return [(r.start, r.end, RULES[r.entity_type].label) for r in found if r.entity_type in RULES]

    return detect


def figures(
    detect: Detect, half: Half, count: int, kinds: Iterable[str] = tuple(KINDS)
) -> dict[str, Figures]:
    """Return the counts of each class, over its own texts and look-alikes."""
    return {
        kind: measured(detect, cases(kind, half, count), KINDS[kind].labels, strict=KINDS[kind].strict)
        for kind in kinds
    }


def measured(
    detect: Detect, texts: Iterable[Case], labels: frozenset[str], *, strict: bool = False
) -> Figures:
    """Return the counts over ``texts``, in which only the marked value is personal data of ``labels``."""
    total = hidden = right = false = 0
    for case in texts:
        found = detect(case.text, strict)
        false += sum(
            label in labels and not (start < case.end and case.start < end) for start, end, label in found
        )
        if case.start == case.end:
            continue
        total += 1
        hidden += covers(case, found)
        right += covers(case, [span for span in found if span[2] in labels])
    return Figures(total, hidden, right, false)


def covers(case: Case, found: Found) -> bool:
    """Say whether every letter and digit of the value lies inside a finding."""
    return all(
        any(start <= place < end for start, end, _ in found)
        for place in range(case.start, case.end)
        if case.text[place].isalnum()
    )


def _national(ours: Detect, theirs: Detect, most: int) -> str:
    from tests.pii_national import CASES

    rows = []
    for case in CASES[:most]:
        made = measured(ours, _national_texts(case), frozenset({case.label}))
        beside = measured(theirs, _national_texts(case), frozenset({case.label}))
        rows.append(
            (case.entity, made.texts, made.precision, made.recall, made.named, beside.recall, beside.named)
        )
    return table(
        "National identifiers",
        ("entity", "texts", "precision", "recall, any label", "recall, right label",
         "Presidio: recall, any label", "Presidio: right label"),
        rows,
        "Each spelling of each identifier in sentences of its language and English and as a field of JSON; precision also "
        "over values with a wrong check digit and inside longer tokens.",
    )  # fmt: skip


def _national_texts(case: Any) -> Iterator[Case]:
    draw = random.Random(case.entity)
    for value in case.values(draw):
        for text in case.sentences(value):
            start = text.index(value)
            yield Case(text, start, start + len(value), case.entity)
        for wrong in case.near_misses(value):
            yield Case(f"see {wrong} there", 0, 0, case.entity)


def _false_findings(ours: Detect, theirs: Detect, size: int) -> str:
    rows = []
    for name, texts in ordinary(size).items():
        megabytes = sum(map(len, texts)) / _MEGABYTE
        for engine, detect, share in (("Sluice", ours, 1), ("Presidio", theirs, 10)):
            begin = time.process_time()
            counted = Counter(label for text in texts[::share] for _, _, label in detect(text, False))
            shown = Counter(
                {label: n for label, n in counted.items() if label not in NAME_LABELS - {"ADDRESS"}}
            )
            part = sum(map(len, texts[::share])) / _MEGABYTE
            most = ", ".join(f"{label} {n / part:.0f}" for label, n in shown.most_common(6))
            rows.append(
                (
                    name,
                    engine,
                    megabytes,
                    shown.total() / part,
                    most,
                    (time.process_time() - begin) / part,
                )
            )
    return table(
        "Findings of identifiers per MB of ordinary text",
        ("text", "engine", "MB", "per MB", "most of them", "ms/KB"),
        rows,
        "Text in which hardly any are: most of what is found is false. Presidio reads one text in ten.",
    )


def ordinary(size: int) -> dict[str, list[str]]:
    """Return texts with hardly any personal data in them, in pieces of some KB."""
    texts = {
        "Python source": _code(size),
        "JSON records": [_records(seed) for seed in range(max(1, size // 20_000))],
        "logs": [_log(seed) for seed in range(max(1, size // 20_000))],
    }
    folder = os.environ.get("SLUICE_TEST_NER_DATA")
    if folder:
        lines = Path(folder, "train.jsonl").read_text(encoding="utf-8").splitlines()
        prose = [json.loads(line)["text"] for line in lines]
        texts["tweets and prose"] = ["\n".join(prose[at : at + 40]) for at in range(0, len(prose), 40)][
            : max(1, size // 4_000)
        ]
    return texts


def _code(most: int) -> list[str]:
    texts: list[str] = []
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).rglob("*.py"))[::7]:
        if "site-packages" not in path.parts and sum(map(len, texts)) < most:
            texts.append(path.read_text(encoding="utf-8", errors="replace"))
    return texts


def _records(seed: int) -> str:
    draw = random.Random(seed)
    rows = [
        {
            "id": draw.randrange(10**9), "order_number": f"{draw.randrange(10**4):04}-{draw.randrange(10**6):06}",
            "sku": f"{draw.choice('ABCDEF')}{draw.choice('GHKLM')}-{draw.randrange(10**5):05}",
            "created_at": f"2026-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}T{draw.randint(0, 23):02}:15:{draw.randint(0, 59):02}Z",
            "price": round(draw.uniform(1, 2000), 2), "quantity": draw.randrange(40), "weight": round(draw.random(), 6),
            "version": f"{draw.randrange(9)}.{draw.randrange(30)}.{draw.randrange(90)}", "hash": f"{draw.getrandbits(128):032x}",
            "dimensions": [draw.randrange(2000), draw.randrange(2000)], "status": draw.choice(["open", "paid", "sent"]),
            "ean": f"{draw.randrange(10**12, 10**13)}", "ratio": [round(draw.uniform(-1, 1), 6), round(draw.uniform(-1, 1), 6)],
        }
        for _ in range(60)
    ]  # fmt: skip
    return json.dumps(rows, indent=draw.choice([None, 2]))


def _log(seed: int) -> str:
    draw = random.Random(seed)
    forms = (
        "{d} INFO worker[{n}] job {h} finished in {f} ms, {n} rows", "{d} WARN pool-{s} retry {s}/5 after {f}s, code={n}",
        "{d} DEBUG cache hit key={h} size={n} ttl={s}", "{d} ERROR build {n} failed: exit status {s} at line {n}:{s}",
        "{d} INFO request {h} status=200 bytes={n} duration={f}", "kernel: [{f}] usb {s}-{s}: new device number {s} using xhci_hcd",
        "{d} INFO release v{s}.{s}.{s} deployed, batch {n}-{n} of {n}", "{d} TRACE span={h} parent={h} seq={n} offset={n}",
    )  # fmt: skip
    lines = []
    for number in range(220):
        when = f"2026-11-{draw.randint(1, 28):02} 10:{number % 60:02}:{draw.randint(0, 59):02},{draw.randrange(1000):03}"
        line = draw.choice(forms)
        while "{" in line:
            for mark, value in (("{d}", when), ("{n}", str(draw.randrange(10 ** draw.randint(2, 10)))), ("{s}", str(draw.randrange(40))),
                                ("{f}", f"{draw.uniform(0, 9000):.3f}"), ("{h}", f"{draw.getrandbits(64):016x}")):  # fmt: skip
                line = line.replace(mark, value, 1)
        lines.append(line)
    return "\n".join(lines)
