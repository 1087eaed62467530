"""Write our OpenAPI document to standard output: ``python clients/typescript/document.py > openapi.json``."""

import json
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))


def document() -> dict[str, object]:
    """Return the document of the service with its default settings."""
    from app.main import create_app
    from app.settings import load

    with tempfile.TemporaryDirectory() as folder:
        os.environ["SLUICE_DATABASE__URL"] = f"sqlite:///{folder}/sluice.db"
        asgi = create_app(load())
        while not hasattr(asgi, "openapi"):
            asgi = next(getattr(asgi, name) for name in ("app", "_app", "inner") if hasattr(asgi, name))
        described: dict[str, object] = asgi.openapi()
        return described


if __name__ == "__main__":
    json.dump(document(), sys.stdout, indent=1)
