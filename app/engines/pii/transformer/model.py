"""Find people, places, organizations and addresses with the fine-tuned sentence encoder; slower than `tagger`."""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from app.core.errors import UpstreamUnavailableError
from app.engines.encoder import model as encoder
from app.engines.pii.names.companies import people_apart
from app.engines.pii.names.decoding import TAGS, Floats, TaggedSpan, decoded, joined_addresses
from app.engines.pii.names.words import Gazetteer
from app.engines.pii.transformer.pieces import FIRST, LAST, LOWER, Cutter
from app.engines.pii.transformer.windows import TokenWindow, windows

WEIGHTS = Path(__file__).with_name("weights")
MODEL = "names-int8.onnx"
LISTS = "lists.npz"
MANIFEST = "manifest.json"
HIDDEN = 384

_CERTAINLY_NO_NAME = 0.9
_WINDOWS_AT_ONCE = 64
_PIECES_AT_ONCE = 512

Ids = npt.NDArray[np.int64]
Network = Callable[[Floats, Ids, Ids, Ids], Floats]
"""Map the vectors, outlines and lists of word-pieces and the mask of those present to a row of tag scores each."""


class TransformerUnavailableError(UpstreamUnavailableError):
    """The accurate tagger's weights or runtime are missing, or are not those of this release."""


class TransformerTagger:
    """Tag names in text; deterministic, linear in the length of the text; not safe for use by two threads at once."""

    engine_name = "transformer"

    def __init__(self, network: Network, words: "WordVectors", cutter: Cutter) -> None:
        self._network = network
        self._words = words
        self._cutter = cutter
        self._lists = Gazetteer(cutter.lists)

    @classmethod
    def embedded(cls, folder: Path | None = None) -> "TransformerTagger":
        """Load the weights from the package or from ``folder``; word vectors are those of the sentence encoder."""
        # Heavy, so imported on first use: a service without accurate names does not pay for it.
        try:
            import onnxruntime  # noqa: PLC0415
            from tokenizers import Tokenizer  # noqa: PLC0415
        except ImportError:
            raise TransformerUnavailableError(
                "The accurate tagger's runtime is not installed: install onnxruntime and tokenizers."
            ) from None
        folder = folder or WEIGHTS
        about = _checked(folder)
        try:
            session = onnxruntime.InferenceSession(
                str(folder / MODEL), encoder.options(onnxruntime), providers=[encoder.PROVIDER]
            )
            with np.load(folder / LISTS, allow_pickle=False) as stored:
                lists = dict(zip(stored["keys"].tolist(), stored["bits"].tolist(), strict=True))
            tokenizer = Tokenizer.from_file(str(encoder.WEIGHTS / encoder.TOKENIZER))
            words = WordVectors(encoder.WEIGHTS / encoder.MODEL, about["words"])
        except Exception:  # noqa: BLE001 - the libraries raise bare exceptions for unreadable files
            raise TransformerUnavailableError("The accurate tagger's files cannot be loaded.") from None

        def network(vectors: Floats, outlines: Ids, listed: Ids, mask: Ids) -> Floats:
            inputs = {"vectors": vectors, "outlines": outlines, "lists": listed, "mask": mask}
            scores: Floats = session.run(None, inputs)[0]
            return scores

        return cls(network, words, Cutter(tokenizer, lists))

    def __call__(self, text: str, threshold: float = 0.5) -> list[TaggedSpan]:
        """Return the findings of at least ``threshold``, sorted, without overlap.

        The threshold also shifts the balance between a name and no name, so a low threshold finds more.
        """
        positions, rows = [np.empty(0, np.intp)], [np.empty((0, len(TAGS)), np.float32)]
        offsets: list[tuple[int, int]] = []
        for window, probabilities in self.probabilities(text):
            hot = np.flatnonzero(probabilities[:, 0] < _CERTAINLY_NO_NAME)
            positions.append(hot + window.begin)
            rows.append(probabilities[hot])
            offsets += [window.tokens[window.first + place][:2] for place in hot.tolist()]
        spans = decoded(np.concatenate(positions), np.concatenate(rows), offsets, text, threshold)
        return people_apart(text, joined_addresses(text, spans), self._lists)

    def probabilities(self, text: str) -> Iterator[tuple[TokenWindow, Floats]]:
        """Yield windows in order, each with a row of tag probabilities for every token that it tags.

        Windows of similar lengths are computed together; windows without a letter are skipped.
        """
        waiting = (window for window in windows(text, self._cutter) if window.may_name)
        while block := list(islice(waiting, _WINDOWS_AT_ONCE)):
            rows_of_windows: dict[int, Floats] = {}
            for places in _batches([window.size for window in block]):
                rows = self._probabilities_of([block[place] for place in places])
                rows_of_windows.update(zip(places, rows, strict=True))
            yield from ((window, rows_of_windows[place]) for place, window in enumerate(block))

    def _probabilities_of(self, token_windows: Sequence[TokenWindow]) -> list[Floats]:
        length = max(window.size for window in token_windows) + 2
        ids, outlines, lists, mask = np.zeros((4, len(token_windows), length), np.int64)
        firsts: list[list[int]] = []
        for row, window in enumerate(token_windows):
            row_ids, row_outlines, row_lists, starts = [FIRST], [0], [0], []
            for token in window.tokens:
                count = len(token.ids)
                starts.append(len(row_ids))
                row_ids += token.ids
                row_outlines += [2 * token.outline + token.spaced] * count
                row_lists += [2 * token.lists + (token.outline > LOWER) if token.lists else 0] * count
            size = len(row_ids)
            ids[row, :size] = row_ids
            ids[row, size] = LAST
            outlines[row, :size] = row_outlines
            lists[row, :size] = row_lists
            mask[row, : size + 1] = 1
            firsts.append(starts[window.first : window.last])
        scores = self._network(self._words.vectors(ids), outlines, lists, mask)
        return [_softmax(scores[row, starts]) for row, starts in enumerate(firsts)]


class WordVectors:
    """The 8-bit vectors of the encoder's vocabulary, read directly from its file so that no copy is needed."""

    def __init__(self, file: Path, places: dict[str, int]) -> None:
        rows = places["rows"]
        self._values = np.memmap(file, np.int8, "r", places["values"], (rows, HIDDEN))
        self._scales = np.array(np.memmap(file, "<f4", "r", places["scales"], (rows, 1)))

    def vectors(self, ids: Ids) -> Floats:
        """Return the vectors of word-pieces."""
        vectors: Floats = self._values[ids].astype(np.float32)
        vectors *= self._scales[ids]
        return vectors


def _batches(sizes: Sequence[int]) -> Iterator[list[int]]:
    """Yield batches of positions in ``sizes``, grouped by similar size, each with a bounded amount of work."""
    waiting: list[int] = []
    for place in sorted(range(len(sizes)), key=sizes.__getitem__):
        if waiting and (len(waiting) + 1) * sizes[place] > _PIECES_AT_ONCE:
            yield waiting
            waiting = []
        waiting.append(place)
    if waiting:
        yield waiting


def _softmax(scores: Floats) -> Floats:
    scores = scores - scores.max(axis=1, keepdims=True)
    np.exp(scores, out=scores)
    shares: Floats = scores / scores.sum(axis=1, keepdims=True)
    return shares


def available() -> bool:
    """Return whether the runtime and the weights of this release are installed, without loading them."""
    if not all(find_spec(module) for module in ("onnxruntime", "tokenizers")):
        return False
    try:
        _checked(WEIGHTS)
    except UpstreamUnavailableError:
        return False
    return True


def _checked(folder: Path) -> dict[str, Any]:
    """Return the manifest of the weights in ``folder``; raise if a file does not match the manifest."""
    try:
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        for name in (MODEL, LISTS):
            with (folder / name).open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != manifest[name]["sha256"]:
                    raise TransformerUnavailableError(f"The accurate tagger's file {name} is damaged.")
    except OSError:
        raise TransformerUnavailableError("The accurate tagger's weights are not installed.") from None
    if encoder.checked(encoder.WEIGHTS) != manifest[MODEL]["words"]["encoder"]:
        raise TransformerUnavailableError("The accurate tagger was trained on another sentence encoder.")
    about: dict[str, Any] = manifest[MODEL]
    return about
