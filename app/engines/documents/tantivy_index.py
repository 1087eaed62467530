"""Index the words of a tenant's chunks on disk with tantivy, for more chunks than SQLite searches quickly.

It can be deleted at any time: it is rebuilt from the database, and only proposes chunks, as the database does.
"""

import json
import shutil
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from app.core.catalog.search_words import search_text

_STATE: Final = "parts.3.json"
"""Change it with the form of what is indexed: a folder without this file is incomplete, and is replaced."""
_FIELDS: Final = ("title", "headings", "text")
_BOOSTS: Final = {"title": 2.0}
_HEAP_BYTES: Final = 32_000_000

Row = tuple[int, int, str, str, str]
"""A chunk: number, part, title, headings and text."""


class TantivyIndex:
    """An index as built; ``parts`` maps the parts in it to their revisions. Safe to use from threads."""

    def __init__(self, folder: Path) -> None:
        # A heavy import, so load it on first use: most installations never have that many documents.
        import tantivy  # noqa: PLC0415

        self.folder = folder
        state = json.loads((folder / _STATE).read_text(encoding="utf-8"))
        self.parts: dict[int, int] = {int(part): revision for part, revision in state.items()}
        self._tantivy = tantivy
        self._index = tantivy.Index.open(str(folder))
        self._searcher = self._index.searcher()

    def covers(self, parts: Mapping[int, int]) -> bool:
        """Return whether the index has these parts at these revisions (revision by part)."""
        return all(self.parts.get(part) == revision for part, revision in parts.items())

    def count_matches(self, parts: Sequence[int], words: Sequence[str]) -> list[int]:
        """Return for each of ``words`` how many chunks of ``parts`` contain it."""
        return [self._count(self._query(parts, [word])) for word in words]

    def match_words(self, parts: Sequence[int], words: Sequence[str], limit: int) -> list[int]:
        """Return the numbers of the chunks of ``parts`` that match best."""
        if not words or not parts:
            return []
        answer = self._searcher.search(self._query(parts, words), limit, count=False)
        return [int(self._searcher.doc(address)["number"][0]) for _, address in answer.hits]

    def _count(self, query: Any) -> int:
        answer: Any = self._searcher.search(query, 1, count=True)
        return int(answer.count)

    def _query(self, parts: Sequence[int], words: Sequence[str]) -> Any:
        tantivy = self._tantivy
        wanted = self._index.parse_query(
            " ".join(f'"{word}"' for word in words if word.isalnum()), list(_FIELDS), field_boosts=_BOOSTS
        )
        part_query = tantivy.Query.term_set_query(self._index.schema, "part", [str(part) for part in parts])
        must = tantivy.Occur.Must
        return tantivy.Query.boolean_query(
            [(must, tantivy.Query.const_score_query(part_query, 0.0)), (must, wanted)]
        )


def build_index(folder: Path, parts: Mapping[int, int], rows: Iterable[Row]) -> None:
    """Write an index into ``folder``, which must be missing or empty; takes seconds, so call it in a thread."""
    import tantivy  # noqa: PLC0415 - as above

    builder = tantivy.SchemaBuilder()
    builder.add_integer_field("number", stored=True)
    builder.add_text_field("part", tokenizer_name="raw", index_option="basic")
    for name in _FIELDS:
        builder.add_text_field(name, tokenizer_name="en_stem", index_option="position")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    index = tantivy.Index(builder.build(), path=str(folder))
    writer = index.writer(heap_size=_HEAP_BYTES, num_threads=1)
    for number, part, title, headings, text in rows:
        document = {"number": number, "part": [str(part)]} | {
            name: search_text(value) for name, value in zip(_FIELDS, (title, headings, text), strict=True)
        }
        writer.add_document(tantivy.Document(**document))
    writer.commit()
    writer.wait_merging_threads()
    # Write this file last: a folder without it is incomplete and is not opened.
    (folder / _STATE).write_text(json.dumps(parts), encoding="utf-8")


class IndexShelf:
    """The indexes of all tenants below one folder; each has its own folder, which is replaced as a whole."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: dict[str, TantivyIndex] = {}
        self._lock = threading.Lock()

    def get(self, tenant: str) -> TantivyIndex | None:
        """Return a tenant's index, opening it if necessary, or None where there is none."""
        with self._lock:
            newest = self._newest(tenant)
            opened = self._open.get(tenant)
            if newest is None:
                self._open.pop(tenant, None)
                return None
            if opened is None or opened.folder != newest:
                opened = self._open[tenant] = TantivyIndex(newest)
            return opened

    def replace(self, tenant: str, parts: Mapping[int, int], rows: Iterable[Row]) -> None:
        """Rebuild a tenant's index and remove the former one."""
        target = self._folder / tenant / uuid4().hex
        before = self._kept(tenant)
        build_index(target, parts, rows)
        for folder in before:
            shutil.rmtree(folder, ignore_errors=True)

    def remove(self, tenant: str) -> None:
        """Remove a tenant's index, so that no deleted text stays in it."""
        with self._lock:
            self._open.pop(tenant, None)
            shutil.rmtree(self._folder / tenant, ignore_errors=True)

    def _kept(self, tenant: str) -> list[Path]:
        folder = self._folder / tenant
        return [entry for entry in folder.iterdir() if entry.is_dir()] if folder.is_dir() else []

    def _newest(self, tenant: str) -> Path | None:
        whole = [version / _STATE for version in self._kept(tenant) if (version / _STATE).is_file()]
        return max(whole, key=lambda path: path.stat().st_mtime_ns).parent if whole else None
