"""Content blocks of MCP; embedded resources and results of tools are read by the parser itself."""

from collections.abc import Mapping
from typing import Final

from app.core.content.leaves import LeafPlace
from app.core.content.shapes.shape import Shape, call, media

TYPED: Final[Mapping[str, Shape]] = {
    "text": Shape(opens="text"),
    "image": media("image"),
    "audio": media("audio"),
    "resource_link": Shape(places={"uri": LeafPlace.URI}),
    "tool_use": call("input"),
}
