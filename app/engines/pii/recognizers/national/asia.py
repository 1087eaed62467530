"""National identifiers of Asia and the Pacific: one row each.

Chinese, Japanese and Thai put no spaces between words, so there a second row names the word in its pattern.
"""

from typing import Final

from app.engines.pii.recognizers.checksums import world as check
from app.engines.pii.recognizers.national.rows import Identifier

_RRN = r"\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])"
_STATES = "(?:A[NPRS]|BR|C[GH]|D[DLN]|G[AJ]|H[PR]|J[HK]|K[AL]|L[AD]|M[HLNPZ]|NL|O[DR]|P[BY]|RJ|SK|T[GNRS]|U[AKP]|WB)"

ROWS: Final = (
    Identifier(
        "AE_EMIRATES_ID",
        "national",
        "emirates id, eid, الهوية الإماراتية, رقم الهوية, هوية, uae id",
        sure=(r"784-\d{4}-\d{7}-\d", r"784(?:19|20)\d{10}"),
        likely=(r"784[ -]?\d{4}[ -]?\d{7}[ -]?\d",),
        check=check.ae_emirates_id,
    ),
    Identifier(
        "AU_ABN",
        "tax",
        "abn, australian business number",
        likely=(r"\d{2}[ -]?\d{3}[ -]?\d{3}[ -]?\d{3}",),
        check=check.au_abn,
    ),
    Identifier(
        "AU_ACN",
        "",
        "acn, australian company number, arbn",
        likely=(r"\d{3}[ -]?\d{3}[ -]?\d{3}",),
        check=check.au_acn,
    ),
    Identifier(
        "AU_MEDICARE",
        "health",
        "medicare, medicare number, medicare card, medicare no, irn",
        likely=(r"[2-6]\d{3}[ -]?\d{5}[ -]?\d(?:[ /-]?[1-9])?",),
        check=check.au_medicare,
    ),
    Identifier(
        "AU_TFN",
        "tax",
        "tfn, tax file number",
        likely=(r"\d{3}[ -]?\d{3}[ -]?\d{3}",),
        check=check.au_tfn,
    ),
    Identifier(
        "CN_RESIDENT_ID",
        "national",
        "resident id, resident identity card, 身份证, 身份证号, 身份证号码, 公民身份号码, 居民身份证, shenfenzheng",
        sure=(r"[1-8]\d{5}(?:18|19|20)\d\d[01]\d[0-3]\d\d{3}[0-9X]",),
        likely=(r"[1-8]\d{5}[ ]?(?:18|19|20)\d\d[01]\d[0-3]\d[ ]?\d{3}[0-9X]",),
        check=check.cn_resident_id,
    ),
    Identifier(
        "HK_HKID",
        "card",
        "hkid, hkid number, hong kong identity card, hong kong id, 身份證, 身份證號碼, 香港身份證, hkic",
        sure=(r"[A-Z]{1,2}\d{6}\([0-9A]\)",),
        likely=(r"[A-Z]{1,2}\d{6}[ ]?\(?[0-9A]\)?",),
        check=check.hk_hkid,
    ),
    Identifier(
        "IL_ID",
        "national",
        "teudat zehut, ת.ז, תעודת זהות, ת״ז, מספר זהות, תז, israeli id, מספר תעודת זהות",
        likely=(r"\d{8}-?\d", r"\d-?\d{7}-?\d"),
        check=check.il_id,
    ),
    Identifier(
        "IN_AADHAAR",
        "national",
        "aadhaar, aadhar, adhaar, uidai, aadhaar number, aadhaar card, आधार, आधार संख्या, आधार नंबर, आधार कार्ड",
        likely=(r"[2-9]\d{3}[ :-]?\d{4}[ :-]?\d{4}",),
        check=check.in_aadhaar,
    ),
    Identifier(
        "IN_PAN",
        "tax",
        "pan, permanent account number, pan card, pan number, पैन, पैन कार्ड",
        sure=(r"[A-Z]{3}[ABCFGHJLPTK][A-Z]\d{4}[A-Z]",),
        likely=(r"[A-Z]{5}[ -]?\d{4}[ -]?[A-Z]",),
    ),
    Identifier(
        "IN_GSTIN",
        "tax",
        "gstin, gst, gst number, gst registration, goods and services tax",
        sure=(r"[0-3]\d[A-Z]{5}\d{4}[A-Z][1-9A-Z]Z[0-9A-Z]",),
        likely=(r"[0-3]\d[A-Z]{5}\d{4}[A-Z][1-9A-Z]Z[0-9A-Z]",),
        check=check.in_gstin,
    ),
    Identifier(
        "IN_GSTIN",
        "",
        "gstin, gst number, gst registration, gst no",
        likely=(r"[0-3]\d[A-Z]{5}\d{4}[A-Z][1-9A-Z]Z[0-9A-Z]",),
    ),
    Identifier(
        "IN_DRIVER_LICENSE",
        "licence",
        "dl, dl no, dl number, driving licence number, rto, ड्राइविंग लाइसेंस",
        sure=(rf"{_STATES}-?\d\d ?(?:19|20)\d\d\d{{7}}",),
        likely=(rf"{_STATES}[ -]?\d\d[ -/]?(?:19|20)\d\d[ -/]?\d{{7}}",),
    ),
    Identifier(
        "JP_MY_NUMBER",
        "both",
        "mynumber, individual number, マイナンバー, 個人番号",
        likely=(r"\d{4}[ -]?\d{4}[ -]?\d{4}",),
        check=check.jp_my_number,
    ),
    Identifier(
        "JP_MY_NUMBER_NAMED",
        "",
        "",
        sure=(
            r"(?:マイナンバー|個人番号|[Mm]y[ _]?[Nn]umber)[^\d\n]{0,20}(?P<value>\d{4}[ -]?\d{4}[ -]?\d{4})",
        ),
        check=check.jp_my_number,
    ),
    Identifier(
        "JP_CORPORATE",
        "tax",
        "corporate number, 法人番号, houjin bangou",
        likely=(r"[1-9]\d{12}", r"[1-9]-\d{4}-\d{4}-\d{4}"),
        check=check.jp_corporate,
    ),
    Identifier(
        "JP_DOCUMENT_NAMED",
        "",
        "",
        sure=(
            r"(?:運転免許証?(?:の)?番号|免許証番号|運転免許証)[^\d\n]{0,20}(?P<value>\d{12})",
            r"(?:旅券番号|パスポート番号|パスポート)[^A-Z\d\n]{0,20}(?P<value>[A-Z]{2}\d{7})",
            r"(?:基礎年金番号)[^\d\n]{0,8}(?P<value>\d{4}-?\d{6})",
        ),
    ),
    Identifier(
        "KR_RRN",
        "national",
        "주민등록번호, 주민등록번호는, 주민등록번호가, 주민번호, 주민번호는, rrn, resident registration number, "
        "resident registration",
        sure=(rf"{_RRN}-[1-49]\d{{6}}",),
        likely=(rf"{_RRN}[ -]?[1-49]\d{{6}}",),
        check=check.kr_rrn,
    ),
    Identifier(
        "KR_RRN",
        "national",
        "주민등록번호, 주민등록번호는, 주민등록번호가, 주민번호, 주민번호는, rrn, resident registration number",
        likely=(rf"{_RRN}-?[1-49]\d{{6}}",),
    ),
    Identifier(
        "KR_FRN",
        "national",
        "외국인등록번호, 외국인등록번호는, 외국인번호, frn, foreigner registration number, alien registration number",
        sure=(rf"{_RRN}-[5-8]\d{{6}}",),
        likely=(rf"{_RRN}[ -]?[5-8]\d{{6}}",),
        check=check.kr_rrn,
    ),
    Identifier(
        "KR_BRN",
        "tax",
        "사업자등록번호, 사업자등록번호는, 사업자번호, brn, business registration number, business number",
        likely=(r"\d{3}-\d\d-\d{5}", r"\d{10}"),
        check=check.kr_brn,
    ),
    Identifier(
        "NZ_IRD",
        "tax",
        "ird, ird number, ird no, inland revenue, inland revenue number",
        likely=(r"\d{2,3}[ -]?\d{3}[ -]?\d{3}",),
        check=check.nz_ird,
    ),
    Identifier(
        "NZ_NHI",
        "health",
        "nhi, nhi number, national health index, nhi no",
        likely=(r"[A-HJ-NP-Z]{3}[ ]?\d{4}", r"[A-HJ-NP-Z]{3}[ ]?\d\d[A-HJ-NP-Z]{2}"),
        check=check.nz_nhi,
    ),
    Identifier(
        "SG_NRIC_FIN",
        "card",
        "nric, fin, nric no, nric fin, nric number, fin number, singapore id, ic number",
        sure=(r"[STFGM]\d{7}[A-Z]",),
        likely=(r"[STFGM][ -]?\d{7}[ -]?[A-Z]",),
        check=check.sg_nric,
    ),
    Identifier(
        "TH_TNIN",
        "national",
        "thai national id, thai id, tnin, เลขประจำตัวประชาชน, เลขบัตรประชาชน, เลขประจำตัว, บัตรประชาชน, thai id number",
        sure=(r"[1-8]-\d{4}-\d{5}-\d\d-\d",),
        likely=(r"[1-8][ -]?\d{4}[ -]?\d{5}[ -]?\d\d[ -]?\d",),
        check=check.th_tnin,
    ),
    Identifier(
        "TH_TNIN_NAMED",
        "",
        "",
        sure=(r"(?:เลขประจำตัวประชาชน|เลขบัตรประชาชน|บัตรประชาชน)[^\d\n]{0,16}(?P<value>[1-8](?:[ -]?\d){12})",),
        check=check.th_tnin,
    ),
    Identifier(
        "TW_ID",
        "card",
        "身分證, 身分證字號, 統一編號, 身分證統一編號, taiwan id, 身份證字號, 國民身分證, 居留證, arc number",
        likely=(r"[A-Z][1289]\d{8}",),
        check=check.tw_id,
    ),
    Identifier(
        "TW_ID_NAMED",
        "",
        "",
        sure=(
            r"(?:身[分份]證(?:字號|統一編號|號碼)?|居留證(?:號碼)?)[^A-Z\d\n]{0,8}(?P<value>[A-Z][1289]\d{8})",
        ),
        check=check.tw_id,
    ),
)
