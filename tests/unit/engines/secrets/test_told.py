"""Passwords in words, on command lines and in addresses, keys of other lengths, and seed phrases are found whole."""

import hashlib
import random

import pytest

from app.core.contracts.engines import SecretOptions
from app.engines.secrets.loose import LOOSE
from app.engines.secrets.rules import FORMATS
from app.engines.secrets.said import _TYPOGRAPHY
from app.engines.secrets.scanner import RuleScanner
from app.engines.secrets.seeds import seed_words
from tests.proportion import assert_in_proportion

SCANNER = RuleScanner()
DRAW = random.Random(11)
WORD = "Tulpen" + "Feld!47"
PLAIN = "ananas" + "99"
DRAWN = "k7QmZ2" + "pX9vRt4"
HEXADECIMAL = "".join(DRAW.choices("0123456789abcdef", k=40))
MIXED = "".join(DRAW.choices("ABCDEFGHJKabcdefghjk23456789", k=40))


async def found(text: str, **options: object) -> list[str]:
    spans = (await SCANNER.scan([text], SecretOptions(**options))).spans[0]  # type: ignore[arg-type]
    return [text[span.start : span.end] for span in spans]


TOLD = [
    "The password for the router in the kitchen is {}.",
    "Please remember: passphrase = {}",
    "Her new password was {} until Monday",
    "I logged in with password {} and it worked.",
    "Das Kennwort des Routers lautet {}.",
    "Mein Passwort ist „{}“.",
    "Le mot de passe de la boîte est « {} ».",
    "mot de passe: {}",
    "La contraseña de la wifi es {}",
    "Mi clave: {}",
    "La password del wifi è {}.",
    "A senha da rede é {}",
    "Het wachtwoord voor de router is {}",
    "Wachtwoord: {}",
    "Wi-Fiのパスワードは{}です",
    "密码：{}",
    "Hasło: {}",
    "try '{}' as password",
    "user: anna, pw: {}",
    "Your passcode was reset to {} this morning",
    "open it with the password {} please",
]
WRITTEN = [
    "mysql -h db1 -uadmin -p{} crm",
    "mysqladmin -u root -p'{}' shutdown",
    "sshpass -p{} ssh root@10.0.0.3",
    "redis-cli -p 6380 -a '{}' info",
    "echo {} | docker login; docker login -u bot -p {}",
    "ldapwhoami -H ldap://h -D cn=a -w {}",
    "mongodump --host h -u a -p {} -d x",
    "openssl rsa -in k.pem -passin pass:{} -out o.pem",
    "printf '{}\n' ; echo '{}' | sudo -S whoami",
    "echo 'anna:{}' | sudo chpasswd",
    "net use X: \\\\srv\\share /user:anna {}",
    "unzip -o -P {} a.zip",
    "plink root@h -pw {} uptime",
    "htpasswd -nb anna {}",
    "CREATE USER anna IDENTIFIED BY '{}';",
    "create role anna with login password '{}'",
    "sqlplus anna/{}@db1",
    "define( 'AUTH_KEY', '{}' );",
    "\nrequirepass {}\n",
    "ConvertTo-SecureString -String '{}' -AsPlainText",
    "IMAP_PASS={}",
    "[imap]\\npasswd = {}\\nport = 993",
    "  ftp_pass: {}",
    "ssh anna:{}@10.1.2.3",
    "log in at root:{}@nas.local",
]
KEYS = [
    f"sk_live_{MIXED[:22]}",
    f"ghp_{MIXED[:25]}",
    f"glpat-{MIXED[:17]}",
    f"hf_{MIXED[:24]}",
    f"npm_{MIXED[:30]}",
    f"dop_v1_{HEXADECIMAL}",
    f"xoxb-{'839201746512'}-{MIXED[:18]}",
    f"ghp_{MIXED}",
]
NO_SECRETS = [
    "The password for the router is stored in the safe.",
    "Your password must contain 8-16 characters and was last changed on 2024-05-06.",
    "Das Passwort lautet anders als gestern.",
    "Le mot de passe est trop court (minimum 12).",
    "La clave: Mi bemol mayor",
    "password reset for anna99@example.org was sent at 10:22pm",
    "passwords are hashed with PBKDF2 or SHA256",
    "mysql -u root -p crm",
    "sshpass -e ssh root@10.0.0.3",
    "docker run -p 8080:80 nginx && docker login -u bot --password-stdin",
    "mongodump -p $MONGO_PASSWORD",
    "unzip -p data1.zip readme2.txt",
    "mailto:anna99@example.org, To:bob_7@example.org",
    "docker pull app:v1.2.3@sha256:abc",
    "IMAP_PASS=$IMAP_PASS",
    "password = auth[2](b3) or pw[:-1] + pass2",
    "word | " + "zero one | " * 14,
    """To make valid dates, pass `dtype="datetime64[ns]"`""",
    "We pass width-2 in the shell",
    "storage:\n    credential_provider: B7CredentialProvider\n",
    "a bypass: road42b, the compass=N45E7x",
    "npm_config_globalconfig2 and npm_package_dependencies_react17",
    "hf_hub_download_with_retries_v2_final",
    "sk_live_xxxxxxxxxxxxxxxxxxxxxx",
    "ghp_replace_me_with_your_token_1",
    f"xoxb-{'0' * 24}",
]


@pytest.mark.parametrize("said", TOLD)
@pytest.mark.parametrize("password", [WORD, DRAWN])
async def test_a_password_that_is_told_is_found_whole(said: str, password: str) -> None:
    assert password in await found(said.format(password))


@pytest.mark.parametrize("written", WRITTEN)
@pytest.mark.parametrize("password", [WORD, DRAWN])
async def test_a_password_of_a_command_a_file_or_an_address_is_found_whole(
    written: str, password: str
) -> None:
    assert password in await found(written.replace("{}", password))


async def test_a_password_ends_with_its_line() -> None:
    assert await found(f"My password is {WORD}\nOnce you are in, look around.") == [WORD]


async def test_an_ampersand_is_part_of_a_password_and_parts_members_of_a_query() -> None:
    assert await found("DB_PASS=Aal&Feld-47 psql") == ["Aal&Feld-47"]
    assert await found("GET /x?password=AalFeld-47&page=2") == ["AalFeld-47"]


@pytest.mark.parametrize("start", ["b", "R", "uB"])
async def test_a_value_that_begins_as_a_prefix_of_a_string_is_found_whole(start: str) -> None:
    assert await found(f"api_key: {start}{DRAWN}w8N4") == [f"{start}{DRAWN}w8N4"]
    assert await found(f"password={start}{WORD}") == [f"{start}{WORD}"]
    assert await found(f"password = {start}'{WORD}'") == [WORD]


async def test_a_weak_password_is_found_where_its_place_says_what_it_is() -> None:
    for text in (f"mysql -uroot -p{PLAIN} crm", f"sshpass -p {PLAIN} ssh h", f"my password is {PLAIN}"):
        assert PLAIN in await found(text)


@pytest.mark.parametrize("key", KEYS)
async def test_a_key_of_another_length_is_found_whole(key: str) -> None:
    assert await found(f"use {key}, please") == [key]
    assert await found(f"use {key}", entropy=False) == [key]


@pytest.mark.parametrize("text", NO_SECRETS)
async def test_what_only_looks_like_it_is_none(text: str) -> None:
    assert await found(text) == []


def test_prefixes_of_many_providers_are_known_at_any_length() -> None:
    assert len(LOOSE) >= 90
    assert {rule.provider for rule in LOOSE} <= {form.provider for form in FORMATS}


def test_what_is_written_otherwise_keeps_its_length() -> None:
    assert [written for written, plain in _TYPOGRAPHY if len(written) != len(plain)] == []


def phrase(size: int, *, right: bool = True) -> list[str]:
    words, check = seed_words(), size * 11 // 33
    entropy = DRAW.randbytes((size * 11 - check) // 8)
    digest = hashlib.sha256(entropy).digest()[0] >> (8 - check)
    number = int.from_bytes(entropy, "big") << check | (digest ^ (not right))
    return [words[number >> 11 * place & 2047] for place in reversed(range(size))]


@pytest.mark.parametrize("size", [12, 15, 18, 21, 24])
@pytest.mark.parametrize("between", [" ", ", ", "\n", "\\n"])
async def test_a_seed_phrase_is_found_by_its_checksum_alone(size: int, between: str) -> None:
    seed = between.join(phrase(size))
    assert seed in await found(f"Import it: {seed}. Thanks!")
    assert seed in await found(seed)


async def test_words_of_the_list_are_a_phrase_with_a_right_checksum_or_a_word_that_says_so() -> None:
    seed = " ".join(phrase(12, right=False))
    assert await found(f"Say them: {seed}") == []
    assert await found(f"My recovery phrase: {seed}") == [seed]
    numbered = " ".join(f"{number}. {word}" for number, word in enumerate(phrase(24), 1))
    assert [numbered[3:]] == await found(f"Keep: {numbered}")


async def test_seed_phrases_can_be_asked_for_or_left_out() -> None:
    seed = " ".join(phrase(12))
    assert await found(seed, providers=frozenset({"seed_phrase"})) == [seed]
    assert await found(seed, providers=frozenset({"github"})) == []
    spans = (await SCANNER.scan(["", f"a {seed}", seed], SecretOptions())).spans
    assert [[(span.start, span.label) for span in some] for some in spans] == [
        [],
        [(2, "SECRET_SEED_PHRASE")],
        [(0, "SECRET_SEED_PHRASE")],
    ]


@pytest.mark.parametrize(
    "unit", ["password is ", "mysql -p ", "a:b1@", "abandon ", "echo x | sudo -S ", "senha 1. "]
)
def test_hostile_texts_take_time_in_proportion_to_their_length(unit: str) -> None:
    def scanned(size: int) -> None:
        SCANNER._scan([unit * (size // len(unit))], SecretOptions())

    assert_in_proportion(scanned, 15_000, 60_000)
