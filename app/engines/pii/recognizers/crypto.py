"""Recognize wallet addresses: those with a checksum anywhere, others only after a cue."""

import hashlib
import re

from presidio_analyzer import EntityRecognizer

from app.engines.pii.recognizers.cues import CuedRecognizer, cued
from app.engines.pii.recognizers.patterns import ExactPatterns

_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_PLACES = {letter: place for place, letter in enumerate(_BASE58)}
_CHECKED_BYTES, _CHECK_BYTES = 25, 4
_WALLET = (
    *(
        "(?:crypto|wallet|deposit|withdrawal|payout|receiving) address",
        "wallet",
        "solana",
        "sol",
        "phantom",
        "xrp",
        "ripple",
        "cardano",
    ),
    *(
        "ada",
        "tron",
        "trx",
        "dogecoin",
        "litecoin",
        "btc",
        "bitcoin",
        "(?:btc|sol|xrp|trx|ltc|doge|xmr|ada) address",
        "monero",
        "polkadot",
    ),
)
_ANY_ADDRESS = r"(?-i:(?=[1-9A-HJ-NP-Za-km-z]{0,20}\d)[1-9A-HJ-NP-Za-km-z]{25,95}|addr1[a-z0-9]{50,100})"


def crypto_recognizers() -> list[EntityRecognizer]:
    """Return the recognizers of this module."""
    return [
        EthereumRecognizer(),
        Base58AddressRecognizer(),
        CuedRecognizer("WalletRecognizer", "CRYPTO", [(cued(_WALLET, _ANY_ADDRESS), 0.6)]),
    ]


class EthereumRecognizer(ExactPatterns):
    """Find addresses of Ethereum-like chains, Litecoin in Bech32, and Monero, by their form."""

    def __init__(self) -> None:
        super().__init__(
            "CRYPTO",
            [
                (r"(?<![\w])0x[0-9a-f]{40}(?!\w)", 0.6),
                (r"(?<!\w)ltc1[02-9ac-hj-np-z]{39,59}(?!\w)", 0.7),
                (r"(?-i:(?<!\w)[48][0-9AB][1-9A-HJ-NP-Za-km-z]{93}(?:[1-9A-HJ-NP-Za-km-z]{11})?(?!\w))", 0.7),
            ],
            ["wallet", "ethereum", "eth", "crypto"],
        )


class Base58AddressRecognizer(ExactPatterns):
    """Find addresses in Base58Check (Bitcoin, Litecoin, Dogecoin, Dash, Tron and others) by their checksum."""

    gate = re.compile(r"[1-9A-HJ-NP-Za-km-z]{26}")

    def __init__(self) -> None:
        super().__init__(
            "CRYPTO",
            [(r"(?-i:(?<![A-Za-z0-9])[13LMDATXtn2m][1-9A-HJ-NP-Za-km-z]{25,34}(?![A-Za-z0-9]))", 0.3)],
        )

    def validate_result(self, pattern_text: str) -> bool:
        """Return whether the last four bytes are the checksum of the others."""
        number = 0
        for letter in pattern_text:
            number = number * 58 + _PLACES[letter]
        if number >> 8 * _CHECKED_BYTES:
            return False
        raw = number.to_bytes(_CHECKED_BYTES)
        body, check = raw[:-_CHECK_BYTES], raw[-_CHECK_BYTES:]
        return hashlib.sha256(hashlib.sha256(body).digest()).digest()[:_CHECK_BYTES] == check
