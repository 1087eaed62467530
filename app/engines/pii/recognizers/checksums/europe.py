# ruff: noqa: PLR2004 - every number is one of a published check
"""Published checks of European national identifiers; each takes compact upper-case text of the right shape."""

from collections import Counter

from app.engines.pii.recognizers.checksums.shared import (
    is_date,
    is_day_first,
    is_luhn,
    is_mod_11_10,
    is_uniform,
    is_verhoeff,
    is_year_first,
    numbers,
    weighted,
)

_DNI = "TRWAGMYFPDXBNJZSQVHLCKE"
_PPSN = "WABCDEFGHIJKLMNOPQRSTUV"
_HETU = "0123456789ABCDEFHJKLMNPRSTUVWXY"
_FISCAL_ODD = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23)
_FISCAL_MONTHS = "ABCDEHLMPRST"
_OMOCODIA = str.maketrans("LMNPQRSTUV", "0123456789")
_NIF_OTHERS = ("45", "70", "71", "72", "74", "75", "77", "78", "79")  # people abroad, estates, funds
_TEN = 10


def at_svnr(text: str) -> bool:
    """Austria: four digits, the last of them the check, and the birth date (months up to 15, if serials ran out)."""
    check = weighted(text[:3] + text[4:], (3, 7, 9, 5, 8, 4, 2, 1, 6)) % 11
    return check == int(text[3]) and 1 <= int(text[4:6]) <= 31 and 1 <= int(text[6:8]) <= 15


def be_niss(text: str) -> bool:
    """Belgium: birth date (months plus 20 or 40 for BIS numbers), serial, 97 less the remainder."""
    serial, key = text[:9], int(text[9:])
    plausible = int(text[2:4]) % 20 <= 12 and int(text[2:4]) < 60 and int(text[4:6]) <= 31
    recent = text[0] < "5" and key == 97 - int("2" + serial) % 97
    return plausible and (recent or key == 97 - int(serial) % 97)


def bg_egn(text: str) -> bool:
    """Bulgaria: birth date (months plus 20 or 40 by century), serial, mod 11."""
    month = int(text[2:4]) % 20
    if int(text[2:4]) > 52 or not is_date(int(text[:2]), month, int(text[4:6])):
        return False
    return weighted(text[:9], (2, 4, 8, 5, 10, 9, 7, 3, 6)) % 11 % 10 == int(text[9])


def cy_tic(text: str) -> bool:
    """Cyprus: eight digits and a letter."""
    total = sum(_FISCAL_ODD[int(digit)] for digit in text[0:8:2]) + sum(map(int, text[1:8:2]))
    return chr(ord("A") + total % 26) == text[8]


def cz_rodne_cislo(text: str) -> bool:
    """Czechia and Slovakia: birth date (months plus 20, 50 or 70), serial, divisible by 11 since 1954."""
    month = int(text[2:4]) % 50
    month -= 20 if month > 20 else 0
    if not is_date(int(text[:2]), month, int(text[4:6])):
        return False
    if len(text) < _TEN:
        return int(text[:2]) < 54 and text[6:] != "000"
    return int(text) % 11 == 0 or (int(text[:9]) % 11 == _TEN and text[9] == "0")


def de_tax_id(text: str) -> bool:
    """Germany: one of the first ten digits occurs twice or three times; ISO 7064 mod 11,10."""
    often = [count for count in Counter(text[:10]).values() if count > 1]
    return len(often) == 1 and often[0] <= 3 and text[0] != "0" and is_mod_11_10(text)


def de_svnr(text: str) -> bool:
    """Germany, pension insurance: area, birth date, initial, serial, check."""
    day = int(text[2:4])
    if not (1 <= day <= 31 or 51 <= day <= 81) or not 1 <= int(text[4:6]) <= 12:
        return False
    spelled = text[:8] + f"{ord(text[8]) - 64:02}" + text[9:11]
    products = (d * w for d, w in zip(numbers(spelled), (2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1), strict=True))
    return sum(sum(divmod(product, 10)) for product in products) % 10 == int(text[11])


def de_kvnr(text: str) -> bool:
    """Germany, health insurance: a letter, eight digits, Luhn over the letter's place in the alphabet."""
    return is_luhn(f"{ord(text[0]) - 64:02}{text[1:]}")


def de_document(text: str) -> bool:
    """Germany, identity cards and passports: the last digit is the check digit of ICAO 9303."""
    return weighted(text[:-1], (7, 3, 1)) % 10 == int(text[-1])


def dk_cpr(text: str) -> bool:
    """Denmark: birth date (days plus 60 for replacement numbers) and serial; mod 11 was given up in 2007."""
    return is_date(int(text[4:6]), int(text[2:4]), int(text[:2]) % 60)


def ee_isikukood(text: str) -> bool:
    """Estonia and Lithuania: sex and century, birth date, serial, mod 11 in two steps."""
    check = weighted(text[:10], (1, 2, 3, 4, 5, 6, 7, 8, 9, 1)) % 11
    if check == _TEN:
        check = weighted(text[:10], (3, 4, 5, 6, 7, 8, 9, 1, 2, 3)) % 11 % 10
    return check == int(text[10]) and "1" <= text[0] <= "8" and is_year_first(text[1:])


def es_nif(text: str) -> bool:
    """Spain: DNI, NIE (X, Y, Z) and the numbers of minors and foreigners (K, L, M) with their letter."""
    first = {"X": "0", "Y": "1", "Z": "2", "K": "", "L": "", "M": ""}.get(text[0], text[0])
    return _DNI[int(first + text[1:-1]) % 23] == text[-1]


def es_cif(text: str) -> bool:
    """Spain, organisations: a letter, seven digits, a digit or letter."""
    total = (sum(sum(divmod(2 * int(d), 10)) for d in text[1:8:2]) + sum(map(int, text[2:8:2]))) % 10
    check = (10 - total) % 10
    return text[8] in {str(check), "JABCDEFGHI"[check]}


def es_nuss(text: str) -> bool:
    """Spain, social security: province, number, remainder by 97."""
    province, number = int(text[:2]), int(text[2:10])
    if not (1 <= province <= 53 or province == 66):
        return False
    whole = province * 10_000_000 + number if number < 10_000_000 else int(text[:10])
    return whole % 97 == int(text[10:])


def fi_hetu(text: str) -> bool:
    """Finland: birth date, century, serial, remainder by 31 as a letter."""
    serial = text[-4:-1]
    return is_day_first(text) and serial >= "002" and _HETU[int(text[:6] + serial) % 31] == text[-1]


def fr_nir(text: str) -> bool:
    """France: sex, year, month, place (Corsica 2A and 2B), serial, key by 97."""
    number = text[:13].replace("2A", "19").replace("2B", "18") if text[5:7] in {"2A", "2B"} else text[:13]
    return number.isdigit() and 97 - int(number) % 97 == int(text[13:])


def fr_spi(text: str) -> bool:
    """France, tax: ten digits and their remainder by 511."""
    return int(text[:10]) % 511 == int(text[10:])


def gr_afm(text: str) -> bool:
    """Greece, tax: powers of two, mod 11."""
    return not is_uniform(text) and weighted(text[:8], (256, 128, 64, 32, 16, 8, 4, 2)) % 11 % 10 == int(
        text[8]
    )


def gr_amka(text: str) -> bool:
    """Greece, social security: birth date, serial, Luhn."""
    return is_day_first(text) and is_luhn(text)


def hr_oib(text: str) -> bool:
    """Croatia: ISO 7064 mod 11,10."""
    return not is_uniform(text) and is_mod_11_10(text)


def hu_taj(text: str) -> bool:
    """Hungary, health insurance: weights 3 and 7, mod 10."""
    return not is_uniform(text) and weighted(text[:8], (3, 7)) % 10 == int(text[8])


def hu_adoazonosito(text: str) -> bool:
    """Hungary, tax: an 8, days since 1867, serial, mod 11."""
    return text[0] == "8" and weighted(text[:9], (1, 2, 3, 4, 5, 6, 7, 8, 9)) % 11 == int(text[9])


def ie_ppsn(text: str) -> bool:
    """Ireland: seven digits, a letter, mod 23, and since 2013 a second letter that counts."""
    second = _PPSN.index(text[8]) if len(text) > 8 and text[8] not in "WTX" else 0
    return _PPSN[(weighted(text[:7], (8, 7, 6, 5, 4, 3, 2)) + 9 * second) % 23] == text[7]


def it_fiscal_code(text: str) -> bool:
    """Italy: name, birth date, place, control letter; letters may stand for digits (omocodia)."""
    plain = text[:6] + text[6:8].translate(_OMOCODIA) + text[8] + text[9:11].translate(_OMOCODIA)
    day = int(plain[9:11]) if plain[9:11].isdigit() else 0
    if plain[8] not in _FISCAL_MONTHS or not is_date(2000, _FISCAL_MONTHS.index(plain[8]) + 1, day % 40):
        return False
    places = [int(c) if c.isdigit() else ord(c) - 65 for c in text[:15]]
    total = sum(_FISCAL_ODD[place] for place in places[::2]) + sum(places[1::2])
    return chr(65 + total % 26) == text[15]


def lu_matricule(text: str) -> bool:
    """Luxembourg: birth date, serial, one digit by Luhn and one by Verhoeff."""
    born = 1880 <= int(text[:4]) <= 2099 and is_date(int(text[:4]), int(text[4:6]), int(text[6:8]))
    return born and is_luhn(text[:12]) and is_verhoeff(text[:11] + text[12])


def lv_personas_kods(text: str) -> bool:
    """Latvia: birth date or, since 2017, 32; serial, mod 11."""
    if text[:2] != "32" and not is_day_first(text):
        return False
    return (1 + weighted(text[:10], (10, 5, 8, 4, 2, 1, 6, 3, 7, 9))) % 11 % 10 == int(text[10])


def nl_bsn(text: str) -> bool:
    """Netherlands: the eleven test."""
    return not is_uniform(text) and weighted(text, (9, 8, 7, 6, 5, 4, 3, 2, -1)) % 11 == 0


def no_fodselsnummer(text: str) -> bool:
    """Norway: birth date (days plus 40 for D numbers, months plus 40 for test data), two checks by 11."""
    born = is_date(int(text[4:6]), int(text[2:4]) % 40, int(text[:2]) % 40)
    first = weighted(text[:10], (3, 7, 6, 1, 8, 9, 4, 5, 2, 1)) % 11
    return born and first == 0 and weighted(text, (5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1)) % 11 == 0


def pl_pesel(text: str) -> bool:
    """Poland: birth date (months plus 20, 40, 60 or 80 by century), serial, mod 10."""
    born = is_date(int(text[:2]), int(text[2:4]) % 20, int(text[4:6]))
    return born and weighted(text, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1)) % 10 == 0


def pl_nip(text: str) -> bool:
    """Poland, tax: mod 11."""
    return not is_uniform(text) and weighted(text[:9], (6, 5, 7, 2, 3, 4, 5, 6, 7)) % 11 == int(text[9])


def pl_id_card(text: str) -> bool:
    """Poland, identity card: three letters, a check digit, five digits."""
    return weighted(text, (7, 3, 1, 9, 7, 3, 1, 7, 3)) % 10 == 0


def pl_regon(text: str) -> bool:
    """Poland, businesses: mod 11."""
    return not is_uniform(text) and weighted(text[:8], (8, 9, 2, 3, 4, 5, 6, 7)) % 11 % 10 == int(text[8])


def pt_nif(text: str) -> bool:
    """Portugal, tax: a kind of taxpayer, mod 11."""
    check = 11 - weighted(text[:8], (9, 8, 7, 6, 5, 4, 3, 2)) % 11
    issued = text[0] in "1235689" or text.startswith(_NIF_OTHERS)
    return issued and (check if check < _TEN else 0) == int(text[8])


def pt_cc(text: str) -> bool:
    """Portugal, citizen card: twelve characters by Luhn with letters counted from ten."""
    return sum(v if place % 2 else v * 2 - 9 * (v > 4) for place, v in enumerate(numbers(text))) % 10 == 0


def pt_niss(text: str) -> bool:
    """Portugal, social security: primes as weights, mod 10."""
    return 9 - weighted(text[:10], (29, 23, 19, 17, 13, 11, 7, 5, 3, 2)) % 10 == int(text[10])


def ro_cnp(text: str) -> bool:
    """Romania: sex and century, birth date, county, serial, mod 11."""
    county = int(text[7:9])
    if (
        text[0] == "0"
        or not is_year_first(text[1:])
        or not (1 <= county <= 52 or county in {70, 80, 81, 82, 83})
    ):
        return False
    check = weighted(text[:12], (2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9)) % 11
    return (check if check < _TEN else 1) == int(text[12])


def se_personnummer(text: str) -> bool:
    """Sweden: birth date (days plus 60 for coordination numbers), serial, Luhn."""
    short = text[-10:]
    return is_date(int(short[:2]), int(short[2:4]), int(short[4:6]) % 60) and is_luhn(short)


def se_orgnr(text: str) -> bool:
    """Sweden, organisations: the third digit is 2 or more; Luhn."""
    return text[-8] >= "2" and is_luhn(text[-10:])


def si_emso(text: str) -> bool:
    """Slovenia and its neighbours: birth date with three digits of the year, region, serial, mod 11."""
    year = int(text[4:7]) + (1000 if text[4] == "9" else 2000)
    if text[4] not in "90" or not is_date(year, int(text[2:4]), int(text[:2])):
        return False
    return -weighted(text[:12], (7, 6, 5, 4, 3, 2)) % 11 % 10 == int(text[12])


def si_tax(text: str) -> bool:
    """Slovenia, tax: mod 11."""
    check = 11 - weighted(text[:7], (8, 7, 6, 5, 4, 3, 2)) % 11
    return text[0] != "0" and check <= _TEN and check % 10 == int(text[7])


def ch_ahv(text: str) -> bool:
    """Switzerland: 756, nine digits, the check digit of EAN-13."""
    return weighted(text, (1, 3)) % 10 == 0


def uk_nhs(text: str) -> bool:
    """United Kingdom, health service: mod 11."""
    return not is_uniform(text) and weighted(text, (10, 9, 8, 7, 6, 5, 4, 3, 2, 1)) % 11 == 0


def uk_chi(text: str) -> bool:
    """Scotland, health: birth date, serial, mod 11."""
    return is_day_first(text) and uk_nhs(text)


def uk_utr(text: str) -> bool:
    """United Kingdom, tax: the first digit checks the other nine."""
    return "21987654321"[weighted(text[1:], (6, 7, 8, 9, 10, 5, 4, 3, 2)) % 11] == text[0]


def tr_tckn(text: str) -> bool:
    """Türkiye: two check digits."""
    values = numbers(text)
    tenth = (7 * sum(values[0:9:2]) - sum(values[1:8:2])) % 10
    return values[0] != 0 and tenth == values[9] and sum(values[:10]) % 10 == values[10]
