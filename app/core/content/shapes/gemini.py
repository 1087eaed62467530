"""Parts of Gemini's contents, which have no type: the members that are set say what the part is.

Source: google-genai 3.4.0 (Apache-2.0); only the names of members are taken. Snake case is accepted on input.
"""

import re
from collections.abc import Mapping
from typing import Final

from app.core.content.leaves import LeafPlace
from app.core.content.shapes.shape import Shape, call, media, result

_RESPONSE: Final = Shape(
    place=LeafPlace.TOOL_RESULT,
    places={"response": LeafPlace.STRUCTURED},
    names=frozenset({"name"}),
)

_PARTS: Final[Mapping[str, Shape]] = {
    "inlineData": media("blob"),
    "fileData": media("file"),
    "functionCall": call("args", "partialArgs"),
    "functionResponse": _RESPONSE,
    "executableCode": call("code", tool=None),
    "codeExecutionResult": result("output"),
    "toolCall": call("args", tool=None),
    "toolResponse": _RESPONSE,
    "videoMetadata": Shape(),
    "partMetadata": Shape(),
    "mediaResolution": Shape(),
    "thought": Shape(),
    "thoughtSignature": Shape(),
}


def _in_snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


UNTYPED: Final[Mapping[str, Shape]] = {
    **_PARTS,
    **{_in_snake_case(name): shape for name, shape in _PARTS.items()},
}
