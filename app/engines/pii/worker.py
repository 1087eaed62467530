"""One detection process: reads frames from its standard input, answers on its standard output, ends with its parent.

Started by the pool as ``python -m app.engines.pii.worker <pid of the parent>``. It never writes content anywhere but
into its answers: logging is off, standard error is closed by the pool, an error is reported by type and place.
"""

import ctypes
import gc
import logging
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import BinaryIO

from app.core.engines import DetectionOptions
from app.engines.pii import frames
from app.engines.pii.lean import without_spacy

_PR_SET_PDEATHSIG = 1
_WARM_UP = "Call Jane Roe at +1-202-555-0173 or jane@example.com, SSN 219-09-9999, card 4111 1111 1111 1111, 10.0.0.1."


def main() -> None:
    """Serve frames until the parent closes the pipe or dies."""
    _end_with_parent(int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.disable(logging.CRITICAL)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    try:
        service = Service()
    except Exception as error:  # noqa: BLE001 - whatever it is, the pool must hear of it
        frames.write(answers, _failure(error))
        raise SystemExit(1) from None
    frames.write(answers, {"ready": True})
    serve(service, sys.stdin.buffer, answers)


def serve(service: "Service", questions: BinaryIO, answers: BinaryIO) -> None:
    """Answer every frame of ``questions``."""
    while (frame := frames.read(questions)) is not None:
        try:
            answer = service.answer(frame)
        except Exception as error:  # noqa: BLE001 - the pool turns it into an error of the call; nothing is passed on
            answer = _failure(error)
        del frame
        frames.write(answers, answer)


class Service:
    """The work of one process."""

    def __init__(self) -> None:
        with without_spacy():
            from app.engines.pii.analyzer import Analyzer  # noqa: PLC0415 - Presidio: after the set-up
            from app.engines.pii.carrying import carry, names_in  # noqa: PLC0415
            from app.engines.pii.languages import warnings_for  # noqa: PLC0415

        self._analyzer = Analyzer()
        self._warnings_for = warnings_for
        self._names_in = names_in
        self._carry_names = carry
        for strict in (False, True):
            self._analyzer.analyze(_WARM_UP, DetectionOptions(strict=strict))
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000, 20, 50)

    def answer(self, frame: frames.Frame) -> frames.Frame:
        """Return the answer to one question."""
        match frame["ask"]:
            case "scan":
                return self._scan(frame)
            case "carry":
                return self._carry(frame)
            case "operate":
                return self._operate(frame)
            case _:
                raise LookupError("unknown question")

    def _scan(self, frame: frames.Frame) -> frames.Frame:
        options = frames.given_options(frame["options"])
        texts: list[str] = frame["texts"]
        found = [self._analyzer.scan(text, options) for text in texts]
        names = self._names_in(texts, found)
        if frame["alone"]:
            found = self._carry_names(texts, found, names, options)
        warnings = self._warnings_for(texts, options.language)
        return {"spans": frames.raw_spans(found), "names": names, "warnings": warnings}

    def _carry(self, frame: frames.Frame) -> frames.Frame:
        options = frames.given_options(frame["options"])
        found = frames.given_spans(frame["spans"])
        return {"spans": frames.raw_spans(self._carry_names(frame["texts"], found, frame["names"], options))}

    def _operate(self, frame: frames.Frame) -> frames.Frame:
        from app.engines.pii.operators import apply_operator  # noqa: PLC0415 - Presidio's anonymizer: first use only

        return {
            "texts": [
                apply_operator(frame["mode"], text, label, frame["key"]) for label, text in frame["items"]
            ]
        }


def _failure(error: Exception) -> frames.Frame:
    """Return type and place of an error, never its message: that may hold content."""
    places = traceback.extract_tb(error.__traceback__)[-6:]
    return {
        "error": type(error).__name__,
        "where": [f"{Path(place.filename).name}:{place.lineno}" for place in places],
    }


def _end_with_parent(parent: int) -> None:
    """Ask Linux to kill this process when its parent dies; elsewhere the closed pipe ends it after its work."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
