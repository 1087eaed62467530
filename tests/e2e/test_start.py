"""What a start loads: the libraries of engines come with their first use, and not before."""

import json
import os
import subprocess
import sys

STARTED = """
import asyncio, json, sys
from app.main import create_app
from app.settings import load

async def started(app):
    asked, told = asyncio.Queue(), asyncio.Queue()
    await asked.put({"type": "lifespan.startup"})
    life = asyncio.create_task(app({"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}, asked.get, told.put))
    said = await told.get()
    loaded = sorted({name.partition(".")[0] for name in sys.modules})
    await asked.put({"type": "lifespan.shutdown"})
    await life
    return said["type"], loaded

print(json.dumps(asyncio.run(started(create_app(load())))))
"""
IMPORTED = """
import gc, json, sys
from app.cli import root

def run(_arguments):
    before = gc.get_stats()
    import app.main
    print(json.dumps([then["collections"] - now["collections"] for now, then in zip(before, gc.get_stats())]))
    return 0

root.run = run
from app.cli import main
main()
"""
OF_ENGINES = {
    *("ahocorasick", "docx", "lxml", "numpy", "onnxruntime", "pypdf", "re2", "selectolax", "spacy"),
    *("tantivy", "tokenizers", "tree_sitter"),
}


def test_a_service_that_is_ready_has_loaded_no_library_of_its_engines(tmp_path):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SLUICE_")}
    environment |= {
        "SLUICE_DATABASE__URL": f"sqlite:///{tmp_path}/sluice.db",
        "SLUICE_KEYS__FILE": str(tmp_path / "keys"),
    }
    done = subprocess.run(
        [sys.executable, "-c", STARTED],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    said, loaded = json.loads(done.stdout.splitlines()[-1])
    assert said == "lifespan.startup.complete"
    assert "sqlalchemy" in loaded
    assert not OF_ENGINES & set(loaded)


def test_a_command_looks_for_cycles_but_a_few_times_while_it_imports(tmp_path):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SLUICE_")}
    command = [sys.executable, "-c", IMPORTED]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)
    collections = json.loads(done.stdout)
    assert sum(collections) < 50, "by default there are six hundred"
