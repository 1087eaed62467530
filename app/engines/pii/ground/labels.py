"""Map Presidio's entity types to the short labels that callers see, and define when each counts as a finding."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from app.core.contracts.engines import DetectionOptions

Need = Literal["no", "bare", "yes"]
"""Whether a finding needs a context word nearby: never, only if it consists of digits, always."""

CUSTOM: Final = "CUSTOM"
OPAQUE: Final = "OPAQUE"
PERSON: Final = "PERSON"

NAME_LABELS: Final = frozenset({"PERSON", "LOCATION", "ORGANIZATION", "ADDRESS"})
"""Labels that the name tagger finds; every other label comes from a pattern."""

_STRICT = 0.3


@dataclass(frozen=True, slots=True)
class LabelRule:
    """How findings of one entity type are treated.

    ``standard`` and ``strict`` are the minimum scores. If ``standard`` is None, findings count only in *strict* mode,
    or when the caller names the label.
    """

    label: str
    standard: float | None = 0.4
    strict: float = _STRICT
    context: Need = "no"


def _with_context(label: str) -> LabelRule:
    return LabelRule(label, context="yes")


RULES: Final[dict[str, LabelRule]] = {
    "PERSON": LabelRule("PERSON", 0.45),
    "US_SSN": LabelRule("SSN"),
    "EMAIL_ADDRESS": LabelRule("EMAIL"),
    "CREDIT_CARD": LabelRule("CARD"),
    "IBAN_CODE": LabelRule("IBAN"),
    "PHONE_NUMBER": LabelRule("PHONE"),
    "IP_ADDRESS": LabelRule("IP"),
    "ADDRESS": LabelRule("ADDRESS", 0.5),
    "SECRET": LabelRule("SECRET", None),
    "CRYPTO": LabelRule("CRYPTO"),
    "MEDICAL_LICENSE": LabelRule("MEDICAL"),
    "US_PASSPORT": _with_context("PASSPORT"),
    "US_DRIVER_LICENSE": _with_context("LICENSE"),
    "US_BANK_NUMBER": _with_context("BANK_ACCOUNT"),
    "UK_NHS": _with_context("NHS"),
    "US_ITIN": _with_context("ITIN"),
    "US_MBI": LabelRule("MBI"),
    "US_NPI": _with_context("NPI"),
    "ABA_ROUTING_NUMBER": _with_context("ROUTING"),
    "US_HEALTH_INSURANCE_MEMBER_ID": _with_context("MEMBER_ID"),
    "US_PRIOR_AUTHORIZATION_NUMBER": _with_context("AUTHORIZATION"),
    "US_CLAIM_NUMBER": _with_context("CLAIM"),
    "US_PRESCRIPTION_NUMBER": _with_context("PRESCRIPTION"),
    "US_REFERRAL_NUMBER": _with_context("REFERRAL"),
    "US_PROVIDER_TAX_ID": _with_context("TAX_ID"),
    "UK_NINO": LabelRule("NINO"),
    "UK_PASSPORT": _with_context("PASSPORT"),
    "UK_DRIVING_LICENCE": LabelRule("LICENSE"),
    "UK_POSTCODE": _with_context("POSTCODE"),
    "UK_VEHICLE_REGISTRATION": _with_context("PLATE"),
    "CA_SIN": _with_context("SIN"),
    "CA_POSTAL_CODE": _with_context("POSTCODE"),
    "AU_ABN": _with_context("ABN"),
    "AU_ACN": _with_context("ACN"),
    "AU_TFN": _with_context("TFN"),
    "AU_MEDICARE": _with_context("MEDICARE"),
    "IN_PAN": LabelRule("PAN"),
    "IN_AADHAAR": _with_context("AADHAAR"),
    "IN_PASSPORT": _with_context("PASSPORT"),
    "IN_VOTER": _with_context("VOTER"),
    "IN_GSTIN": LabelRule("GSTIN"),
    "IN_VEHICLE_REGISTRATION": _with_context("PLATE"),
    "SG_NRIC_FIN": LabelRule("NRIC"),
    "SG_UEN": _with_context("UEN"),
    "NG_NIN": _with_context("NIN"),
    "NG_VEHICLE_REGISTRATION": _with_context("PLATE"),
    "PH_PASSPORT": _with_context("PASSPORT"),
    "PH_TIN": _with_context("TIN"),
    "PH_UMID": LabelRule("UMID", context="bare"),
    "ES_NIF": LabelRule("NIF"),
    "ES_NIE": LabelRule("NIE"),
    "ES_PASSPORT": _with_context("PASSPORT"),
    "IT_FISCAL_CODE": LabelRule("FISCAL_CODE"),
    "IT_VAT_CODE": _with_context("VAT"),
    "IT_DRIVER_LICENSE": _with_context("LICENSE"),
    "IT_IDENTITY_CARD": _with_context("ID_CARD"),
    "IT_PASSPORT": _with_context("PASSPORT"),
    "PL_PESEL": _with_context("PESEL"),
    "FI_PERSONAL_IDENTITY_CODE": LabelRule("HETU"),
    "SE_PERSONNUMMER": LabelRule("PERSONNUMMER"),
    "SE_ORGANISATIONSNUMMER": _with_context("ORGNR"),
    "DE_TAX_ID": _with_context("TAX_ID"),
    "DE_TAX_NUMBER": _with_context("TAX_ID"),
    "DE_VAT_ID": LabelRule("VAT"),
    "DE_PASSPORT": _with_context("PASSPORT"),
    "DE_ID_CARD": _with_context("ID_CARD"),
    "DE_FUEHRERSCHEIN": _with_context("LICENSE"),
    "DE_SOCIAL_SECURITY": LabelRule("SVNR"),
    "DE_HEALTH_INSURANCE": _with_context("KVNR"),
    "DE_HANDELSREGISTER": LabelRule("HRNR"),
    "DE_KFZ": _with_context("PLATE"),
    "DE_PLZ": _with_context("POSTCODE"),
    "DE_LANR": _with_context("LANR"),
    "DE_BSNR": _with_context("BSNR"),
    "KR_RRN": LabelRule("RRN"),
    "KR_FRN": LabelRule("FRN"),
    "KR_BRN": _with_context("BRN"),
    "KR_DRIVER_LICENSE": _with_context("LICENSE"),
    "KR_PASSPORT": _with_context("PASSPORT"),
    "TH_TNIN": LabelRule("TNIN"),
    "TR_NATIONAL_ID": _with_context("TCKN"),
    "TR_LICENSE_PLATE": _with_context("PLATE"),
    "ZA_ID_NUMBER": _with_context("ZA_ID"),
    "ZA_PASSPORT": _with_context("PASSPORT"),
    "ZA_DRIVER_LICENSE": _with_context("LICENSE"),
    "ZA_LICENSE_PLATE": _with_context("PLATE"),
    "ZA_VAT_NUMBER": _with_context("VAT"),
    "ZA_INCOME_TAX_NUMBER": _with_context("TAX_ID"),
    "ZA_TRAFFIC_REGISTER_NUMBER": _with_context("TRN"),
    "ZA_COMPANY_REGISTRATION": _with_context("COMPANY_REG"),
    "ZA_MOBILE_NUMBER": _with_context("PHONE"),
    "ZA_TELEPHONE_NUMBER": _with_context("PHONE"),
    "AE_EMIRATES_ID": LabelRule("EMIRATES_ID"),
    "AR_CUIT": LabelRule("CUIT"),
    "AR_DNI": _with_context("DNI"),
    "AT_STEUERNUMMER": _with_context("TAX_ID"),
    "AT_SVNR": _with_context("SVNR"),
    "BE_NISS": LabelRule("NISS"),
    "BG_EGN": _with_context("EGN"),
    "BR_CNH": _with_context("LICENSE"),
    "BR_CNPJ": LabelRule("CNPJ"),
    "BR_CPF": LabelRule("CPF"),
    "BR_PIS": LabelRule("PIS"),
    "BR_RG": _with_context("RG"),
    "BR_VOTER": _with_context("VOTER"),
    "CA_HEALTH_CARD": _with_context("HEALTH_CARD"),
    "CH_AHV": LabelRule("AHV"),
    "CL_RUT": LabelRule("RUT"),
    "CN_RESIDENT_ID": LabelRule("RESIDENT_ID"),
    "CO_CEDULA": _with_context("CEDULA"),
    "CY_TIC": _with_context("TIC"),
    "CZ_ID_CARD": _with_context("ID_CARD"),
    "CZ_RODNE_CISLO": LabelRule("RODNE_CISLO"),
    "DK_CPR": _with_context("CPR"),
    "EE_ISIKUKOOD": _with_context("ISIKUKOOD"),
    "ES_CIF": _with_context("CIF"),
    "ES_NUSS": LabelRule("NUSS"),
    "EU_VAT": LabelRule("VAT"),
    "FR_ID_CARD": _with_context("ID_CARD"),
    "FR_NIR": LabelRule("NIR"),
    "FR_SPI": _with_context("SPI"),
    "GR_AFM": _with_context("AFM"),
    "GR_AMKA": _with_context("AMKA"),
    "GR_ID_CARD": _with_context("ID_CARD"),
    "HK_HKID": LabelRule("HKID"),
    "HR_OIB": _with_context("OIB"),
    "HU_ADOAZONOSITO": _with_context("ADOAZONOSITO"),
    "HU_ID_CARD": _with_context("ID_CARD"),
    "HU_TAJ": _with_context("TAJ"),
    "IE_PPSN": _with_context("PPSN"),
    "IL_ID": _with_context("TEUDAT_ZEHUT"),
    "IN_DRIVER_LICENSE": LabelRule("LICENSE"),
    "JP_CORPORATE": _with_context("CORPORATE_NUMBER"),
    "JP_DOCUMENT_NAMED": LabelRule("ID_CARD"),
    "JP_MY_NUMBER": _with_context("MY_NUMBER"),
    "JP_MY_NUMBER_NAMED": LabelRule("MY_NUMBER"),
    "LT_ASMENS_KODAS": _with_context("ASMENS_KODAS"),
    "LU_MATRICULE": LabelRule("MATRICULE"),
    "LV_PERSONAS_KODS": _with_context("PERSONAS_KODS"),
    "MRZ": LabelRule("MRZ"),
    "MT_ID_CARD": _with_context("ID_CARD"),
    "MX_CURP": LabelRule("CURP"),
    "MX_NSS": _with_context("NSS"),
    "MX_RFC": LabelRule("RFC"),
    "NL_BSN": _with_context("BSN"),
    "NO_FODSELSNUMMER": LabelRule("FODSELSNUMMER"),
    "NZ_IRD": _with_context("IRD"),
    "NZ_NHI": _with_context("NHI"),
    "PL_ID_CARD": _with_context("ID_CARD"),
    "PL_NIP": _with_context("NIP"),
    "PL_REGON": _with_context("REGON"),
    "PT_CC": LabelRule("CC"),
    "PT_NIF": _with_context("NIF"),
    "PT_NISS": _with_context("NISS"),
    "RO_CNP": _with_context("CNP"),
    "RO_ID_CARD": _with_context("ID_CARD"),
    "SI_EMSO": _with_context("EMSO"),
    "SI_TAX": _with_context("TAX_ID"),
    "SK_ID_CARD": _with_context("ID_CARD"),
    "TH_TNIN_NAMED": LabelRule("TNIN"),
    "TW_ID": _with_context("TW_ID"),
    "TW_ID_NAMED": LabelRule("TW_ID"),
    "UK_CHI": _with_context("CHI"),
    "UK_UTR": _with_context("UTR"),
    "ANY_PASSPORT": _with_context("PASSPORT"),
    "ANY_DRIVING_LICENCE": _with_context("LICENSE"),
    "ANY_NATIONAL_ID": _with_context("NATIONAL_ID"),
    "ANY_TAX_ID": _with_context("TAX_ID"),
    "MAC_ADDRESS": LabelRule("MAC"),
    "DATE_OF_BIRTH": LabelRule("DATE", context="yes"),
    "CARE_DATE": LabelRule("DATE", context="yes"),
    "AGE_OVER_89": LabelRule("AGE"),
    "CARD_TRACK": LabelRule("CARD"),
    "CARD_SECURITY_CODE": LabelRule("CVV"),
    "CARD_EXPIRY": LabelRule("CARD_EXPIRY"),
    "BIC_CODE": LabelRule("BIC"),
    "BANK_ACCOUNT_NUMBER": LabelRule("BANK_ACCOUNT"),
    "BANK_BRANCH_CODE": LabelRule("ROUTING"),
    "MEDICAL_RECORD_NUMBER": LabelRule("MRN"),
    "HEALTH_PLAN_NUMBER": LabelRule("MEMBER_ID"),
    "LICENSE_NUMBER": LabelRule("LICENSE"),
    "BIOMETRIC_ID": LabelRule("BIOMETRIC_ID"),
    "VIN": LabelRule("VIN"),
    "LICENSE_PLATE": LabelRule("PLATE"),
    "DEVICE_ID": LabelRule("DEVICE_ID"),
    "CUSTOMER_ID": LabelRule("CUSTOMER_ID"),
    "EMPLOYEE_ID": LabelRule("EMPLOYEE_ID"),
    "STUDENT_ID": LabelRule("STUDENT_ID"),
    "POLICY_NUMBER": LabelRule("POLICY"),
    "CLAIM_NUMBER": LabelRule("CLAIM"),
    "USERNAME": LabelRule("USERNAME"),
    "PASSWORD": LabelRule("PASSWORD"),
    "PIN": LabelRule("PIN"),
    "STREET_ADDRESS": LabelRule("ADDRESS"),
    "PERSON_FIELD": LabelRule("PERSON"),
    "ADDRESS_FIELD": LabelRule("ADDRESS"),
    "POSTAL_CODE": LabelRule("POSTCODE"),
    "COORDINATES": LabelRule("COORDINATES"),
    "AGE": LabelRule("AGE", None),
    "DATE_TIME": LabelRule("DATE", None),
    "ORGANIZATION": LabelRule("ORGANIZATION", None),
    "LOCATION": LabelRule("LOCATION", None),
    "URL": LabelRule("URL", None),
    "UUID": LabelRule("UUID", None),
    OPAQUE: LabelRule(OPAQUE),
}
"""Every entity type that the engine can report. The order breaks ties between findings of equal length and score."""

LABELS: Final[frozenset[str]] = frozenset({rule.label for rule in RULES.values()} | {CUSTOM})
"""Every label that a span can carry."""

RANK: Final[dict[str, int]] = {
    CUSTOM: -1,
    **{rule.label: place for place, rule in reversed(list(enumerate(RULES.values())))},
}
"""The fixed order of labels; lower wins, and the deny list comes first."""

BUILT_IN: Final = frozenset(RULES)
"""Entity types that a user's own recognizer must not redefine."""

_REQUESTED_THRESHOLD = 0.4


def extend(rules: Mapping[str, LabelRule]) -> None:
    """Add the types of a user's recognizers to those that this process looks for; they rank last."""
    for entity, rule in rules.items():
        RULES[entity] = rule
        RANK.setdefault(rule.label, len(RANK))
    _wanted.cache_clear()


def thresholds(options: DetectionOptions) -> dict[str, float]:
    """Return the entity types that ``options`` request, each with the minimum score of a finding."""
    return _wanted(options.strict, options.entities, options.exclude)


@lru_cache(maxsize=64)
def _wanted(
    strict: bool,
    entities: frozenset[str] | None,
    exclude: frozenset[str],
) -> dict[str, float]:
    wanted: dict[str, float] = {}
    for entity, rule in RULES.items():
        if rule.label in exclude:
            continue
        if entities is not None and rule.label not in entities:
            continue
        least = rule.strict if strict else rule.standard
        if least is None and entities is not None:
            least = _REQUESTED_THRESHOLD
        if least is not None:
            wanted[entity] = least
    return wanted


def label_of(name: str) -> str | None:
    """Return the label behind ``name``, a label (``EMAIL``) or one of Presidio's types (``EMAIL_ADDRESS``)."""
    rule = RULES.get(name)
    return name if name in LABELS else rule.label if rule is not None else None
