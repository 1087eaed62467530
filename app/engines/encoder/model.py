"""One loaded model: texts in, unit vectors out; plain and synchronous."""

import hashlib
import json
import platform
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from app.core.errors import UpstreamUnavailableError

WEIGHTS = Path(__file__).with_name("weights")
MODEL = "minilm-l6-int8.onnx"
TOKENIZER = "tokenizer.json"
MANIFEST = "manifest.json"
MAX_TOKENS = 256
"""Most tokens that are read; the model was not trained on longer texts."""
MAX_CHARACTERS = 8_192
"""Most characters that are tokenized: 32 for each token read, so that a megabyte costs no more than a page."""
_TOKENS_AT_ONCE = 256
_NO_LOG = 4
_ROOM_FOR_SPACES = 4
# Grow memory by what is needed: the default doubles it, and without an arena it fragments (30 MB more).
PROVIDER = ("CPUExecutionProvider", {"arena_extend_strategy": "kSameAsRequested"})
_PROCESSOR = Path("/proc/cpuinfo")


class EncoderUnavailableError(UpstreamUnavailableError):
    """The encoder's weights or runtime are not installed, or do not belong to this release."""


class Model:
    """Weights in memory; one call at a time uses one core, and calls may overlap."""

    def __init__(self, folder: Path = WEIGHTS) -> None:
        # A heavy import (60 ms, 40 MB), done on first use, so that a service without an encoder does not pay for it.
        try:
            import onnxruntime  # noqa: PLC0415
            from tokenizers import Tokenizer  # noqa: PLC0415
        except ImportError:
            raise EncoderUnavailableError(
                "The sentence encoder's runtime is not installed: install onnxruntime and tokenizers."
            ) from None
        try:
            self.version = checked(folder)
            self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
            self._session = onnxruntime.InferenceSession(
                str(folder / MODEL), options(onnxruntime), providers=[PROVIDER]
            )
        except EncoderUnavailableError:
            raise
        except Exception:  # noqa: BLE001 the libraries raise bare exceptions for files that they cannot read
            raise EncoderUnavailableError("The sentence encoder's files cannot be loaded.") from None
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._tokenizer.no_padding()

    def batches(self, texts: Sequence[str]) -> Iterator[tuple[list[int], list[bytes]]]:
        """Yield positions in ``texts`` and their vectors, a bounded piece of work at a time.

        Texts of like lengths are computed together, which saves a third for short ones. The vectors are the same
        as one by one, since the graph quantizes each token by itself.
        """
        tokens = [self._tokens(text) for text in texts]
        waiting: list[int] = []
        for position in sorted(range(len(texts)), key=lambda each: len(tokens[each])):
            if waiting and (len(waiting) + 1) * len(tokens[position]) > _TOKENS_AT_ONCE:
                yield waiting, self._vectors([tokens[each] for each in waiting])
                waiting = []
            waiting.append(position)
        if waiting:
            yield waiting, self._vectors([tokens[each] for each in waiting])

    def _tokens(self, text: str) -> list[int]:
        # The tokenizer treats runs of spaces as one and accepts no lone surrogates.
        shown = " ".join(text[: MAX_CHARACTERS * _ROOM_FOR_SPACES].split())[:MAX_CHARACTERS]
        ids: list[int] = self._tokenizer.encode(shown.encode("utf-8", "replace").decode()).ids
        return ids

    def _vectors(self, rows: list[list[int]]) -> list[bytes]:
        import numpy as np  # noqa: PLC0415 - loaded with the model

        ids = np.zeros((len(rows), max(map(len, rows))), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, tokens in enumerate(rows):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        vectors = self._session.run(None, {"ids": ids, "mask": mask})[0]
        return [vector.tobytes() for vector in vectors.astype("<f4", copy=False)]


def checked(folder: Path) -> str:
    """Return the digest of the weights in ``folder`` or refuse files that do not match the manifest."""
    try:
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        for name in (MODEL, TOKENIZER):
            with (folder / name).open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != manifest[name]["sha256"]:
                    raise EncoderUnavailableError(f"The sentence encoder's file {name} is damaged.")
    except OSError:
        raise EncoderUnavailableError("The sentence encoder's weights are not installed.") from None
    digest: str = manifest[MODEL]["sha256"]
    return digest


def options(onnxruntime: Any) -> Any:
    """Return session options: one core, exact results, no logs."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = _NO_LOG
    options.enable_mem_pattern = False  # inputs differ in length
    # Without these instructions, products of 8-bit numbers overflow on x86; the other kernel is exact but slower.
    options.add_session_config_entry("session.x64quantprecision", "0" if _exact_products() else "1")
    return options


def _exact_products() -> bool:
    if platform.machine().lower() not in {"x86_64", "amd64"}:
        return True
    try:
        flags = _PROCESSOR.read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    return "avx512_vnni" in flags or "avx_vnni" in flags
