"""One detection process: it reads frames, answers them, and ends with its parent.

Forked from a `zygote`, or started by the pool as ``python -m app.engines.pii.processes.worker <pid of the parent>``;
then the first frame of its standard input holds the `Startup`. It writes content only into its answers: logging is off,
the pool closes standard error, and an error is reported by type and place.
"""

import ctypes
import gc
import logging
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from app.core.contracts.engines import DetectionOptions, Span
from app.engines.pii.ground.lean import compiled_once, without_spacy
from app.engines.pii.names.carrying import carried, carries, names_in
from app.engines.pii.names.languages import evidence
from app.engines.pii.names.names import Names
from app.engines.pii.processes import frames
from app.engines.pii.processes.startup import Startup
from app.engines.pii.recognizers.user import read_definitions
from app.engines.pii.search.borders import scan_run

if TYPE_CHECKING:
    from app.engines.pii.search.analyzer import Analyzer

_PR_SET_PDEATHSIG = 1
# A recognizer compiles its patterns when it first has something to examine: mostly here, once for all workers.
WARM_UP = """
Call Jane Roe at +1-202-555-0173, (202) 555-0173 or 020 7946 0958, or write to jane@example.com or +49 30 123456 78.
SSN 219-09-9999, card 4111 1111 1111 1111, my bank account 12345678901, IBAN DE89 3704 0044 0532 0130 00,
wallet 1BoatSLRHtKNngkdXEeobR76b53LETtpyT, passport no A1234567, driver license D1234567, see https://example.com/a?b=1.
IP 10.0.0.1 or 2001:db8:85a3:8d3:1319:8a2e:370:7348, mac address 00:1b:44:11:3a:b7, born 1984-03-05 or March 5, 1984.
The id is 3f2504e0-4f89-41d3-9a0c-0305e82c3301, username: jroe42, user id 4711, login jroe, password=hunter2hunter2,
Employee id E-10422, student number 1042277, device serial X1Y2Z3A4B5.
Medical record 1042277, health plan 104-227-7, insurance claim 1042277, insurance contract 1042277, aged 93 years old.
She lives at 12 Main Street, Springfield, IL 62704, then at 17 rue de la Paix, 75002 Paris, and Calle Mayor 3, Madrid.
{"id": 7041532, "created_at": "2024-03-05T12:33:01Z", "amount": 12.50, "phone": "+44 20 7946 0958", "lat": 52.52}
"""


def main() -> None:
    """Serve frames until the parent closes the pipe or dies."""
    end_with_parent(int(sys.argv[1]))
    answers = os.fdopen(os.dup(1), "wb")
    service = prepared(sys.stdin.buffer, answers)
    frames.write(answers, service.greeting())
    serve(service, sys.stdin.buffer, answers)


def prepared(questions: BinaryIO, answers: BinaryIO) -> "Service":
    """Return the service that the first frame of ``questions`` configures; on failure, report it and exit."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.disable(logging.CRITICAL)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    first_frame = frames.read(questions)
    if first_frame is None:
        raise SystemExit(1)
    try:
        return Service.loaded(Startup.from_raw(first_frame["startup"]), first_frame["database"])
    except Exception as error:  # noqa: BLE001 - the pool must learn of any error
        frames.write(answers, _failure(error))
        raise SystemExit(1) from None


def serve(service: "Service", questions: BinaryIO, answers: BinaryIO) -> None:
    """Answer every frame of ``questions``; a question that exceeds its time limit ends the process."""
    while (frame := frames.read(questions)) is not None:
        _limit(frame.get("within", 0.0))
        try:
            answer = service.answer(frame)
        except Exception as error:  # noqa: BLE001 - the pool turns it into an error of the call, which fails closed
            answer = _failure(error)
        _limit(0.0)
        del frame
        frames.write(answers, answer)


class Service:
    """Answers the questions of the pool in one process."""

    def __init__(self, analyzer: "Analyzer") -> None:
        self._analyzer = analyzer
        self._answers: dict[str, Callable[[frames.Frame], frames.Frame]] = {
            "scan": self._scan,
            "carry": self._carry,
            "explain": self._explain,
            "operate": self._operate,
        }

    @classmethod
    def loaded(cls, startup: Startup, database: bytes | None = None) -> "Service":
        """Return the service with everything loaded that workers share; call it before any fork, with one thread.

        ``database`` is the result of `Analyzer.serialized` in an earlier process; compiling takes longer than the rest.
        """
        # Almost everything that is made here stays, and searching it for cycles takes a tenth of the start.
        gc.set_threshold(50_000, 20, 50)
        with without_spacy():
            from app.engines.pii.search.analyzer import Analyzer  # noqa: PLC0415 - Presidio: after the set-up

        with compiled_once():
            definitions = read_definitions(startup.recognizers)
            analyzer = Analyzer(matcher=startup.matcher, database=database, definitions=definitions)
        for strict in (False, True):
            analyzer.analyze(WARM_UP, DetectionOptions(strict=strict))
        gc.collect()
        gc.freeze()
        return cls(analyzer)

    def greeting(self) -> frames.Frame:
        """Return the frame that tells the pool that everything is loaded."""
        return {"ready": True, "database": self._analyzer.serialized()}

    def answer(self, frame: frames.Frame) -> frames.Frame:
        """Return the answer to one question."""
        return self._answers[frame["ask"]](frame)

    def _scan(self, frame: frames.Frame) -> frames.Frame:
        options = frames.options_from(frame["options"])
        runs: list[list[str]] = frame["runs"]
        spans_of_runs = [self._scan_run(run, options) for run in runs]
        texts = [text for run in runs for text in run]
        spans = [text_spans for run_spans in spans_of_runs for text_spans in run_spans]
        other_names: list[str] = frame["names"]
        names = other_names + sorted(set(names_in(texts, spans)) - set(other_names))
        prepared = Names(names if carries(options) else ())
        answers = []
        for text, own in zip(texts, spans, strict=True):
            answer = self._with_names(text, own, prepared, options)
            answers.append(
                answer | {"spans": frames.raw_spans(own), "evidence": evidence(text, options.language)}
            )
        return {"texts": answers, "names": names}

    def _scan_run(self, run: list[str], options: DetectionOptions) -> list[list[Span]]:
        """Return the findings in each of several adjacent texts; a single text is a run of one."""
        return scan_run(run, lambda text: self._analyzer.scan(text, options))

    def _carry(self, frame: frames.Frame) -> frames.Frame:
        options = frames.options_from(frame["options"])
        prepared = Names(frame["names"])
        return {
            "texts": [
                self._with_names(text, frames.spans_from(spans), prepared, options)
                for text, spans in zip(frame["texts"], frame["spans"], strict=True)
            ]
        }

    def _with_names(
        self, text: str, own: list[Span], names: Names, options: DetectionOptions
    ) -> frames.Frame:
        spans, relevant = carried(text, own, names, options)
        return {"carried": None if spans is None else frames.raw_spans(spans), "relevant": relevant}

    def _explain(self, frame: frames.Frame) -> frames.Frame:
        from app.engines.pii.search.explaining import explain_all  # noqa: PLC0415 - first use only

        options = frames.options_from(frame["options"])
        texts: list[str] = frame["texts"]
        explained = explain_all(self._analyzer, texts, options)
        return {
            "texts": [
                {
                    "spans": frames.raw_spans(spans),
                    "candidates": list(map(frames.raw_candidate, candidates)),
                    "evidence": evidence(text, options.language),
                }
                for text, (spans, candidates) in zip(texts, explained, strict=True)
            ]
        }

    def _operate(self, frame: frames.Frame) -> frames.Frame:
        from app.engines.pii.search.operators import apply_operator  # noqa: PLC0415 - Presidio's anonymizer: first use only

        return {
            "texts": [
                apply_operator(frame["mode"], text, label, frame["key"]) for label, text in frame["items"]
            ]
        }


def _limit(seconds: float) -> None:
    """Make the kernel end this process after ``seconds``, even inside a library; 0 cancels that."""
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _failure(error: Exception) -> frames.Frame:
    """Return type and place of an error, but never its message, which may hold content unless it is our own."""
    places = traceback.extract_tb(error.__traceback__)[-6:]
    return {
        "error": type(error).__name__,
        "slow": str(error) if type(error).__name__ == frames.TOO_SLOW else "",
        "where": [f"{Path(place.filename).name}:{place.lineno}" for place in places],
    }


def end_with_parent(parent: int) -> None:
    """Ask Linux to kill this process when its parent dies; elsewhere the closed pipe ends it after its work."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
