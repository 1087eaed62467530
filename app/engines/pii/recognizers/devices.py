# ruff: noqa: RUF001 - cues are spelled as in texts
"""Recognize identifiers of devices, SIM cards and vehicles."""

import re

from presidio_analyzer import EntityRecognizer

from app.engines.pii.recognizers.cues import NUMBER, CuedRecognizer, cued
from app.engines.pii.recognizers.patterns import ExactPatterns

_SERIAL = (
    *(
        "serial",
        "device",
        "device serial",
        "hardware",
        "machine",
        "implant",
        "pacemaker",
        "handset",
        "equipment",
        "sim(?: card)?",
    ),
    *("asset", "terminal", "chip", "advertising", "android", "apple device", "vendor"),
)
_SERIAL_WORDS = (
    *(
        "s/n",
        "serial number",
        "seriennummer",
        "serien nr",
        "geräte(?: ?nummer| ?id| ?kennung)",
        "numéro de série",
        "número de serie",
    ),
    *(
        "numero di serie",
        "número de série",
        "serienummer",
        "imsi",
        "iccid",
        "meid",
        "esn",
        "udid",
        "idfa",
        "gaid",
        "aaid",
        "idfv",
    ),
    *("asset tag", "device identifier", "matricola (?:del )?dispositivo"),
)
_IMEI = ("imei(?:sv)?", "imei[12]", "device imei")
_VEHICLE = (
    *(
        "vin",
        "vehicle identification",
        "vehicle id",
        "fahrgestell ?nummer",
        "fahrzeug ?identifizierungs ?nummer",
        "fin",
        "chassis",
    ),
    *(
        "numéro de châssis",
        "número de bastidor",
        "bastidor",
        "numero (?:di )?telaio",
        "telaio",
        "número do chassi",
        "chassi",
    ),
    *("chassisnummer", "frame"),
)
# Each separator is an alternative of its own: a pattern with a set after one letter would be tried at every "s".
_SN = ("sn", "s/n", r"s[_.\-]n", r"s\.\x20n", r"s[\x20\n]n")
_PLATED = (
    *(
        "(?:licen[cs]e|number|registration|vehicle|car|tag) plates?",
        "plate (?:number|no|id|#)",
        "plates?",
        "amtliches kennzeichen",
    ),
    *(
        "kfz ?kennzeichen",
        "autokennzeichen",
        "kennzeichen",
        "nummernschild",
        "matrícula",
        "patente del vehículo",
        "placas?",
    ),
    *(
        "plaque(?: d['’]immatriculation)?",
        "immatriculation",
        "immatriculé(?:e)?",
        "targa",
        "kenteken",
        "vehicle reg(?:istration)?",
    ),
    *(
        "(?:car|vehicle) (?:reg|registration|tag)",
        "reg(?:istration)? (?:number|no|plate|mark)",
        "tag (?:number|no)",
        "vrm",
        "vrn",
    ),
)
_PLATE = r"(?-i:(?=[A-ZÄÖÜ \-]{0,8}\d)(?=[A-ZÄÖÜ0-9 \-]{4})[A-ZÄÖÜ0-9]{1,8}(?:[ \-]{1,3}[A-Z0-9]{1,5}){0,3})"
_UUID = r"[0-9A-F]{8}(?:-[0-9A-F]{4}){3}-[0-9A-F]{12}"
_WEIGHTS = (8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2)
_VALUES = dict(
    zip(
        "0123456789ABCDEFGHJKLMNPRSTUVWXYZ",
        (*range(10), *range(1, 9), *range(1, 6), 7, 9, *range(2, 10)),
        strict=True,
    )
)
_X = 10


def device_recognizers() -> list[EntityRecognizer]:
    """Return the recognizers of this module."""
    return [
        CuedRecognizer(
            "DeviceIdentifierRecognizer",
            "DEVICE_ID",
            [
                (cued(_SERIAL, rf"{_UUID}|{NUMBER}", noun=True), 0.6),
                (cued(_SERIAL_WORDS, rf"{_UUID}|{NUMBER}"), 0.65),
                (cued(_SN, NUMBER, firm=True), 0.6),
                (cued(_IMEI, r"\d{2}[ \-/]?\d{6}[ \-/]?\d{6}(?:[ \-/]?\d{1,2})?|\d{8}[ \-/]?\d{6}"), 0.75),
            ],
        ),
        VinRecognizer(),
        CuedRecognizer(
            "VehicleNumberRecognizer",
            "VIN",
            [(cued(_VEHICLE, r"(?=[A-Z]{0,12}\d)[A-HJ-NPR-Z0-9]{11,17}"), 0.7)],
        ),
        CuedRecognizer("LicensePlateRecognizer", "LICENSE_PLATE", [(cued(_PLATED, _PLATE), 0.6)]),
    ]


class VinRecognizer(ExactPatterns):
    """Find vehicle identification numbers by their check digit (ISO 3779 as used in North America)."""

    gate = re.compile(r"[A-Za-z0-9]{17}")

    def __init__(self) -> None:
        super().__init__(
            "VIN",
            [
                (
                    r"(?-i:(?<![\w-])(?=[A-Z0-9]{0,2}[A-Z])[A-HJ-NPR-Z0-9]{8}[0-9X][A-HJ-NPR-Z0-9]{4}\d{4}(?![\w-]))",
                    0.5,
                )
            ],
        )

    def validate_result(self, pattern_text: str) -> bool:
        """Return whether the check digit is right."""
        total = sum(weight * _VALUES[letter] for weight, letter in zip(_WEIGHTS, pattern_text, strict=True))
        return pattern_text[8] == ("X" if total % 11 == _X else str(total % 11))
