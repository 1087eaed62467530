# ruff: noqa: RUF001 - context words are in their own languages
"""National identifiers of western and southern Europe: one row each."""

from typing import Final

from app.engines.pii.recognizers.checksums import europe as check
from app.engines.pii.recognizers.checksums.shared import is_luhn
from app.engines.pii.recognizers.national.rows import Identifier

_DAY, _MONTH = r"(?:0[1-9]|[12]\d|3[01])", r"(?:0[1-9]|1[0-2])"

ROWS: Final = (
    Identifier(
        "AT_SVNR",
        "social",
        "sozialversicherungsnummer, sozialversicherung, sv nummer, svnr, svnummer, sv nr, vsnr, versicherungsnummer, "
        "e card, ecard",
        likely=(r"[1-9]\d{3}[ /-]?[0-3]\d[01]\d\d\d",),
        check=check.at_svnr,
    ),
    Identifier(
        "AT_STEUERNUMMER",
        "tax",
        "steuernummer, steuer nummer, abgabenkontonummer, finanzamt, stnr, steuernr",
        likely=(r"\d{2}[ -]?\d{3}/?\d{4}",),
        check=is_luhn,
    ),
    Identifier(
        "BE_NISS",
        "social",
        "rijksregisternummer, rijksregister, insz, insz nummer, niss, numéro niss, registre national, numéro national, "
        "numéro de registre national, nationalregisternummer, nationaal nummer, rrn, bis nummer, numéro bis",
        sure=(r"\d\d\.[0-5]\d\.[0-3]\d-\d{3}\.\d\d",),
        likely=(
            r"\d\d[0-5]\d[0-3]\d[ -]?\d{3}[ .-]?\d\d",
            r"\d\d[ .-][0-5]\d[ .-][0-3]\d[ .-]\d{3}[ .-]\d\d",
        ),
        check=check.be_niss,
    ),
    Identifier(
        "CH_AHV",
        "social",
        "ahv, ahv nummer, avs, numéro avs, ahvn13, navs13, versichertennummer, sozialversicherungsnummer, avs nummer, "
        "numero avs",
        sure=(r"756\.\d{4}\.\d{4}\.\d\d", r"756 \d{4} \d{4} \d\d"),
        likely=(r"756[ .-]?\d{4}[ .-]?\d{4}[ .-]?\d\d",),
        check=check.ch_ahv,
    ),
    Identifier(
        "CY_TIC",
        "both",
        "tic, αφτ, αριθμός φορολογικής ταυτότητας, φορολογικός κωδικός, α.φ.τ",
        likely=(r"[069]\d{7}[ -]?[A-Z]",),
        check=check.cy_tic,
    ),
    Identifier(
        "DE_TAX_ID",
        "tax",
        "steueridentifikationsnummer, steuer id, steuerid, steueridnr, steuer idnr, idnr, tin, steuer identnummer, "
        "steuerliche identifikationsnummer, identifikationsnummer, steuerlicheidentifikationsnummer, steuernummer",
        likely=(r"[1-9]\d[ ]?\d{3}[ ]?\d{3}[ ]?\d{3}",),
        check=check.de_tax_id,
    ),
    Identifier(
        "DE_SOCIAL_SECURITY",
        "social",
        "rentenversicherungsnummer, sozialversicherungsnummer, versicherungsnummer, rvnr, svnr, sv nummer, rv nummer, "
        "rentenversicherung, sozialversicherung, sozialversicherungsausweis, vsnr",
        sure=(rf"\d\d[ ]?(?:[0-2]\d|3[01]|[5-7]\d|8[01]){_MONTH}\d\d[ ]?[A-Z][ ]?\d\d[ ]?\d",),
        likely=(rf"\d\d[ -]?[0-8]\d{_MONTH}\d\d[ -]?[A-Z][ -]?\d{{3}}",),
        check=check.de_svnr,
    ),
    Identifier(
        "DE_HEALTH_INSURANCE",
        "health",
        "krankenversicherungsnummer, krankenversichertennummer, versichertennummer, kvnr, krankenkasse, "
        "gesundheitskarte, "
        "versicherten nr, versichertenkarte, krankenversicherung, egk, krankenkassennummer, versichertennr",
        likely=(r"[A-Z][ ]?\d{9}", r"[A-Z]\d{3}[ ]\d{3}[ ]\d{3}"),
        check=check.de_kvnr,
    ),
    Identifier(
        "DE_ID_CARD",
        "card",
        "personalausweis, personalausweisnummer, ausweis, ausweisnummer, ausweisnr, perso, personalausweisnr, "
        "ausweis nr, aufenthaltstitel",
        likely=(r"[CFGHJKLMNPRTVWXYZ][CFGHJKLMNPRTVWXYZ0-9]{8}\d",),
        check=check.de_document,
    ),
    Identifier(
        "DE_ID_CARD",
        "",
        "personalausweis, personalausweisnummer, ausweis, ausweisnummer, ausweisnr, perso, ausweis nr",
        likely=(r"[CFGHJKLMNPRTVWXYZ](?=[A-Z0-9]{0,7}\d)[CFGHJKLMNPRTVWXYZ0-9]{8}",),
    ),
    Identifier(
        "DE_PASSPORT",
        "passport",
        "reisepass, passnummer, reisepassnummer, pass nr, reisepass nr, passnr, pass nummer",
        likely=(
            r"[CFGHJK](?=[A-Z0-9]{0,7}\d)[CFGHJKLMNPRTVWXYZ0-9]{8}",
            r"[CFGHJK][CFGHJKLMNPRTVWXYZ0-9]{8}\d",
        ),
    ),
    Identifier(
        "ES_NIF",
        "both",
        "dni, nif, documento nacional de identidad, número de identificación fiscal, "
        "documento de identidad, "
        "carnet de identidad, identificación, dninif, documento identidad",
        sure=(
            r"(?!(?:19|20)\d\d[01]\d[0-3]\d)\d{8}-?[A-HJ-NP-TV-Z]",
            r"\d{2}\.\d{3}\.\d{3}[ -]?[A-HJ-NP-TV-Z]",
            r"[KLM]\d{7}-?[A-HJ-NP-TV-Z]",
        ),
        likely=(r"\d{2}\.?\d{3}\.?\d{3}[ -]{0,3}[A-HJ-NP-TV-Z]", r"[KLM][ -]?\d{7}[ -]?[A-HJ-NP-TV-Z]"),
        check=check.es_nif,
    ),
    Identifier(
        "ES_NIE",
        "both",
        "nie, número de identidad de extranjero, número de identificación de extranjero, tarjeta de residencia, "
        "permiso de residencia, extranjero",
        sure=(r"[XYZ]-?\d{7}-?[A-HJ-NP-TV-Z]",),
        likely=(r"[XYZ][ -]?\d{7}[ -]?[A-HJ-NP-TV-Z]",),
        check=check.es_nif,
    ),
    Identifier(
        "ES_CIF",
        "tax",
        "cif, nif, código de identificación fiscal, identificación fiscal, razón social",
        likely=(r"[ABCDEFGHJNPQRSUVW][ -]?\d{7}[ -]?[0-9A-J]", r"[A-W]-?\d{2}\.\d{3}\.\d{2}[0-9A-J]"),
        check=check.es_cif,
    ),
    Identifier(
        "ES_NUSS",
        "social",
        "seguridad social, número de la seguridad social, número de afiliación, nuss, naf, nass, afiliación, "
        "número de seguridad social, nºss, nss",
        sure=(r"\d\d/\d{7,8}/\d\d",),
        likely=(r"\d\d[ /-]?\d{8}[ /-]?\d\d",),
        check=lambda text: check.es_nuss(text if len(text) > 11 else f"{text[:2]}0{text[2:]}"),  # noqa: PLR2004
    ),
    Identifier(
        "FR_NIR",
        "social",
        "sécurité sociale, numéro de sécurité sociale, securite sociale, nir, insee, numéro insee, "
        "n° sécurité sociale, "
        "numéro sécu, sécu, carte vitale, immatriculation, numero de securite sociale, num sécu",
        sure=(
            r"[1-478] \d\d (?:0[1-9]|1[0-2]|[2-9]\d) (?:\d\d|2[AB]) \d{3} \d{3} ?\d\d",
            r"[1-478]\d\d(?:0[1-9]|1[0-2])(?:\d\d|2[AB])\d{6} \d\d",
            r"[12]\d\d(?:0[1-9]|1[0-2])2[AB]\d{6} ?\d\d",
        ),
        likely=(
            (
                r"[1-478][ .-]?\d\d[ .-]?(?:0[1-9]|1[0-2]|[2-9]\d)[ .-]?(?:\d\d|2[AB])"
                r"[ .-]?\d{3}[ .-]?\d{3}[ ./-]{0,3}\d\d"
            ),
        ),
        check=check.fr_nir,
    ),
    Identifier(
        "FR_SPI",
        "tax",
        "spi, numéro fiscal, numero fiscal, numéro spi, référence fiscale, identifiant fiscal, nif, impôts, "
        "avis d'imposition, n° fiscal, impots",
        likely=(r"[0-3]\d[ ]?\d\d[ ]?\d{3}[ ]?\d{3}[ ]?\d{3}",),
        check=check.fr_spi,
    ),
    Identifier(
        "FR_ID_CARD",
        "",
        "carte d'identité, d'identité, carte nationale d'identité, cni, cnie, numéro de carte d'identité, "
        "carte nationale, carte d'identite",
        likely=(r"\d{12}", r"[A-Z](?:\d[A-Z0-9]|[A-Z0-9]\d)[A-Z0-9]{5}\d"),
    ),
    Identifier(
        "GR_AFM",
        "tax",
        "αφμ, α.φ.μ, afm, αριθμός φορολογικού μητρώου, φορολογικό μητρώο, φορολογικού μητρώου",
        likely=(r"\d{9}",),
        check=check.gr_afm,
    ),
    Identifier(
        "GR_AMKA",
        "social",
        "αμκα, α.μ.κ.α, amka, αριθμός μητρώου κοινωνικής ασφάλισης, κοινωνικής ασφάλισης",
        likely=(rf"{_DAY}{_MONTH}\d{{7}}",),
        check=check.gr_amka,
    ),
    Identifier(
        "GR_ID_CARD",
        "",
        "αδτ, α.δ.τ, δελτίο ταυτότητας, αριθμός ταυτότητας, ταυτότητα, αριθμός δελτίου ταυτότητας, adt",
        likely=(r"[ABEZHIKMNOPTYXΑ-Ω]{1,2}[ -]?\d{6}",),
    ),
    Identifier(
        "IE_PPSN",
        "both",
        "pps, ppsn, pps number, pps no, personal public service, personal public service number, rsi, "
        "uimhir psp, upsp, rsi number",
        likely=(r"\d{7}[ ]?[A-W][A-IW]?", r"\d{7}[A-W][TX]"),
        check=check.ie_ppsn,
    ),
    Identifier(
        "IT_FISCAL_CODE",
        "both",
        "codice fiscale, fiscal code, cf, cod fisc, codicefiscale, cod. fiscale",
        sure=(r"[A-Z]{6}[\dLMNP-V]{2}[A-EHLMPRST][\dLMNP-V]{2}[A-Z][\dLMNP-V]{3}[A-Z]",),
        likely=(
            r"[A-Z]{6}[\dLMNP-V]{2}[A-EHLMPRST][\dLMNP-V]{2}[A-Z][\dLMNP-V]{3}[A-Z]",
            r"[A-Z]{3}[ ][A-Z]{3}[ ][\dLMNP-V]{2}[A-EHLMPRST][\dLMNP-V]{2}[ ][A-Z][\dLMNP-V]{3}[A-Z]",
        ),
        check=check.it_fiscal_code,
    ),
    Identifier(
        "IT_VAT_CODE",
        "vat",
        "partita iva, p.iva, piva, partitaiva, iva",
        likely=(r"\d{11}",),
        check=lambda text: is_luhn(text) and text != "00000000000",
    ),
    Identifier(
        "LU_MATRICULE",
        "social",
        "matricule, numéro de matricule, matricule nationale, numéro d'identification national, nationalnummer, "
        "matrikelnummer, sozialversicherungsnummer, numéro d'identification",
        sure=(r"(?:1[89]|20)\d\d ?(?:0[1-9]|1[0-2]) ?[0-3]\d ?\d{3} ?\d\d",),
        check=check.lu_matricule,
    ),
    Identifier(
        "MT_ID_CARD",
        "card",
        "karta tal identità, karta tal identita, maltese id, malta id, e id, karta tal-identità",
        likely=(r"\d{1,7}[ ]?[APMGLHBZ]",),
        check=lambda text: len(text) >= 5,  # noqa: PLR2004
    ),
    Identifier(
        "NL_BSN",
        "both",
        "bsn, bsn nummer, burgerservicenummer, burger service nummer, sofinummer, sofi nummer, sofi, bsnnummer, "
        "citizen service number, persoonsnummer, burgerservice nummer",
        likely=(r"\d{9}", r"\d{4}[ .]\d{2}[ .]\d{3}", r"\d{3}[ .-]\d{3}[ .-]\d{3}"),
        check=check.nl_bsn,
    ),
    Identifier(
        "PT_CC",
        "card",
        "cartão de cidadão, cartao de cidadao, cartão do cidadão, bilhete de identidade, número de documento, "
        "documento de identificação, nic",
        sure=(r"\d{8} \d [A-Z][A-Z0-9]\d", r"\d{8}-\d-[A-Z][A-Z0-9]\d"),
        likely=(r"\d{8}[ -]?\d[ -]?[A-Z0-9]{2}\d",),
        check=check.pt_cc,
    ),
    Identifier(
        "PT_NIF",
        "tax",
        "nif, contribuinte, número de contribuinte, numero de contribuinte, nipc, número fiscal, nº contribuinte, "
        "número de identificação fiscal, numero fiscal",
        likely=tuple(
            rf"(?:[1-35689]\d|45|7[0-24-57-9]){rest}" for rest in (r"\d{7}", r"\d[ .]\d{3}[ .]\d{3}")
        ),
        check=check.pt_nif,
    ),
    Identifier(
        "PT_NISS",
        "social",
        "niss, segurança social, número de identificação de segurança social, seguranca social, nº segurança social",
        likely=(r"[12]\d{2}[ ]?\d{4}[ ]?\d{4}", r"[12]\d{10}"),
        check=check.pt_niss,
    ),
)
