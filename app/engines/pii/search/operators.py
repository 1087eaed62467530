"""Apply Presidio's anonymizer operators for the redaction modes that need no vault: mask, hash, remove."""

import hashlib
import hmac
from typing import Final

MODES: Final = frozenset({"mask", "hash", "remove"})
"""The modes that `apply_operator` supports; the vault or the policy handles the others."""

_DIGEST_CHARACTERS = 32
_LEAST_KEY = 16


def apply_operator(mode: str, text: str, label: str, key: bytes | None = None) -> str:
    """Return the replacement of ``text`` under ``mode``; pure and one-way.

    ``mask`` returns as many stars, ``remove`` nothing, ``hash`` ``<LABEL:hex>`` with an HMAC-SHA-256 under ``key`` (at
    least 16 bytes), so that equal values stay equal and cannot be guessed without the key. Raises ValueError for an
    unknown mode or a missing key.
    """
    # Presidio's anonymizer loads its analyzer, so only a worker, which has loaded it anyway, calls this.
    from presidio_anonymizer.operators import Custom, Mask, Operator, Redact  # noqa: PLC0415

    operators: dict[str, tuple[Operator, dict[str, object]]] = {
        "mask": (Mask(), {"masking_char": "*", "chars_to_mask": len(text), "from_end": False}),
        "remove": (Redact(), {}),
        "hash": (Custom(), {"lambda": lambda value: keyed_hash(value, label, key)}),
    }
    if mode not in operators:
        raise ValueError("unknown redaction mode")
    operator, parameters = operators[mode]
    operator.validate(parameters)
    return str(operator.operate(text, parameters))


def keyed_hash(text: str, label: str, key: bytes | None) -> str:
    """Return ``<LABEL:hex>``, the keyed digest of ``text`` with that label."""
    if key is None or len(key) < _LEAST_KEY:
        raise ValueError("the mode hash needs a key of at least 16 bytes")
    message = label.encode() + b"\0" + text.encode("utf-8", "surrogatepass")
    return f"<{label}:{hmac.digest(key, message, hashlib.sha256).hex()[:_DIGEST_CHARACTERS]}>"
