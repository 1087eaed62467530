# ruff: noqa: E501 - tables of templates and values keep a row on a line
"""Labelled texts per class of identifier, in two halves by template and cue: one to tune on, one kept apart to judge.

Each text holds one value of its class, or is a hard negative of it: the same shape where it means something else.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from tests import pii_identifier_places as places
from tests import pii_identifier_values as values
from tests.pii_identifier_values import Value

Half = Literal["development", "held-out"]

_FRAMES = (
    "{cue}: {v}", "{cue} {v}", "Her {cue} is {v}.", '{{"{key}": "{v}", "status": "open"}}', "{key}={v}", "| {cue} | {v} |",
    "Hi team, please update the record, {cue} {v}, before Friday.", "2026-03-01 10:22:01 INFO lookup {key}={v} took 12 ms",
    "- {cue}: {v}\n- Status: active", "Could you check {cue} {v} for me? Thanks", "<{key}>{v}</{key}>", "SELECT * FROM t WHERE {key} = '{v}'",
    "{cue} - {v}", "As agreed on the phone, the {cue} is {v}, please confirm.", "{key}: {v}\nregion: north", "Notes: {cue} ({v}) was verified today.",
    "{cue}:\n{v}", "the {cue} was {v} last time", "{cue} = {v};", "Re: {cue} {v} - follow up",
)  # fmt: skip
"""Templates with a cue in words, or as the name of a field; the second half of the lines judges."""

_BARE = (
    "Please use {v} from now on.", "{v}", "contact,{v},open", '["{v}", "other"]', "I think it was {v}, but ask again.",
    "Attached you find the form ({v}).", "value={v}", "- {v}\n- see below", "> {v} wrote:", "INSERT INTO t VALUES (7, '{v}', NULL)",
    "got it, {v} then!", "msg='{v}' level=info",
)  # fmt: skip


class Case(NamedTuple):
    """A text with the one value in it that must be found; a hard negative has none (``start`` equals ``end``)."""

    text: str
    start: int
    end: int
    kind: str


@dataclass(frozen=True)
class Kind:
    """A class of identifiers: the labels that are right, its values, its cues by half, and what is none of it."""

    labels: frozenset[str]
    value: Value
    cues: tuple[str, ...] = ()
    bare: bool = False
    frames: tuple[str, ...] = ()
    negatives: tuple[str, ...] = ()
    strict: bool = False


def _kind(labels: str, value: Value, cues: str = "", *, bare: bool = False, strict: bool = False,
          frames: tuple[str, ...] = (), negatives: tuple[str, ...] = ()) -> Kind:  # fmt: skip
    spelled = tuple(cue.strip() for cue in cues.split(",") if cue.strip())
    return Kind(frozenset(labels.split()), value, spelled, bare, frames, negatives, strict)


KINDS: dict[str, Kind] = {
    "e-mail": _kind("EMAIL", values.email, "e-mail, email address, Mail, correo, contact, Courriel", bare=True,
        frames=("mailto:{v}", "From: Jo <{v}>", "cc:{v};", "write to {v}."),
        negatives=("npm install react@18.2.0", "@Override public void run()", "user@ host", "git@v2", "ratio 3@4")),
    "phone": _kind("PHONE", values.phone, "phone, Tel., mobile, Telefon, móvil, téléphone, Handy, cell phone, WhatsApp, telefono",
        bare=True, frames=("Call me at {v}", "tel:{v}", "Ring {v} after six.", "Best regards\nJo\n{v}"),
        negatives=("Order 4711-0815-2342 shipped", "version 10.15.7 of 2024-05-06", "ISBN 978-3-16-148410-0", "1,234,567.89 EUR",
                   "[2024-05-06 10:20:30,123] worker 12345", "lat 48.208174 lon 16.373819", "invoice 2024-001234 of 12.03.2024",
                   "10.0.0.1 192.168.10.20", "sizes 1024 2048 4096", "range 1000-2000 and 3000-4000", "ts=1700000000 id=9876543210",
                   "0x1f 0755 00001234", "12.5 13.75 14.25 100.00", "2024-01-01 2024-12-31", "part no. 555-1234-77", "$1.234.567",
                   "3.14159265358979", "UPC 036000291452", "ticket 00412-2026")),
    "fax": _kind("PHONE", values.phone, "fax, Fax no., telefax, fax number, Télécopie, facsimile"),
    "ssn": _kind("SSN", values.ssn, "SSN, social security number, Social Security No., SSN#, soc sec",
        negatives=("part 123-456-789", "2024-05-0612", "order 219099999 shipped")),
    "card": _kind("CARD", values.card, "card number, credit card, Visa, Kreditkarte, tarjeta, CC", bare=True,
        negatives=("tracking 4111 1111 1111 1112", "id 1234567812345678", "order 5500 0000 0000 0001")),
    "card track": _kind("CARD", values.track, "track 2, magstripe, swipe, track data", bare=True),
    "cvv": _kind("CVV", values.cvv, "CVV, CVC, security code, CVV2, card verification value, Prüfziffer der Karte, CVC2, CID",
        negatives=("cvv required", "section 123", "CVE-2024-123", "security code review 2024", "the cvs branch 123")),
    "card expiry": _kind("CARD_EXPIRY", values.expiry, "exp, expiry date, expires, exp. date, valid thru, card expiration, gültig bis, expiration date",
        negatives=("page 07/12", "06/2027 is the release", "chapter 11-26")),
    "iban": _kind("IBAN", values.iban, "IBAN, account, Konto, transfer to, compte, bank account", bare=True,
        negatives=("DE00 3704 0044 0532 0130 00", "GB12ABCD", "FR12 is a road", "IT60 rev B", "NO12345678")),
    "bic": _kind("BIC", values.bic, "BIC, SWIFT, SWIFT code, BIC/SWIFT, swift_bic",
        negatives=("the SWIFT language", "DEUTSCHE BANK", "APPLICATION is BUSINESS", "SWIFT PACKAGES")),
    "bank account": _kind("BANK_ACCOUNT ACCOUNT", lambda d: values.digits(d, d.randint(8, 12)),
        "account number, bank account, Kontonummer, account no., acct, número de cuenta, numéro de compte, conto corrente, checking account, rekeningnummer",
        negatives=("account 2 of 3", "the account has 15 users", "Account created 2024-05-06", "accounts: 12345 total")),
    "routing": _kind("ROUTING", values.routing, "routing number, sort code, ABA, IFSC, BSB, bank routing number, ABA routing, IFSC code, branch sort code"),
    "ip": _kind("IP", values.ip, "IP, ip address, client ip, remote_addr, host", bare=True,
        frames=("[{v}]:8080", "{v}/24", "GET / from {v} 200", "({v})"),
        negatives=("version 1.2.3", "std::vector", "12:30:45", "section 1.2.3.4.5", "a[::2]")),
    "mac": _kind("MAC", values.mac, "MAC, mac address, hardware address, ether", bare=True, negatives=("12:34:56", "aa:bb:cc", "00-11-22")),
    "imei": _kind("DEVICE_ID", values.imei, "IMEI, IMEI number, device imei, IMEI no.", negatives=("id 123456789012345", "row 350000000000001")),
    "device": _kind("DEVICE_ID", values.device, "serial number, device id, IMSI, Seriennummer, ICCID, serial no., device serial number, S/N, número de serie, SIM card number",
        negatives=("serial port COM3", "device 3 of 4", "serial killer 1984", "serialVersionUID")),
    "vin": _kind("VIN", values.vin, "VIN, vehicle identification number, Fahrgestellnummer, chassis number, VIN number", bare=True,
        negatives=("ABCDEFGHJKLMNPRST", "12345678901234567", "commit 1a2b3c4d5e6f7a8b9")),
    "plate": _kind("PLATE", values.plate, "license plate, number plate, Kennzeichen, plate, licence plate, matrícula, registration plate, vehicle registration, targa, kenteken",
        negatives=("plate 3 of steel", "a plate of pasta 12", "model ABC-1234", "room B-12 1234")),
    "mrn": _kind("MRN", values.number_of_person, "MRN, medical record number, patient id, Patientennummer, chart number, med rec no., medical record no., patient number, MRN#, record number of the patient",
        negatives=("medical record of 2024", "patients: 12345", "a record number of 1200 visitors", "chart 12")),
    "health plan": _kind("MEMBER_ID", values.number_of_person, "member id, health plan number, subscriber id, insurance id, beneficiary number, Versichertennummer, health insurance number, member number, group number, policy holder id",
        negatives=("members: 12345", "insurance for 2024", "plan 9 from space")),
    "customer number": _kind("CUSTOMER_ID ACCOUNT", values.number_of_person, "customer number, client id, Kundennummer, customer id, número de cliente, account id, numéro client, customer no., codice cliente, klantnummer",
        negatives=("customers: 48211", "10432 customers", "customer count 12345", "client version 12.3.4567")),
    "employee number": _kind("EMPLOYEE_ID", values.number_of_person, "employee id, staff number, Personalnummer, employee number, badge number, matricule, payroll number, emp id, employee no., personeelsnummer",
        negatives=("employees: 48211", "12000 employees", "staff of 12345", "badge 3")),
    "student number": _kind("STUDENT_ID", values.number_of_person, "student id, student number, Matrikelnummer, student no., enrolment number, matriculation number",
        negatives=("students: 48211", "student of 2024")),
    "policy number": _kind("POLICY MEMBER_ID", values.number_of_person, "policy number, policy no., insurance policy number, Versicherungsnummer, póliza número, policy id, numéro de police, Policennummer",
        negatives=("policy 2024", "policies: 12345", "policy version 2.0.1234")),
    "claim number": _kind("CLAIM", values.number_of_person, "claim number, claim id, Schadennummer, claim no., insurance claim number, claim reference",
        negatives=("claims: 12345", "they claim 12345 users", "claim 3 of patent 20240012")),
    "certificate": _kind("LICENSE MEDICAL NPI", values.number_of_person, "license number, certificate number, licence no., medical license, Führerscheinnummer, driver's license, permit number, driving licence number, bar number",
        negatives=("license 2.0", "Apache License 2.0, January 2004", "certificate of 2024", "licensed to 12345 users")),
    "DEA": _kind("MEDICAL LICENSE", values.dea, "DEA, DEA number, DEA registration, DEA no., DEA#, prescriber DEA", bare=True,
        negatives=("AB1234567", "part AB1234560", "FA1234567 was built")),
    "NPI": _kind("NPI", values.npi, "NPI, NPI number, provider NPI, National Provider Identifier, NPI no., npi",
        negatives=("order 1234567890", "npi of 2024", "1234567893")),
    "biometric": _kind("BIOMETRIC_ID", values.number_of_person, "fingerprint id, biometric id, face template id, voiceprint id, biometric template id, retina scan id, biometric identifier",
        negatives=("fingerprint of 12345 files", "SHA256 fingerprint", "face 12345")),
    "birth date": _kind("DATE", places.date, "date of birth, DOB, born, geboren am, Geburtsdatum, né le, fecha de nacimiento, nascita, birthdate, data de nascimento, geboortedatum, birthday, date de naissance, nato il",
        negatives=("released 2024-05-06", "meeting on March 12, 2024", "12.03.2024 10:15 build finished", "due 05/06/2024")),
    "health date": _kind("DATE", places.english_date, "admission date, date of discharge, admitted on, discharged, date of death, date of service, discharge date, died on, surgery date, date of admission",
        negatives=("admin date", "release 2024-05-06", "invoice of May 6, 2024")),
    "age over 89": _kind("AGE", places.age_over_89, frames=("a {v}-year-old woman", "He is {v} years old.", "aged {v}, living alone", "Age: {v}", '"age": {v}',
        "patient age={v}", "{v} yo male", "{v} y/o with pneumonia", "Alter: {v}", "she turned {v} years of age", "{v} Jahre alt", "edad: {v}", "{v}-year old", "tiene {v} años"),
        negatives=("a 45-year-old firm", "98 percent", "95th percentile", "pages 90 to 95", "lasted 95 years", "average: 97", "97 years ago", "image: 96")),
    "post code": _kind("POSTCODE", places.postcode, "zip code, postcode, postal code, PLZ, ZIP, código postal, code postal, CAP, CEP, Postleitzahl, pincode, post code",
        negatives=("zip 3 files", "zip 20240012 bytes", "code 12345", "error code 10115")),
    "address": _kind("ADDRESS", places.address, "address, Adresse, home address, ships to, dirección, lives at, mailing address, indirizzo", bare=True,
        negatives=("2 Street Fighter games", "10 way handshake", "5 road tests", "1 drive failed", "3 court cases", "the 12 place settings", "4 lane changes per mile", "see chapter 5, 10115 words")),
    "coordinates": _kind("COORDINATES", values.coordinates, "coordinates, GPS, location, lat/long, position", bare=True,
        negatives=("3.141593, 2.718282", "0.123456, 0.654321", "loss 0.693147, 1.098612", "bbox 10.5, 20.25", "0.5, 0.75")),
    "crypto": _kind("CRYPTO", values.crypto, "wallet, BTC address, send to wallet, wallet address, crypto address, deposit address",
        negatives=("commit 8f14e45fceea167a5a36dedd4bea2543", "id 3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLx")),
    "user name": _kind("USERNAME", values.username, "username, user name, login, Benutzername, user id, login name, user, nombre de usuario, screen name, nom d'utilisateur",
        negatives=("username is required", "login failed", "user not found", "user: the person who logs in", "login page", "username: string", "user = get_user()", "user id must not be empty")),
    "password": _kind("PASSWORD SECRET", values.password, "password, Passwort, passwd, contraseña, pwd, mot de passe, passphrase, wachtwoord, temporary password, senha",
        negatives=("password is required", "password: str", "password = getpass()", "password must have 8 characters", "reset your password here", "password=None", "PASSWORD_MIN_LENGTH = 12", "password: process.env.DB_PASSWORD1")),
    "pin": _kind("PIN PASSWORD", values.pin, "PIN, PIN code, Geheimzahl, verification code, pin number, one-time code, OTP, access PIN",
        negatives=("pin 13 of the board", "PIN version==1.2.3", "pin the version 1234", "pins: 4096")),
    "profile page": _kind("URL", places.profile, "profile, website, LinkedIn, homepage", bare=True, strict=True),
    "date (strict)": _kind("DATE", places.date, "date, Datum, signed on, on, le, fecha", bare=True, strict=True,
        negatives=("version 1.2.3", "ratio 1/2", "10-12 people")),
}  # fmt: skip


def cases(kind: str, half: Half, count: int, seed: int = 5) -> Iterator[Case]:
    """Yield so many texts of ``kind`` and its hard negatives, the same for the same seed."""
    draw = random.Random(f"{kind} {half} {seed}")
    what, first = KINDS[kind], 0 if half == "development" else 1
    own = [*what.frames, *(_BARE if what.bare else ())]
    frames = [*_FRAMES[first::2], *own[first::2]] if what.cues else own[first::2]
    cues = what.cues[first::2] or what.cues or ("",)
    for _ in range(count):
        cue, value = draw.choice(cues), what.value(draw)
        start, end = draw.choice(frames).format(cue=cue, key=_key(cue, draw), v="\0").split("\0", 1)[0:2]
        if "\0" in end:
            end = end.replace("\0", value)
        yield Case(start + value + end, len(start), len(start) + len(value), kind)
    for text in what.negatives[first::2]:
        yield Case(text, 0, 0, kind)


def _key(cue: str, draw: random.Random) -> str:
    """Return the name that a programmer gives a field for ``cue``."""
    parts = [part for part in "".join(c if c.isalnum() else " " for c in cue.lower()).split() if part]
    camel = parts[0] + "".join(part.title() for part in parts[1:]) if parts else "value"
    return draw.choice(("_".join(parts) or "value", camel))
