"""National identifiers of the Americas, Britain, Ireland's neighbours and Africa: one row each."""

from typing import Final

from app.engines.pii.recognizers.checksums import europe
from app.engines.pii.recognizers.checksums import world as check
from app.engines.pii.recognizers.checksums.shared import is_luhn
from app.engines.pii.recognizers.national.rows import Identifier

_DAY, _MONTH = r"(?:0[1-9]|[12]\d|3[01])", r"(?:0[1-9]|1[0-2])"

ROWS: Final = (
    Identifier(
        "AR_CUIT",
        "both",
        "cuit, cuil, cuit cuil, clave única de identificación tributaria, código único de identificación laboral, "
        "afip, monotributo",
        sure=(r"(?:2[034567]|3[034])-\d{8}-\d",),
        likely=(r"(?:2[034567]|3[034])[ ./-]?\d{2}[.]?\d{3}[.]?\d{3}[ ./-]?\d",),
        check=check.ar_cuit,
    ),
    Identifier(
        "AR_DNI",
        "",
        "dni, documento nacional de identidad, documento de identidad, libreta cívica",
        likely=(r"\d{1,2}\.\d{3}\.\d{3}", r"[1-9]\d{6,7}"),
    ),
    Identifier(
        "BR_CPF",
        "both",
        "cpf, cpf mf, cadastro de pessoa física, cadastro de pessoas físicas, c.p.f, contribuinte, cpfcnpj",
        sure=(r"\d{3}\.\d{3}\.\d{3}-\d\d",),
        likely=(r"\d{9}[ ./-]?\d\d", r"\d{3}[ .]\d{3}[ .]\d{3}[ ./-]?\d\d"),
        check=check.br_cpf,
    ),
    Identifier(
        "BR_CNPJ",
        "tax",
        "cnpj, cadastro nacional da pessoa jurídica, cadastro nacional de pessoa jurídica, cgc, cpfcnpj",
        sure=(r"[0-9A-Z]{2}\.[0-9A-Z]{3}\.[0-9A-Z]{3}/[0-9A-Z]{4}-\d\d",),
        likely=(r"[0-9A-Z]{2}[ .]?[0-9A-Z]{3}[ .]?[0-9A-Z]{3}[ /]?[0-9A-Z]{4}[ -]?\d\d",),
        check=check.br_cnpj,
    ),
    Identifier(
        "BR_RG",
        "",
        "rg, r.g, registro geral, carteira de identidade, identidade, cédula de identidade, documento de identidade",
        likely=(
            r"(?:[A-Z]{2}-)?\d{1,2}\.\d{3}\.\d{3}(?:-?[0-9X])?",
            r"(?:[A-Z]{2}-)?\d{7,9}-?[0-9X]",
        ),
    ),
    Identifier(
        "BR_CNH",
        "licence",
        "cnh, carteira nacional de habilitação, carteira de motorista, habilitação, registro cnh",
        likely=(r"\d{11}",),
        check=check.br_cnh,
    ),
    Identifier(
        "BR_PIS",
        "social",
        "pis, pasep, pis pasep, nis, nit, pispasep, número de identificação social",
        sure=(r"\d{3}\.\d{5}\.\d\d-\d",),
        likely=(r"\d{11}", r"\d{3}[ .]\d{5}[ .]\d\d[ -]?\d"),
        check=check.br_pis,
    ),
    Identifier(
        "BR_VOTER",
        "",
        "título de eleitor, título eleitoral, titulo de eleitor, título eleitor, voter id, voter registration",
        likely=(r"\d{4}[ ]?\d{4}[ ]?\d{4}",),
        check=check.br_voter,
    ),
    Identifier(
        "CA_SIN",
        "social",
        "sin, social insurance, social insurance number, nas, numéro d'assurance sociale, assurance sociale, "
        "numéro nas",
        likely=(r"[1-79]\d{2}[ -]?\d{3}[ -]?\d{3}",),
        check=check.ca_sin,
    ),
    Identifier(
        "CA_HEALTH_CARD",
        "health",
        "ohip, ramq, phn, personal health number, health card number, carte santé, assurance maladie, hcn, msp, "
        "carte d'assurance maladie, numéro d'assurance maladie, ahcip, care card, carte soleil",
        likely=(r"\d{4}[ -]?\d{3}[ -]?\d{3}(?:[ -]?[A-Z]{2})?", r"[A-Z]{4}[ -]?\d{4}[ -]?\d{4}"),
        check=check.ca_health_card,
    ),
    Identifier(
        "CL_RUT",
        "both",
        "rut, r.u.t, r.u.n, rol único tributario, rol único nacional, cédula de identidad, rol unico tributario",
        sure=(r"\d{1,2}\.\d{3}\.\d{3}-[0-9K]",),
        likely=(r"\d{7,8}[ -]?[0-9K]", r"\d{1,2}\.\d{3}\.\d{3}[ -]?[0-9K]"),
        check=check.cl_rut,
    ),
    Identifier(
        "CO_CEDULA",
        "",
        "cédula, cédula de ciudadanía, cedula de ciudadania, cédula de identidad, cedula, nuip",
        likely=(r"\d{1,3}\.\d{3}\.\d{3}(?:\.\d{3})?", r"[1-9]\d{6,9}"),
    ),
    Identifier(
        "MX_CURP",
        "national",
        "curp, clave única de registro de población, clave unica de registro de poblacion",
        sure=(r"[A-Z][AEIOUX][A-Z]{2}\d{6}[HMX][A-Z]{2}[B-DF-HJ-NP-TV-Z]{3}[0-9A-Z]\d",),
        likely=(r"[A-Z][AEIOUX][A-Z]{2}\d{6}[HMX][A-Z]{2}[B-DF-HJ-NP-TV-Z]{3}[0-9A-Z]\d",),
        check=check.mx_curp,
    ),
    Identifier(
        "MX_RFC",
        "tax",
        "rfc, registro federal de contribuyentes, r.f.c, contribuyente",
        sure=(r"[A-ZÑ&][AEIOUX][A-ZÑ&]{2}\d{6}[0-9A-Z]{2}[0-9A]", r"[A-ZÑ&]{3}\d{6}[0-9A-Z]{2}[0-9A]"),
        likely=(r"[A-ZÑ&]{3,4}[ -]?\d{6}[ -]?[0-9A-Z]{2}[0-9A]",),
        check=check.mx_rfc,
    ),
    Identifier(
        "MX_RFC",
        "",
        "rfc, registro federal de contribuyentes, r.f.c",
        likely=(r"[A-ZÑ&]{3,4}[ -]?\d{6}[ -]?[0-9A-Z]{3}",),
    ),
    Identifier(
        "MX_NSS",
        "social",
        "nss, imss, seguro social, número de seguridad social, número de seguro social, numero de seguridad social",
        likely=(r"\d{2}[ -]?\d{2}[ -]?\d{2}[ -]?\d{4}[ -]?\d",),
        check=is_luhn,
    ),
    Identifier(
        "UK_NHS",
        "",
        "nhs, national health service, nhs number, health service number, nhs no",
        likely=(r"\d{3}[ -]?\d{3}[ -]?\d{4}",),
        check=europe.uk_nhs,
    ),
    Identifier(
        "UK_CHI",
        "",
        "chi, chi number, community health index, chi no",
        likely=(rf"{_DAY}{_MONTH}\d\d[ ]?\d{{4}}",),
        check=europe.uk_chi,
    ),
    Identifier(
        "UK_NINO",
        "social",
        "national insurance, national insurance number, ni number, nino, national insurance no",
        sure=(r"(?!BG|GB|NK|KN|NT|TN|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z](?: ?\d\d){3} ?[A-D]",),
        likely=(r"(?!BG|GB|NK|KN|NT|TN|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z](?:[ -]?\d\d){3}[ -]?[A-D]?",),
    ),
    Identifier(
        "UK_UTR",
        "tax",
        "utr, unique taxpayer reference, utr number, self assessment, hmrc",
        likely=(r"\d{5}[ ]?\d{5}K?", r"\d{3}[ ]\d{3}[ ]\d{4}", r"\d{4}[ ]\d{3}[ ]\d{3}"),
        check=lambda text: europe.uk_utr(text.rstrip("K")),
    ),
    Identifier(
        "US_ITIN",
        "tax",
        "itin, individual taxpayer, individual taxpayer identification number, irs",
        likely=(r"9\d{2}[ -]?\d{2}[ -]?\d{4}",),
        check=check.us_itin,
    ),
    Identifier(
        "NG_NIN",
        "national",
        "nin, nimc, national identification number, nigeria id",
        likely=(r"\d{11}",),
        check=check.ng_nin,
    ),
    Identifier(
        "ZA_ID_NUMBER",
        "national",
        "south african id, rsa id, sa id, id nommer, identiteitsnommer, sa id number, smart id",
        likely=(r"\d\d[01]\d[0-3]\d[ ]?\d{4}[ ]?[0-2]\d\d", r"\d\d[01]\d[0-3]\d[ ]?\d{4}[ ]?[0-2]\d[ ]?\d"),
        check=check.za_id,
    ),
)
