"""Pictures, sounds, films and files that stand as base64 in any text are counted, since nobody can scan them."""

import base64
import json

import pytest

from app.core.content.context import Context

REST = bytes(range(256))
FILES = {
    "png": b"\x89PNG\r\n\x1a\n",
    "jpeg": b"\xff\xd8\xff\xe0\x00\x10JFIF\x00",
    "jpeg of a camera": b"\xff\xd8\xff\xe1\x00\x18Exif\x00",
    "gif": b"GIF89a",
    "webp": b"RIFF\x24\x08\x00\x00WEBPVP8 ",
    "tiff": b"II*\x00\x08\x00\x00\x00",
    "mp3": b"ID3\x04\x00\x00\x00\x00",
    "ogg": b"OggS\x00\x02\x00\x00",
    "flac": b"fLaC\x00\x00\x00\x22",
    "webm": b"\x1aE\xdf\xa3\x01\x00\x00\x00",
    "mp4": b"\x00\x00\x00\x20ftypisom",
    "pdf": b"%PDF-1.7\n",
    "zip": b"PK\x03\x04\x14\x00",
    "gzip": b"\x1f\x8b\x08\x00\x00\x00",
    "7z": b"7z\xbc\xaf\x27\x1c",
    "bzip2": b"BZh91AY&SY",
    "png of another writer": b"\x89PNG\r\n\x1a\n\xff",
    "xz": b"\xfd7zXZ\x00\x00",
    "doc": b"\xd0\xcf\x11\xe0\xa1\xb1",
}
"""How files begin, by their own formats."""


def counted(text: str) -> int:
    return Context.parse([{"role": "user", "content": text}]).unscanned.get("blob", 0)


@pytest.mark.parametrize("kind", FILES)
def test_a_file_in_a_text_is_counted_however_it_is_written(kind: str) -> None:
    data = FILES[kind] + REST
    code = base64.b64encode(data).decode()
    forms = {
        "alone": code,
        "in prose": f"This is it: {code}, as you asked.",
        "data url": f"![scan](data:application/octet-stream;base64,{code})",
        "json": json.dumps({"note": "x", "content": code}),
        "escaped slashes": json.dumps({"content": code}).replace("/", "\\/"),
        "lines": base64.encodebytes(data).decode(),
        "for addresses": base64.urlsafe_b64encode(data).decode(),
        "glued": f"\u65e5\u672c{code}\u8a9e",
    }
    assert {form: counted(text) for form, text in forms.items()} == dict.fromkeys(forms, 1)
    assert counted(f"{code} and {code}") == 2


@pytest.mark.parametrize(
    "text",
    [
        "UklGR, H4sIA and iVBORw0KGgo are how base64 of files begins. " * 5,
        "a" * 2000,
        base64.b64encode(b"An ordinary text that somebody has encoded for no reason at all. " * 4).decode(),
        "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6Ik5vYm9keSJ9" * 4,
        "x" + base64.b64encode(FILES["png"] + REST).decode(),
        base64.b64encode(FILES["png"] + bytes(20)).decode(),
        json.dumps({f"member_{number}": f"/9j/4 {number}" for number in range(100)}, separators=(",", ":")),
    ],
)
def test_what_only_looks_like_a_file_is_not_counted(text: str) -> None:
    assert counted(text) == 0
