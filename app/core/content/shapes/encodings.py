"""Decode texts that travel as base64, whatever their character set, and encode them again in the same form."""

import base64
import binascii
import codecs
import re
from dataclasses import dataclass
from typing import Final

TEXT_MIME: Final = re.compile(
    r"(?i)text/|message/|application/(?:[\w.+-]+\+)?(?:json|xml|yaml)|image/svg"
    r"|application/(?:(?:x-)?(?:yaml|ndjson|javascript|ecmascript|typescript|sh|csv|www-form-urlencoded|toml|tex|latex)"
    r"|jsonl|json5|sql|rtf|graphql|jwt)"
)
"""Media types whose data is text."""

_MEDIA_MIME: Final = re.compile(r"(?i)(?:image|audio|video|font)/|application/(?:pdf|zip)")
_PDF: Final = b"%PDF"
_DATA_URL: Final = re.compile(r"(?i)data:([\w.+-]+/[\w.+-]+)?((?:;[\w-]+=[^;,]{1,100})*);base64,", re.ASCII)
_CHARSET: Final = re.compile(r"(?i);\s*charset\s*=\s*\"?([\w.:+-]{1,40})")
_DECLARED_IN_TEXT: Final = re.compile(
    rb"(?i)<\?xml[^>]{1,100}?encoding\s*=\s*[\"']([\w.:+-]{1,40})|<meta[^>]{1,100}?charset\s*=\s*[\"']?([\w.:+-]{1,40})"
)
_KNOWN_CHARSET: Final = re.compile(
    r"utf[-_]?(?:8|16|32)(?:[-_]?[lb]e)?|us-ascii|ascii|(?:iso[-_]?8859|latin|cp|windows|koi8|gb|euc|shift|big)[\w-]*",
    re.IGNORECASE,
)
_NO_ORDER: Final = re.compile(r"(?i)utf[-_]?(16|32)")
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]*={0,2}|[A-Za-z0-9_-]*={0,2}")
_BREAK: Final = re.compile(r"[\r\n]+")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SLASH: Final = r"(?:\\?/|_)"
_MEDIA_HEADS: Final = {
    "iVBORw0KGg": "PNG",
    f"{_SLASH}9j{_SLASH}": "JPEG",
    "R0lGOD": "GIF",
    "UklGR": "RIFF: WebP, WAV, AVI",
    "SUkqA|TU0AK": "TIFF",
    "SUQz[AB]": "MP3",
    "T2dnU": "Ogg",
    "ZkxhQ": "FLAC",
    "GkXfo": "WebM",
    "AAAA[A-Za-z0-9+/_-]{2}Z0eX": "MP4",
    "JVBERi0": "PDF",
    "UEsDB": "ZIP: DOCX and the like",
    "0M8R4KGx": "DOC and the like",
    "H4sI": "gzip",
    "QlpoOTFB": "bzip2",
    "N3q8ryc": "7z",
    f"{_SLASH}Td6WFo": "xz",
}
"""How base64 of what engines cannot read begins, by the first bytes of its format."""

_MEDIA_MARKS: Final = (
    *("VBORw0KGg", "9j", "R0lGOD", "UklGR", "SUkqA", "TU0AK", "SUQz", "T2dnU", "ZkxhQ", "GkXfo", "Z0eX"),
    *("JVBERi0", "UEsDB", "0M8R4KGx", "H4sI", "QlpoOTFB", "N3q8ryc", "Td6WFo"),
)
"""What one of these beginnings has in it; to look for words is many times faster than for the pattern."""

_MEDIA_CODE: Final = re.compile(rf"(?<![A-Za-z0-9+/_-])(?:{'|'.join(_MEDIA_HEADS)})[A-Za-z0-9+/_\\-]{{48,}}")
LEAST_MEDIA: Final = 160
"""A smaller picture holds a few pixels."""

_IN_CODE: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_=\\\r\n")
_ENDS_TO_SPACES: Final = bytes(byte if byte in _IN_CODE else ord(" ") for byte in range(256))
_LOOKED_AT: Final = 1_024
_GROUP: Final = 4


@dataclass(frozen=True, slots=True)
class TextCodec:
    """How a text was encoded: what stood before it, its byte order mark, its character set and form of base64."""

    prefix: str
    mark: bytes
    charset: str
    urlsafe: bool
    padded: bool
    line: int
    newline: str
    tail: str

    def encoded(self, text: str) -> str:
        """Return ``text`` in this encoding; characters that it lacks become character references."""
        data = self.mark + text.encode(self.charset, "xmlcharrefreplace")
        code = (base64.urlsafe_b64encode if self.urlsafe else base64.b64encode)(data).decode()
        code = code if self.padded else code.rstrip("=")
        if self.line:
            code = self.newline.join(
                code[start : start + self.line] for start in range(0, len(code), self.line)
            )
        return f"{self.prefix}{code}{self.tail}"


def count_media(text: str) -> int:
    """Return how many pictures, sounds, films, documents and archives stand in ``text`` as base64."""
    if not _has_long_code(text) or not any(mark in text for mark in _MEDIA_MARKS):
        return 0
    return sum(1 for _ in _MEDIA_CODE.finditer(text))


def _has_long_code(text: str) -> bool:
    """Return whether there is a run of characters as long as encoded data; that takes a hundredth of a scan."""
    if len(text) < LEAST_MEDIA:
        return False
    runs = text.encode("utf-8", "surrogatepass").translate(_ENDS_TO_SPACES)
    place = 0
    while place + LEAST_MEDIA <= len(runs):
        end = runs.rfind(b" ", place, place + LEAST_MEDIA)
        if end < 0:
            return True
        place = end + 1
    return False


def decoded_bytes(code: str) -> bytes | None:
    """Return the bytes of ``code``, which may be a data URL or wrapped in lines; None if it is no base64."""
    match = _DATA_URL.match(code)
    compact = _BREAK.sub("", code[match.end() if match else 0 :])
    if _BASE64.fullmatch(compact) is None or not compact:
        return None
    compact = compact.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(compact + "=" * (-len(compact) % _GROUP))
    except (binascii.Error, ValueError):
        return None


def decoded_text(code: str, mime: str | None) -> tuple[str, TextCodec] | None:
    """Return the text in ``code`` and how to encode it again; None if it is no text.

    ``mime`` is the declared media type, which a data URL overrides. Without one that says text, the bytes decide,
    except for images, sound and films.
    """
    match = _DATA_URL.match(code)
    if match is not None:
        mime = f"{match[1] or 'text/plain'}{match[2]}"
    data = decoded_bytes(code)
    if data is None or data.startswith(_PDF):
        return None
    declared = mime is not None and TEXT_MIME.match(mime) is not None
    if not declared and mime is not None and _MEDIA_MIME.match(mime):
        return None
    mark, charset = _charset_of(data, mime if declared else None)
    text = _exact_text(data[len(mark) :], charset)
    if text is None and declared:
        mark, charset = b"", "latin-1"
        text = data.decode("latin-1")
    if text is None or (_CONTROL.search(text) and (not declared or charset == "latin-1")):
        return None
    return text, _codec_of(code, match.end() if match else 0, mark, charset)


def _charset_of(data: bytes, mime: str | None) -> tuple[bytes, str]:
    for mark, charset in _MARKS:
        if data.startswith(mark):
            return mark, charset
    named = _CHARSET.search(mime) if mime else None
    inside = _DECLARED_IN_TEXT.search(data[:_LOOKED_AT])
    declared = named[1] if named else (inside[1] or inside[2]).decode() if inside else ""
    order = _NO_ORDER.fullmatch(declared)
    if order is None and _KNOWN_CHARSET.fullmatch(declared) and _exists(declared):
        return b"", declared
    # Ordinary text in UTF-16 without a mark has a zero byte in most characters.
    zeros = [data[start:_LOOKED_AT:2].count(0) for start in (0, 1)]
    if max(zeros) * _GROUP > min(len(data), _LOOKED_AT) and min(zeros) == 0:
        return b"", "utf-16-be" if zeros[0] else "utf-16-le"
    return b"", f"utf-{order[1]}-le" if order else "utf-8"


def _exists(charset: str) -> bool:
    try:
        b"".decode(charset)
    except LookupError:
        return False
    return True


def _exact_text(data: bytes, charset: str) -> str | None:
    """Return the text of ``data``, or None if encoding it again would not give the same bytes."""
    try:
        text = data.decode(charset)
        return text if text.encode(charset) == data else None
    except UnicodeError:
        return None


def _codec_of(code: str, begin: int, mark: bytes, charset: str) -> TextCodec:
    body = code[begin:]
    stripped = body.rstrip()
    first = _BREAK.search(stripped)
    return TextCodec(
        prefix=code[:begin],
        mark=mark,
        charset=charset,
        urlsafe="-" in stripped or "_" in stripped,
        padded=stripped.endswith("=") or len(_BREAK.sub("", stripped)) % _GROUP == 0,
        line=first.start() if first else 0,
        newline=first[0] if first else "",
        tail=body[len(stripped) :],
    )
