# ruff: noqa: E501, RUF001 - each part of a pattern is on one line; letters of other alphabets are meant
"""Know the names of members that say what their value is: ``dob``, ``cardNumber``, ``Geburtsdatum``.

A value of such a member is read behind its name, as a person reads it. All other names are left out, as they would only
cost time.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final

from app.core.content.cues.member_words import spelled_out
from app.core.content.cues.reading import in_english

_LONGEST_NAME: Final = 64
_LONGEST_CUE: Final = 8
_SHORTEST_FOREIGN: Final = 4
"""Shorter words in plain letters mean something in too many languages."""

_CAMEL: Final = re.compile(r"(?<=[^\W_A-Z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD: Final = re.compile(r"[^\W_]+")
_COUNTED: Final = re.compile(r"\b([a-z]{3,})\d{1,2}\b")
"""A word and the number of its member among several: ``phone1``."""
_LETTERS: Final = str.maketrans({"ß": "ss", "ø": "o", "ı": "i", "đ": "d", "ł": "l", "æ": "ae"})

_WORDS: Final[frozenset[str]] = frozenset(
    """
    2fa aadhaar aadhar aaid aba abarouting abgabenkontonummer ablaufdatum abn abonne accession account accountname
    acct achternaam acn acra address adhaar adherent admis admise admission admitted adoazonosito adoazonositoja
    adoszam adres adresse adt advertising afa afiliacion afiliado afip afm age aged ahcip ahv ahvn13 ajokortti alter
    alumni alumno aluno alv amka aniversario anmelde anmeldename anniversaire anschrift apellido apellidos aplieciba
    apolice appointment approbations arac arbn arzt arztnummer arztpraxis asegurado asmens asmenskodas associate
    assurance assure aufenthaltstitel aufgenommen aufnahmedatum ausweis ausweisnr ausweisnummer auth authentication
    authorization autokennzeichen avis avs azonosito badge bangou bankkonto bankleitzahl bankrekening bankrouting
    banque bastidor bday behandelnder behandlungsort beneficiario beneficiary benutzer benutzerkennung benutzername
    bescheinigungs bestatigungs betriebsstatte betriebsstatten betriebsstattennummer beveiligingscode bhxh bhyt bic
    biometric birth birthdate birthday bis bitcoin blz born bpjs branch breitengrad brn bsb bsn bsnnummer bsnr btc
    btw buletin burger burgerservice burgerservicenummer bvn cadastro caduca caducidad candidate card cardano carnet
    cartao cartea carteira case cbu cccd ccn cdl cedula cell cellphone cellular cellulare celular cep certificate
    certification cf cgc chart chassi chassis chassisnummer checking chi cid cidadao cie cif cipc cisla cislem cislo
    cislom citizen ciudadania civica clabe claim claimant clave clearing client cliente clinica cmnd cms cnh cni
    cnic cnie cnp cnpj cnpul codicefiscale cognome compleanno compte conducao conducir conduire consumer conta
    contact conto contract contrasena contrat contribuinte contribuyente contribuyentes coord coordenadas coordinate
    coordinates coordonnees coords coverage cpf cpfcnpj cpr cprnr cprnummer credential credentials creditcard crn
    crypto cryptogramme csc cuenta cui cuil cuit cumpleanos curp customer cv2 cvc cvc2 cvn cvv cvv2 davcna davcne
    davcno ddv dea death debitcard deceased decede decedee deceduto deces decesso device dfa dha diagnosed diagnosis
    dic died dimesso dimissione diploma direccion discharge discharged discord dl dls dmv dna dni dninif dnr dnummer
    dob document documento dod dogecoin dogum dokument domicile domicilio dossier dovoljenje dowod dowodem dowodu
    dozvola dph driver driving durchwahl dvla ecard edad edinen edrpou egk egn ehic ehliyet ehr eid ein
    einkommensteuer einzelkauffrau einzelkaufmann eircode ektp elector eleitor eleitoral emp empleado employee
    employer emr emsa emso enatis encounter endereco engedely enotna enrollee enrollment enrolment entlassen
    entlassung epf esn estudiante eta etudiant exp expiration expire expires expiring expiry face facharzt facial
    facsimile fahrerlaubnis fahrerlaubnisklasse fahrerlaubnisnummer fahrgestell fahrgestellnummer fahrzeug faleceu
    fallecida fallecido fallecimiento fallecio familienname fax festnetz fev fingerprint first fisc fiscaal fiscal
    fiscale fnr fodelsdag fodelsedatum fodselsnr fodselsnummer fodselsnummeret forename forerkort foretagsnummer frn
    fuehrerschein fuehrerscheinnummer fuhrerausweis fuhrerschein fuhrerscheininhaber fuhrerscheinnummer funcionario
    gaid gait geb geboorte geboortedatum geboren gebruikers gebruikersnaam geburt geburtsdatum geburtstag
    geheimnummer geheimzahl geldig geo gerate gestorben gesundheitskarte gewerbesteuer ghanacard github gps
    grazhdanski group gsis gst gstin gueltig guichet gultig habilitacao handle handset handy handynummer
    hauptbetriebsstatte hausarzt hcn hdmf health henkilokortti henkilotunnuksella henkilotunnuksen henkilotunnukseni
    henkilotunnus hetu hic hicn hkic hkid hmpo hmrc holder hospital hospitalise hospitalised hospitalisee
    hospitalized hotline houjin huduma iban ibig iccid idade identidad identidade identifiant identificacao
    identificacion identifikacijski identifikationsnummer identita identitate identite identiteitskaart
    identiteitskaartnummer identiteitsnommer identitetskort identnummer identyfikacji idfa idfv idnp idnumber ifsc
    igazolvany igazolvanyszam iin imei immatriculation immatricule immunization implant impots imsi incident
    indirizzo ingresado ingreso inn insee instagram insurance insured insz internacao internado intracommunautaire
    ipp iqama ird iris irs isiku isikukood isikukoodi isikukoodiga isikutunnistus iskaznica itin itr iva izkaznica
    jazdy jedinstveni jele jelem jkn jmbg jogositvany juhiluba juridica kaart karta kartenprufnummer kartya
    kassenarzt kassenarztliche kayit kba kbv kennwort kennzeichen kenteken kfz kimligi kimlik kitambulisho klant
    klantnummer kmkr koda kodas kodo kods kodu konto kontonummer kood koordinaten korekort korkort
    korperschaftsteuer kortele kozossegi kra kraftfahrt krankenkasse krankenkassen krankenkassennummer
    krankenversichertennummer krankenversicherung krankenversicherungsnummer kreditkarte ktp kunde kunden kundennr
    kundennummer kvnr laboral landline langengrad lanr last4ssn lat latitud latitude latitudine latlng latlon
    learner leeftijd libreta licence licencia license licenza litecoin lng location login logon lon longitud
    longitude longitudine loyalty magstripe maiden maladie maticna maticni matricola matricula matriculation
    matricule matrikel matrikelnummer mbi med medewerkernummer medicaid medical medicare meid member membership micr
    mitarbeiter mitarbeiternummer mitglieds mitgliedsnummer mobiel mobil mobile mobilnummer mobiltelefon momsnummer
    momsreg monero monotributo motorista movil mrn msisdn msp muqeem mva mwst mykad mynumber nachname nacida nacido
    nacimiento nacio nacional naf naissance narozeni nas nascida nascido nascimento nascita nass nata nationaal
    national nationalid nationalnummer nationalregisternummer natis nato navs13 nebenbetriebsstatte nee nhc nhi nhs
    nib nic nick nickname nicop nid nida nie niedergelassener nif nimc nin nino nip nipc nir nira nis niss nit
    notary npi nric nss nuip numaram numarasi nummernschild nuss nutzer nutzername obcana obcanskeho obcansky
    obcianskeho obciansky obito officer ohg ohip oib ontslag operated opgenomen opname organisationsnr
    organisationsnummer orgnr osebna osobistego osobisty osobistym osobna osobni otp overleden pacemaker paciente
    pag pager pagibig pan parola partita partitaiva pasaport pasaporte pasep pases pasnummer paso paspoort
    paspoortnummer pass passaporte passaporto passcode passe passed passeport passi passinumero passnr passnummer
    passphrase passport passportno passwd password passwords passwort pasu paszport paszportu patente patient
    patienten patientennummer patientid payroll paziente pazymejimas pcn pdv permanent permis permiso permit perso
    personal personalausweis personalausweisnr personalausweisnummer personalnummer personas personaskods
    personbeteckning personbeteckningen personeelsnummer personnel personnr personnummer personnummret
    persoonsnummer pesel peselu pessoa pessoas ph phantom philhealth philid philsys phn phone phones pin pincode pis
    pispasep piva placa plaka plakasi plan plaque plate plz pnr poblacion podatkowej podatkowy police policennummer
    policy policyholder polisnummer poliza polizza polkadot porezni portable position postal postale postcode
    postleitzahl postnummer potni pps ppsn prawo praxisadresse praxisnummer praxisstandort preauthorization prenom
    prescription preukaz preukazu procedure prontuario provider prufnummer prufziffer prukaz prukazu psp pupil
    putovnica pvm pvn pw pwd qid ramq record referral registerauszug registergericht registration regon reisepass
    reisepassnummer rekening rekeningnummer rentenversicherung rentenversicherungsnummer residencia resident retina
    revenue rezept rfc rg rib ricoverato ricovero ridicsky rijbewijs rijbewijsnummer rijksregister
    rijksregisternummer ripple rnp rodne rodnecislo rodneho rodnym routing rrn rsi rtn rto ruc rue rufnummer rut
    rvnr samordningsnummer sanitaria sante sars scadenza schaden schadennummer schadenummer screenname secu securite
    security seguranca seguridad seguro senha serial serie serien seriennummer serienummer shenfenzheng
    sicherheitscode sicurezza sim sin siniestro sinistre sinistro skattenummer skype slack sn snils sobrenome soc
    social sociale sofi sofinummer solana soleil sotu sozialversicherung sozialversicherungsausweis
    sozialversicherungsnummer specimen ssn ssn4 ssnit ssnlast4 ssns sss staff standort sterbedatum steuer
    steuerbescheid steuerid steueridentifikationsnummer steueridnr steuerliche steuerlicheidentifikationsnummer
    steuernr steuernummer steuerveranlagung stevilka stevilke stevilko stnr strasse street student studente
    studentnummer subscriber surgery surname svenskt svnr svnummer swift sygesikring syntymaaika szam szama szamom
    szemelyi szemelyigazolvany taj tajszam tal tan tapatybes targa tarjeta tarsadalombiztositasi tasit tax taxid
    taxpayer tckn tel telaio telecopie telefax telefon telefone telefonnummer telefono telefoonnummer telegram
    telemovel telephone teudat tfn thru tic tin titulo tnin todestag track traffic transit transplant treated
    tributaria tributario trn tron trx tva uae uan udid uhid uid uidai uimhir umid umsatzsteuer
    umsatzsteueridentifikationsnummer unica unico upsp urodzenia urodzin urodzony user userid username ust ustid
    ustidnr usuario utente utilisateur utlevel utlevelszam utr vaccinated vaccination vaditaja vairuotojo valid
    validade vat vatandaslik vatin vatnumber vehicle vencimento vencimiento vereinigung verfallsdatum verificacao
    verificacion verification verjaardag verschreibung versicherten versichertenkarte versichertennr
    versichertennummer versicherungsnummer versicherungsschein verstorben vertragsarzt vertragsarztpraxis
    vertragsnummer vervaldatum verzekerden verzekerdennummer vezetoi vin visa vitale vodicsky voice voiceprint
    voornaam vorname voter vozacka voznisko vrm vrn vsnr wacht wachtwoord wallet whatsapp worker xrp zehut
    zertifikats zip zipcode
    """.split()  # noqa: SIM905 - a list of hundreds of short strings reads worse
)
"""Words that a detector of personal data relies on, in lower case and without accents."""

_NUMBER_OF: Final = r"(?:no|nr|nummer|nommer|number|numero|num)"
_PHRASES: Final = re.compile(
    r"\b(?:sort code|post code|code postal|birth ?place|company reg(?:istration)?|close corporation|income tax|mac address|last seen"
    rf"|(?:identity|identification|individual|corporate|business|enterprise|organi[sz]ation|company|entity|bank|reference) {_NUMBER_OF}"
    rf"|(?:ni|rsi|bis|kv|rv|sv|st|ic|hr|tc|pas|person|moms|org|arc|fin|d) {_NUMBER_OF}|unique identifier|registro geral"
    r"|(?:emirates|estonian|foreigner|hong kong|israeli|latvian|lithuanian|malta|maltese|nigeria|rsa|sa|singapore|smart|south african"
    r"|taiwan|thai|multi ?purpose|e) id|id (?:card|number|nommer|document)|cartes? (?:nationale|d identit[ea])|d identite"
    r"|numero (?:d identification|spi)|one time (?:code|password|pin|passcode)|(?:access|door|sms|login) code|frequent flyer"
    rf"|(?:clock|bar|tag|reg|bank) (?:id|{_NUMBER_OF}|code)|car reg|date of service|asset tag|kenn wort|logged in as"
    rf"|(?:machine|terminal|chip|equipment|asset|vendor|android|hardware) (?:id|{_NUMBER_OF}|serial)"
    r"|(?:finger|thumb|palm|voice) print|hand geometry)\b"
)
"""Words that tell something only together."""

_COMPOUND: Final = re.compile(
    r"handelsregister|geburt|geboorte|naissan|nacimient|nasciment|versicher|ausweis|fuehrerschein|telefon|handynum|kontonum|passport"
    r"|passnum|patient|kunden|klant|mitarbeiter|steuer|rijbewijs|kreditkart|cardnum|accountnum|birth|securitynum|phonenum"
    r"|(?:first|last|full|sur|user|maiden|middle|given|family)name|personnum|personalnum"
)
"""Parts of words that are written as one: ``Versichertennummer``, ``cardnumber``."""

_NAMES_OF_WORDS: Final = re.compile(
    r"\b(?:(?:first|last|full|given|family|middle|maiden|legal|card ?holder|patient|customer|client|employee|applicant"
    r"|(?:account|policy) ?holder|holder|contact|beneficiary|guardian|spouse|emergency contact)s? ?names?|name on (?:the )?card"
    r"|surname|forename|vorname|nachname|familienname|prenom|nom de famille|primer nombre|apellidos?|cognome|sobrenome"
    r"|voornaam|achternaam|usernames?|user ?(?:name|id)?|log ?[io]n(?: ?(?:name|id))?|(?:screen|nick|account) ?name|identifiant"
    r"|usuario|utente|utilisateur|benutzer\w*|anmeldename|nutzername|gebruikersnaam|pass ?words?|passwd|pwd?|pass|pass ?wort|kennwort"
    r"|pass ?code|pass ?phrase|contrasena|clave|mot (?:de )?passe|senha|wachtwoord|bic|swift\w*|street|strasse|rue|adresse|anschrift"
    r"|direccion|indirizzo|endereco|adres)\b"
)
"""Names of values that may consist of letters alone; other values without a digit are read alone."""

_SPELLINGS: Final = {
    "contrasena": "contraseña",
    "prenom": "prénom",
    "fuehrerschein": "führerschein",
    "fuehrerscheinnummer": "führerscheinnummer",
    "mot passe": "mot de passe",
    "permis conduire": "permis de conduire",
    "ein": "tax id",
    "direccion": "dirección",
    "endereco": "endereço",
}
"""How a detector knows a name that programs write otherwise; keys have no accents."""


VALUE_NAMES: Final = frozenset({"value", "val", "v", "answer", "response"})
"""Names, in lower case, of a value whose own name stands beside it: ``{"name": "dob", "value": "1991-07-19"}``."""

_SAYING_NOTHING: Final = VALUE_NAMES | {"raw", "text", "content", "data", "string", "formatted", "display"}
_NUMBERING: Final = frozenset(
    {"number", "no", "nr", "num", "code", "nummer", "numero", "date", "name", "names"}
)
_PART_OF_NAME: Final = frozenset({"first", "last", "given", "family", "middle", "full", "maiden", "legal"})
_IDENTIFYING: Final = frozenset({"id", "identifier"})
JOINED_NAMES: Final = _SAYING_NOTHING | _NUMBERING | _PART_OF_NAME | _IDENTIFYING
"""Names, in lower case, that tell something only together with the name of the object around."""

_IDENTIFIED: Final = re.compile(
    r"\b(?:patient|employee|customer|member|student|passport|licen[cs]e|policy|claim|insurance|subscriber|citizen|national|tax"
    r"|driver|voter|resident)$"
)
"""What has an id that names a person; an ``id`` of anything else is an ordinary one."""


def cue_of(steps: Sequence[str]) -> str:
    """Return the words that say what the value at a path of member names is; empty if nothing does.

    Elements of a list have the name of the list. In ``{"passport": {"number": ...}}`` both names count.
    """
    names = [step for step in steps if not step.isdecimal()]
    if not names:
        return ""
    own = names[-1].lower()
    if own not in JOINED_NAMES or len(names) == 1:
        return telling(names[-1])
    around = names[-2]
    if own in _SAYING_NOTHING:
        return telling(around)
    words = words_of(around)
    if own in _PART_OF_NAME:
        return telling(f"{own} name") if words.endswith(("name", "names")) else telling(names[-1])
    if own in _IDENTIFYING and not _IDENTIFIED.search(words):
        return ""
    return telling(f"{words} {own}")


@lru_cache(maxsize=16_384)
def words_of(name: str) -> str:
    """Return the words of a member's name in lower case: ``dateOfBirth`` and ``date-of-birth`` are ``date of birth``."""
    words = _WORD.findall(_CAMEL.sub(" ", name.replace("'s", "s")))
    # Initials are one word: ``d.o.b``.
    return (
        "".join(words) if len(words) > 1 and all(len(word) == 1 for word in words) else " ".join(words)
    ).lower()


@lru_cache(maxsize=16_384)
def telling(name: str) -> str:
    """Return the words of a name that says what its value is; empty for all other names."""
    if len(name) > _LONGEST_NAME:
        return ""
    words = words_of(name)
    plain = _plain(words)
    single = _COUNTED.sub(_uncounted, plain)
    if single != plain:
        plain = words = single
    if not all(char < "\u0250" for char in plain):
        return _foreign(name)
    parts = plain.split(" ")
    if not plain or len(parts) > _LONGEST_CUE:
        return ""
    spelled = spelled_out(plain)
    tells = (
        spelled != plain
        or any(part in _WORDS or part.removesuffix("s") in _WORDS for part in parts)
        or _COMPOUND.search(plain) is not None
        or _PHRASES.search(plain) is not None
        or _NAMES_OF_WORDS.search(plain) is not None
    )
    if tells:
        return _SPELLINGS.get(plain, words) if spelled == plain else spelled
    if name.isascii() and len(plain) <= _SHORTEST_FOREIGN:
        return ""
    words = " ".join(_parted(name).lower().split())
    english = in_english(plain if name.isascii() else words)
    return "" if english in (plain, words) else words_of(english)


def _uncounted(part: re.Match[str]) -> str:
    return part[1] if part[0] not in _WORDS and part[1] in _WORDS else part[0]


def _foreign(name: str) -> str:
    """Return the words of a name in another script than Latin, and the English ones for those that are known.

    Such names are rare, and their words too many for a list: each tells something.
    """
    parted = (char if char.isalnum() or _is_mark(char) else " " for char in _parted(name).lower())
    words = " ".join("".join(parted).split())
    english = in_english(words)
    return words if english == words else f"{words} {english}"


def _is_mark(char: str) -> bool:
    """Return whether a character is written on the one before it: vowels of Hindi and Thai are."""
    return unicodedata.category(char).startswith("M")


def _parted(name: str) -> str:
    """Return a name in any alphabet with a blank before each capital behind a small letter."""
    pairs = pairwise(f" {name}")
    return "".join(f" {char}" if before.islower() and char.isupper() else char for before, char in pairs)


@lru_cache(maxsize=16_384)
def names_words(cue: str) -> bool:
    """Return whether the value behind a cue may consist of letters alone."""
    plain = _plain(cue)
    return _NAMES_OF_WORDS.search(plain) is not None or not plain.isascii()


def _plain(words: str) -> str:
    """Return lower-case words without accents."""
    if words.isascii():
        return words
    split = unicodedata.normalize("NFKD", words.translate(_LETTERS))
    return "".join(char for char in split if not unicodedata.combining(char))
