# ruff: noqa: PLR2004 - every number is one of a published check
"""Published checks of identifiers outside Europe and of travel documents; each takes compact upper-case text."""

from app.engines.pii.recognizers.checksums.shared import (
    is_date,
    is_luhn,
    is_mod_37_36,
    is_mrz,
    is_uniform,
    is_verhoeff,
    is_year_first,
    numbers,
    weighted,
)

_SPANISH = "0123456789ABCDEFGHIJKLMNÑOPQRSTUVWXYZ"
_RFC = "0123456789ABCDEFGHIJKLMN&OPQRSTUVWXYZ Ñ"
_NHI = "ABCDEFGHJKLMNPQRSTUVWXYZ"
_TAIWAN = "ABCDEFGHJKLMNPQRSTUVXYWZIO"
_NRIC = {"S": (0, "JZIHGFEDCBA"), "T": (4, "JZIHGFEDCBA"), "F": (0, "XWUTRQPNMLK"), "G": (4, "XWUTRQPNMLK")}
_NRIC["M"] = (3, "XWUTRQPNJLK")
_TEN = 10
_CPF_LENGTH, _SHORT_MRZ = 11, 72


def ae_emirates_id(text: str) -> bool:
    """Emirates: 784, year of birth, serial, Luhn."""
    return text[:3] == "784" and 1900 <= int(text[3:7]) <= 2099 and is_luhn(text)


def ar_cuit(text: str) -> bool:
    """Argentina: a known prefix, mod 11."""
    check = 11 - weighted(text[:10], (5, 4, 3, 2, 7, 6, 5, 4, 3, 2)) % 11
    return (
        text[:2] in {"20", "23", "24", "25", "26", "27", "30", "33", "34"}
        and "012345678990"[check] == text[10]
    )


def au_abn(text: str) -> bool:
    """Australia, business: mod 89."""
    weights = (10, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19)
    return text[:2] > "10" and (weighted(text, weights) - 10) % 89 == 0


def au_acn(text: str) -> bool:
    """Australia, company: mod 10."""
    return not is_uniform(text) and -weighted(text[:8], (8, 7, 6, 5, 4, 3, 2, 1)) % 10 == int(text[8])


def au_medicare(text: str) -> bool:
    """Australia, health: the ninth digit checks eight."""
    return "2" <= text[0] <= "6" and weighted(text[:8], (1, 3, 7, 9)) % 10 == int(text[8])


def au_tfn(text: str) -> bool:
    """Australia, tax: mod 11."""
    return not is_uniform(text) and weighted(text, (1, 4, 3, 7, 5, 8, 6, 9, 10)) % 11 == 0


def _mod_11_or_0(values: list[int], first: int, highest: int) -> int:
    """Return the Brazilian check digit: weights fall from ``first`` to 2, then from ``highest``."""
    weights = [*range(first, 1, -1), *range(highest, 1, -1)]
    rest = sum(value * weight for value, weight in zip(values, weights, strict=False)) % 11
    return 0 if rest < 2 else 11 - rest


def br_cpf(text: str) -> bool:
    """Brazil, persons: two check digits, mod 11."""
    values = numbers(text)
    first, second = _mod_11_or_0(values[:9], 10, 2), _mod_11_or_0(values[:10], 11, 2)
    return not is_uniform(text) and [first, second] == values[9:]


def br_cnpj(text: str) -> bool:
    """Brazil, companies: two check digits, mod 11; letters, allowed since 2026, have values from 17."""
    values = [ord(character) - 48 for character in text]
    first, second = _mod_11_or_0(values[:12], 5, 9), _mod_11_or_0(values[:13], 6, 9)
    return not is_uniform(text) and [first, second] == values[12:]


def br_cnh(text: str) -> bool:
    """Brazil, driving licence: two check digits, mod 11; the second is reduced by 2 if the first was ten."""
    first = weighted(text[:9], (9, 8, 7, 6, 5, 4, 3, 2, 1)) % 11
    second = weighted(text[:9], (1, 2, 3, 4, 5, 6, 7, 8, 9)) % 11 - (2 if first >= _TEN else 0)
    checks = (0 if first >= _TEN else first, second % 11 if second % 11 < _TEN else 0)
    return not is_uniform(text) and checks == (int(text[9]), int(text[10]))


def br_pis(text: str) -> bool:
    """Brazil, social integration: mod 11."""
    check = 11 - weighted(text[:10], (3, 2, 9, 8, 7, 6, 5, 4, 3, 2)) % 11
    return not is_uniform(text) and (check if check < _TEN else 0) == int(text[10])


def br_voter(text: str) -> bool:
    """Brazil, voters: serial, state, two check digits, mod 11."""
    first = weighted(text[:8], (2, 3, 4, 5, 6, 7, 8, 9)) % 11 % 10
    second = weighted(text[8:10] + str(first), (7, 8, 9)) % 11 % 10
    return 1 <= int(text[8:10]) <= 28 and (first, second) == (int(text[10]), int(text[11]))


def ca_sin(text: str) -> bool:
    """Canada: Luhn; 0 is for tests and 8 for businesses."""
    return text[0] not in "08" and is_luhn(text)


def ca_health_card(text: str) -> bool:
    """Canada: Ontario by Luhn, British Columbia by mod 11, Quebec by the date of birth."""
    if text[0].isalpha():
        return is_date(int(text[4:6]), int(text[6:8]) % 50, int(text[8:10]))
    if is_luhn(text[:10]):
        return True
    rest = weighted(text[1:9], (2, 4, 8, 5, 10, 9, 7, 3)) % 11
    return text[0] == "9" and len(text) == _TEN and -rest % 11 == int(text[9])


def cl_rut(text: str) -> bool:
    """Chile: mod 11 with K for ten."""
    total = sum(int(digit) * (2 + place % 6) for place, digit in enumerate(reversed(text[:-1])))
    return not is_uniform(text) and "0K987654321"[total % 11] == text[-1]


def cn_resident_id(text: str) -> bool:
    """China: region, birth date, serial, ISO 7064 mod 11-2."""
    if not is_date(int(text[6:10]), int(text[10:12]), int(text[12:14])):
        return False
    total = weighted(text[:17], (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2))
    return "10X98765432"[total % 11] == text[17]


def hk_hkid(text: str) -> bool:
    """Hong Kong: one or two letters, six digits, mod 11 with A for ten."""
    letters = [36, *numbers(text[:-1])][-8:]
    check = 10 if text[-1] == "A" else int(text[-1])
    return (sum(v * w for v, w in zip(letters, range(9, 1, -1), strict=True)) + check) % 11 == 0


def il_id(text: str) -> bool:
    """Israel: nine digits by Luhn, leading zeros may be left out."""
    return not is_uniform(text) and is_luhn(text.zfill(9))


def in_aadhaar(text: str) -> bool:
    """India: twelve digits by Verhoeff, no palindrome, first digit above 1."""
    return text[0] > "1" and text != text[::-1] and is_verhoeff(text)


def in_gstin(text: str) -> bool:
    """India, goods and services tax: state, PAN (its serial begins at 0001), check by 36."""
    return 1 <= int(text[:2]) <= 38 and text[7:11] != "0000" and is_mod_37_36(text)


def jp_my_number(text: str) -> bool:
    """Japan: mod 11."""
    rest = weighted(text[:11], (6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2)) % 11
    return not is_uniform(text) and (0 if rest <= 1 else 11 - rest) == int(text[11])


def jp_corporate(text: str) -> bool:
    """Japan, companies: mod 9, the check digit comes first."""
    return 9 - weighted(text[1:], (2, 1)) % 9 == int(text[0])


def kr_rrn(text: str) -> bool:
    """Korea: birth date, sex and century, mod 11; numbers issued since October 2020 need not pass."""
    total = weighted(text[:12], (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5))
    issued = 13 if text[6] in "5678" else 11
    return is_year_first(text) and (issued - total % 11) % 10 == int(text[12])


def kr_brn(text: str) -> bool:
    """Korea, businesses: mod 10."""
    total = weighted(text[:9], (1, 3, 7, 1, 3, 7, 1, 3, 5)) + int(text[8]) * 5 // 10
    return not is_uniform(text) and -total % 10 == int(text[9])


def mx_curp(text: str) -> bool:
    """Mexico, population: name, birth date, sex, state, check."""
    total = sum(_SPANISH.index(c) * (18 - place) for place, c in enumerate(text[:17]))
    return is_year_first(text[4:]) and str(-total % 10) == text[17]


def mx_rfc(text: str) -> bool:
    """Mexico, tax: name, date, homoclave, check; the two generic numbers do not count."""
    total = sum(_RFC.index(c) * (13 - place) for place, c in enumerate(text[:-1].rjust(12)))
    return is_year_first(text[-9:]) and text[:4] not in {"XAXX", "XEXX"} and _RFC[-total % 11] == text[-1]


def ng_nin(text: str) -> bool:
    """Nigeria: Verhoeff."""
    return not is_uniform(text) and is_verhoeff(text)


def nz_ird(text: str) -> bool:
    """Inland Revenue, New Zealand: mod 11, with other weights if the result is ten."""
    padded = text.zfill(9)
    check = -weighted(padded[:8], (3, 2, 7, 6, 5, 4, 3, 2)) % 11
    if check == _TEN:
        check = -weighted(padded[:8], (7, 4, 3, 2, 5, 2, 7, 6)) % 11
    return 10_000_000 < int(text) < 150_000_000 and check == int(padded[8])


def nz_nhi(text: str) -> bool:
    """Health index, New Zealand: three letters and digits, mod 11; with letters at the end, mod 23 or 24."""
    values = [int(c) if c.isdigit() else _NHI.index(c) + 1 for c in text[:6]]
    total = sum(value * weight for value, weight in zip(values, range(7, 1, -1), strict=True))
    if text[6].isalpha():
        return text[6] in {_NHI[22 - total % 23], _NHI[23 - total % 24]}
    return total % 11 != 0 and (11 - total % 11) % 10 == int(text[6])


def sg_nric(text: str) -> bool:
    """Singapore: S, T, F, G and M series, each with its letters."""
    added, letters = _NRIC[text[0]]
    return letters[(weighted(text[1:8], (2, 7, 6, 5, 4, 3, 2)) + added) % 11] == text[8]


def th_tnin(text: str) -> bool:
    """Thailand: mod 11."""
    total = weighted(text[:12], (13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2))
    return not is_uniform(text) and (11 - total % 11) % 10 == int(text[12])


def tw_id(text: str) -> bool:
    """Taiwan: a letter for the place, sex, serial, mod 10."""
    tens, ones = divmod(_TAIWAN.index(text[0]) + 10, 10)
    return (tens + 9 * ones + weighted(text[1:9], (8, 7, 6, 5, 4, 3, 2, 1)) + int(text[9])) % 10 == 0


def us_itin(text: str) -> bool:
    """United States, taxpayers without a social security number: a 9, and a group that was issued."""
    group = int(text[3:5])
    return text[0] == "9" and group >= 50 and group not in {66, 67, 68, 69, 89, 93}


def za_id(text: str) -> bool:
    """South Africa: birth date, sex, citizenship, Luhn."""
    return is_year_first(text) and text[10] in "012" and is_luhn(text)


def mrz(text: str) -> bool:
    """ICAO 9303: document number, birth and expiry dates of a machine-readable zone, each with its check digit."""
    zone = text.replace("\\R", "").replace("\\N", "")
    if len(zone) == 90:
        return is_mrz(zone[5:15]) and is_mrz(zone[30:37]) and is_mrz(zone[38:45])
    line = zone[-(36 if len(zone) == _SHORT_MRZ else 44) :]
    return is_mrz(line[:10]) and is_mrz(line[13:20]) and is_mrz(line[21:28])
