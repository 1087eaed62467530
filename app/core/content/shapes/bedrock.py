"""Blocks of Bedrock's Converse, which have no type: the one member that is set says what the block is.

Source: botocore 1.44.5, service model bedrock-runtime (Apache-2.0); only the names of members are taken.
"""

from collections.abc import Mapping
from typing import Final

from app.core.content.leaves import LeafPlace
from app.core.content.shapes.shape import REASONING, Shape, call, document, media, result

UNTYPED: Final[Mapping[str, Shape]] = {
    "image": media("image"),
    "video": media("video"),
    "audio": media("audio"),
    "document": document(),
    "searchResult": document(),
    "toolUse": call("input"),
    "toolResult": result("content"),
    "json": Shape(place=LeafPlace.STRUCTURED),
    "guardContent": Shape(),
    "reasoningContent": REASONING,
    "citationsContent": Shape(),
    "cachePoint": Shape(),
    "toolAddition": Shape(names=frozenset({"name", "serverName"})),
    "toolRemoval": Shape(names=frozenset({"name", "serverName"})),
}
