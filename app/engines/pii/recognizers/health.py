# ruff: noqa: RUF001 - cues are spelled as in texts
"""Recognize identifiers of patients and providers: records, health plans, licences, biometric templates."""

from presidio_analyzer import EntityRecognizer

from app.engines.pii.recognizers.cues import NUMBER, CuedRecognizer, cued

_SCORE = 0.65
_IN_PAIRS = r"\d{2,3}-\d{2}-\d{2,3}"
"""The format of hospital record numbers; in other places it is a date."""

_RECORD = (
    *(
        "medical rec(?:ord)?s?",
        "med\\.? rec(?:ord)?s?",
        "patient",
        "patient record",
        "chart",
        "hospital",
        "hosp\\.?",
        "health record",
    ),
    *(
        "clinic(?:al)? record",
        "emr",
        "ehr",
        "encounter",
        "admission",
        "inpatient",
        "outpatient",
        "record",
        "specimen",
        "accession",
    ),
)
_RECORD_WORDS = (
    *(
        "mrn",
        "medical record number",
        "patient(?:en)? ?nummer",
        "patienten ?(?:nr|id)",
        "fall ?nummer",
        "numéro (?:de )?patient",
    ),
    *(
        "numéro de dossier(?: médical)?",
        "dossier médical",
        "historia clínica",
        "número de paciente",
        "id (?:de )?paciente",
    ),
    *(
        "número de historia(?: clínica)?",
        "cartella clinica",
        "numero paziente",
        "prontuário",
        "patiënt ?nummer",
        "dossier ?nummer",
    ),
    *(
        "uhid",
        "ipp",
        "nhc",
        "(?:record|chart|file|case) (?:number|no\\.?|id) of (?:(?:the|our|this) )?patient",
    ),
)
_PLAN = (
    *(
        "member",
        "membership",
        "subscriber",
        "health plan",
        "plan member",
        "beneficiary",
        "health plan beneficiary",
        "insured",
    ),
    *(
        "health insurance",
        "medical insurance",
        "insurance",
        "insurance member",
        "policy ?holder",
        "group",
        "group plan",
    ),
    *("enrollee", "medicaid", "medicare", "coverage", "health card", "ehic"),
)
_PLAN_WORDS = (
    *(
        "versicherten ?nummer",
        "versicherten ?nr",
        "krankenversicherten ?nummer",
        "mitglieds ?nummer",
        "krankenkassen ?nummer",
    ),
    *(
        "numéro d['’]assuré",
        "numéro d['’]adhérent",
        "número de afiliado",
        "número de asegurado",
        "tarjeta sanitaria",
    ),
    *(
        "tessera sanitaria",
        "número do beneficiário",
        "cartão nacional de saúde",
        "polisnummer zorg",
        "verzekerden ?nummer",
    ),
)
_LICENSED = (
    *(
        "licen[cs]e",
        "certificate",
        "certification",
        "permit",
        "registration",
        "bar",
        "notary",
        "dea registration",
        "credential",
    ),
    "(?:medical|nursing|professional|pharmacy|pharmacist|pilot|business|firearms?|gun|state) licen[cs]e",
    "(?:driver['’]?s?|driving) licen[cs]e",
    *("birth certificate", "marriage certificate", "death certificate", "diploma"),
)
_LICENSED_WORDS = (
    *(
        "driver['’]?s? licen[cs]e",
        "driving licen[cs]e",
        "medical licen[cs]e",
        "führerschein(?: ?nummer)?",
        "approbations ?nummer",
    ),
    *(
        "permis de conduire",
        "permiso de conducir",
        "carnet de conducir",
        "licencia de conducir",
        "patente di guida",
    ),
    *(
        "carteira de motorista",
        "carta de condução",
        "cnh",
        "rijbewijs(?: ?nummer)?",
        "zertifikats ?nummer",
        "urkunden ?nummer",
    ),
    *("numéro de permis", "número de licencia", "numero patente", "bescheinigungs ?nummer"),
)
_BODY = (
    *(
        "fingerprint",
        "finger print",
        "thumb ?print",
        "palm ?print",
        "biometrics?",
        "face",
        "facial",
        "voice ?print",
        "voice",
        "retina",
    ),
    *("iris", "hand geometry", "dna", "gait"),
)
_TAKEN = "(?:template|scan|profile|sample|record|enrol?lment|print|vector|hash)"


def health_recognizers() -> list[EntityRecognizer]:
    """Return the recognizers of this module."""
    body = [*_BODY, *(f"{part} {_TAKEN}" for part in _BODY)]
    return [
        CuedRecognizer(
            "MedicalRecordNumberRecognizer",
            "MEDICAL_RECORD_NUMBER",
            [
                (cued(_RECORD, rf"{NUMBER}|{_IN_PAIRS}", noun=True), _SCORE),
                (cued(_RECORD_WORDS, rf"{NUMBER}|{_IN_PAIRS}"), 0.75),
                (r"(?<![\w-])(?P<value>MRN[-#]?\d{5,10})(?![\w-])", 0.75),
            ],
        ),
        CuedRecognizer(
            "HealthPlanNumberRecognizer",
            "HEALTH_PLAN_NUMBER",
            [(cued(_PLAN, NUMBER, noun=True), _SCORE), (cued(_PLAN_WORDS, NUMBER), _SCORE)],
        ),
        CuedRecognizer(
            "LicenseNumberRecognizer",
            "LICENSE_NUMBER",
            [(cued(_LICENSED, NUMBER, noun=True), _SCORE), (cued(_LICENSED_WORDS, NUMBER), _SCORE)],
        ),
        CuedRecognizer(
            "BiometricIdentifierRecognizer", "BIOMETRIC_ID", [(cued(body, NUMBER, noun=True), 0.7)]
        ),
    ]
