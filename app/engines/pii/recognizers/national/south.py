"""Identifiers of Africa, the Arab world, South and Southeast Asia and Latin America that local mails name by initials.

They have no public check digit, or it is often wrong where people type them: each counts only beside its name.
"""

from typing import Final

from app.engines.pii.recognizers.national.rows import Identifier

_ID: Final = "ANY_NATIONAL_ID"
_TAX: Final = "ANY_TAX_ID"


def _named(words: str, *shapes: str, entity: str = _ID) -> Identifier:
    return Identifier(entity, "", words, likely=shapes)


ROWS: Final = (
    # Africa
    _named("bvn, bank verification number, nin, nimc", r"\d{11}", r"\d{3}[ -]\d{4}[ -]\d{4}"),
    _named("huduma, huduma namba, huduma number, maisha namba, kenyan id", r"\d{6,9}"),
    _named("kra, kra pin, kra pin number", r"[AP]\d{9}[A-Z]", entity=_TAX),
    _named("ghana card, ghanacard, gha card, ecowas card", r"GHA-?\d{9}-?\d"),
    _named("ssnit, ssnit number", r"[A-Z]\d{12}"),
    _named("nin, nira, uganda id", r"C[MF][A-Z0-9]{12}"),
    _named("nida, nida number, kitambulisho", r"\d{8}-?\d{5}-?\d{5}-?\d{2}"),
    _named("cin, cnie, carte nationale, بطاقة التعريف الوطنية", r"[A-Z]{1,2}\d{4,6}"),
    _named("pvc, permanent voter's card, voter's card, voters card", r"[0-9A-F]{19}"),
    # the Arab world
    _named("iqama, iqama number, muqeem, saudi id, رقم الإقامة", r"[12]\d{9}"),
    _named("civil id, civil id number, kuwait id, الرقم المدني", r"[23]\d{11}"),
    _named("qid, qatar id, qatari id", r"[23]\d{10}"),
    # South Asia
    _named("cnic, nicop, shanakhti card", r"\d{5}-\d{7}-\d", r"\d{13}"),
    _named("nid, nid number, nid card, national id card, smart card", r"\d{10}", r"\d{13}", r"\d{17}"),
    _named("nic, nic number, nic no", r"\d{9}[VX]", r"(?:19|20)\d{10}"),
    _named("uan, epf, universal account number, pf account", r"\d{12}", r"\d{4} \d{4} \d{4}"),
    _named("ration card, ration card number, राशन कार्ड", r"\d{10,16}", r"\d{4}(?: \d{4}){2,3}"),
    # Southeast Asia
    _named(
        "nik, nomor induk kependudukan, ktp, e-ktp, ektp, kk, kartu keluarga",
        r"\d{16}",
        r"\d{4}(?:[ .]\d{4}){3}",
    ),
    _named("bpjs, bpjs kesehatan, bpjs ketenagakerjaan, kis, jkn", r"\d{11}", r"\d{13}"),
    _named("mst, mã số thuế, ma so thue", r"\d{10}(?:-\d{3})?", entity=_TAX),
    _named("bhxh, mã bhxh, bhyt, bảo hiểm xã hội", r"\d{10}", r"[A-Z]{2}\d{13}"),
    _named("sss, sss number, social security system", r"\d{2}-\d{7}-\d", r"\d{10}"),
    _named("philhealth, phil health", r"\d{2}-\d{9}-\d", r"\d{12}"),
    _named("philsys, phil sys, philid, phil id, psn, pcn", r"\d{4}(?:-\d{4}){3}", r"\d{16}", r"\d{12}"),
    _named("pag-ibig, pagibig, hdmf, mid number, pag-ibig mid", r"\d{4}-\d{4}-\d{4}", r"\d{12}"),
    _named("tin, tin number, bir", r"\d{3}-\d{3}-\d{3}(?:-\d{3,5})?", r"\d{9}(?:\d{3})?", entity=_TAX),
    _named(
        "mykad, my kad, ic, ic no, ic number, no ic, no kp, kad pengenalan", r"\d{6}-\d{2}-\d{4}", r"\d{12}"
    ),
    # Latin America
    _named("dpi, cui, documento personal de identificación", r"\d{4}[ -]?\d{5}[ -]?\d{4}"),
    _named("identidad, dni, número de identidad, rnp", r"\d{4}-\d{4}-\d{5}"),
    _named("cédula, cédula de identidad, cedula, ci", r"[VE]-?\d{6,8}", r"\d{1,2}\.\d{3}\.\d{3}-\d"),
    _named("ruc, registro único de contribuyentes", r"(?:10|15|17|20)\d{9}", r"\d{13}", entity=_TAX),
    _named("sus, cns, cartão sus, cartão nacional de saúde", r"\d{3} \d{4} \d{4} \d{4}", r"[1-9]\d{14}"),
    _named("número de utente, utente, sns, nº de utente", r"\d{9}", r"\d{3} \d{3} \d{3}"),
    _named("niss, segurança social, número de segurança social", r"[12]\d{10}"),
    # the Caucasus
    _named("fin, fin kod, fin kodu, şəxsiyyət vəsiqəsi", r"\d[0-9A-HJ-NP-Z]{6}"),
)
"""Shapes and names; a name that is also a word of English counts only beside one of its shapes."""
