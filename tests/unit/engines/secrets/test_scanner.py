"""What is found beyond the formats, what is no secret, and how long hostile texts may take."""

import asyncio
import base64
import json
import random
import zlib
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.content.context import Context
from app.core.contracts.engines import SecretOptions, SecretScanner
from app.engines.secrets.scanner import RuleScanner
from app.middlewares.pii_restoration import PiiRestoration, PiiRestorationArguments
from app.middlewares.secret_redaction import SecretRedaction, SecretRedactionArguments
from tests.fakes import MemoryVault, engines
from tests.fakes_secrets import FakeSecretScanner
from tests.proportion import assert_in_proportion

SCANNER = RuleScanner()
DRAW = random.Random(7)
WORD = "Tr0ub4" + "dor&3"
KEY = "".join(DRAW.choices("0123456789abcdef", k=32))
GITHUB = "ghp_" + "".join(DRAW.choices("ABCDEFGHJKabcdefghjk23456789", k=36))


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def url64(value: object) -> str:
    return b64(json.dumps(value)).rstrip("=")


BODY = "\n".join(b64(f"{zlib.crc32(bytes([line])):048d}") for line in range(12))
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{BODY}\n-----END RSA PRIVATE KEY-----"
JWT = f"{url64({'alg': 'HS256', 'typ': 'JWT'})}.{url64({'sub': '1234567890'})}.{KEY}"


async def found(text: str, **options: object) -> list[str]:
    spans = (await SCANNER.scan([text], SecretOptions(**options))).spans[0]  # type: ignore[arg-type]
    return [text[span.start : span.end] for span in spans]


SECRETS = {
    "assignment": (f'password = "{WORD}"', WORD),
    "environment": (f"DB_PASSWORD={WORD}", WORD),
    "yaml": ("user: bob\n  password: hunter22\n", "hunter22"),
    "properties": ("user=bob\npassword=hunter22\n", "hunter22"),
    "drawn": ("Use it. password=Zx81kQ9vLm2p", "Zx81kQ9vLm2p"),
    "chat": (f"my password is {WORD}.", WORD),
    "option": (f"run --password {WORD} now", WORD),
    "XML": ("<password>s3cr3tpw</password>", "s3cr3tpw"),
    "JSON": (f'{{"api_key": "{KEY}"}}', KEY),
    "JSON in a string": (f'{{\\"api_key\\": \\"{KEY}\\"}}', KEY),
    "header": (f"X-Api-Key: {KEY}", KEY),
    "bearer": (f"Authorization: Bearer {KEY}", KEY),
    "basic": (f"Authorization: Basic {b64('user:' + WORD)}", b64("user:" + WORD)),
    "URL": (f"https://bob:{WORD}@host/path", WORD),
    "Postgres": (f"postgresql+asyncpg://bob:{WORD}@db:5432/x", WORD),
    "Mongo": ("mongodb+srv://joe:pa55@c.x.net", "pa55"),
    "Redis": ("redis://:p4ss@h:6379/0", "p4ss"),
    "AMQP": (f"amqps://bob:{WORD}@mq/v", WORD),
    "encoded URL": ("postgres%3A%2F%2Fu%3As3cretpw%40h%2Fdb", "s3cretpw"),
    "ODBC": ("Driver={X};Server=db;Uid=sa;Pwd=letmein;", "letmein"),
    "JDBC": ("jdbc:mysql://h/db?user=a&password=letmein", "letmein"),
    "netrc": ("machine h login u password p4ssw", "p4ssw"),
    "curl": ("curl -s -u bob:hunter22 http://h", "hunter22"),
    "docker": (f'"auth": "{b64("bob:hunter22")}"', b64("bob:hunter22")),
    "PEM": (f"key:\n{PEM}\n", PEM),
    "PEM in JSON": (json.dumps({"k": PEM}), PEM.replace("\n", "\\n")),
    "wrapped PEM": (f"client-key-data: {b64(PEM)}", b64(PEM)),
    "PGP": (PEM.replace("RSA PRIVATE KEY", "PGP PRIVATE KEY BLOCK"),) * 2,
    "OpenSSH": (PEM.replace("RSA", "OPENSSH"),) * 2,
    "JWT": (f"token {JWT}", JWT),
    "zero width": (f"{GITHUB[:12]}\u200b{GITHUB[12:]}", f"{GITHUB[:12]}\u200b{GITHUB[12:]}"),
    "full width": ("".join(chr(ord(c) + 0xFEE0) for c in GITHUB),) * 2,
    "escaped": (GITHUB.replace("_", "\\u005f"), GITHUB.replace("_", "\\u005f")),
    "behind an escaped break": (f"line\\n{GITHUB}", GITHUB),
}
NO_SECRETS = [
    "api_key = YOUR_API_KEY",
    'password = "xxxxxxxx"',
    "token: <token>",
    "password: ${DB_PASSWORD}",
    "password = os.environ['DB_PASSWORD']",
    "password = getpass.getpass('Password: ')",
    "connect(user=user1, password=password2)",
    "password = sha256digest",
    "the password is required",
    "token = self.tokens.next_token2",
    "id: 123e4567-e89b-12d3-a456-426614174000",
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
    "sha256:" + "9f86d081884c7d659a2feaa0c55ad015" * 2,
    f'"integrity": "sha512-{b64("x" * 12 + BODY[:52])}"',
    f"data:image/png;base64,{b64(BODY)}",
    "https://user:password@host/",
    "ghp_" + "x" * 36,
    "-----BEGIN PRIVATE KEY-----",
    "csrf_token = '" + KEY + "'",
    "max_tokens=4096, token_type: 'bearer12345678901'",
    'function a(b,c){return"password"===b.type?c:d}var e="token",f=g[e]',
]


@pytest.mark.parametrize("name", SECRETS)
async def test_a_secret_is_found_whole_however_it_is_written_down(name: str) -> None:
    text, secret = SECRETS[name]
    assert secret in await found(text)


@pytest.mark.parametrize("text", NO_SECRETS)
async def test_what_stands_for_a_secret_or_names_something_is_none(text: str) -> None:
    assert await found(text) == []


@pytest.mark.parametrize(
    "written",
    [
        b64(GITHUB),
        b64(f"user={GITHUB}\n"),
        b64(f"token: {GITHUB}").rstrip("="),
        base64.urlsafe_b64encode(f"?>{GITHUB}".encode()).decode(),
        "".join(f"&#{ord(char)};" for char in GITHUB),
        "".join(f"&#x{ord(char):x};" for char in GITHUB),
    ],
)
async def test_a_key_in_base64_or_entities_is_found_whole(written: str) -> None:
    text = f"kind: Secret\ndata: {written}\n"
    (spans,) = (await SCANNER.scan([text], SecretOptions())).spans
    assert [(text[one.start : one.end], one.label) for one in spans] == [(written, "SECRET_GITHUB")]
    allowed = await SCANNER.scan([f"data: {b64(GITHUB)}"], SecretOptions(allow_list=(GITHUB,)))
    assert allowed.spans == [[]]


async def test_base64_of_plain_text_or_of_a_picture_is_no_secret() -> None:
    texts = [
        b64("an ordinary sentence about a password"),
        b64("password = hunter2hunter2"),
        b64("\x89PNG" * 20),
    ]
    assert (await SCANNER.scan(texts, SecretOptions(entropy=False))).spans == [[], [], []]


async def test_options_limit_what_is_found() -> None:
    text = f'password = "{WORD}" {GITHUB}'
    assert await found(text) == [WORD, GITHUB]
    assert await found(text, entropy=False) == [GITHUB]
    assert await found(text, providers=frozenset({"password"})) == [WORD]
    assert await found(text, allow_list=(GITHUB,)) == [WORD]


@pytest.mark.parametrize("scanner", [SCANNER, FakeSecretScanner()], ids=["embedded", "fake"])
async def test_every_scanner_keeps_the_contract(scanner: SecretScanner) -> None:
    texts = ["", f"{GITHUB} and aws!1", "github!2 aws!1"]
    made = await scanner.scan(texts, SecretOptions())
    assert len(made.spans) == len(texts) and made.spans[0] == []
    assert made.report.name and made.report.version and not made.report.degraded
    for text, spans in zip(texts, made.spans, strict=True):
        assert all(0 <= span.start < span.end <= len(text) for span in spans)
        assert all(one.end <= other.start for one, other in pairwise(spans))
        assert {span.label.removeprefix("SECRET_").lower() for span in spans} <= scanner.providers()


PIECES = st.sampled_from(
    [*(text for text, _ in SECRETS.values()), "hello ", "\n", "[SECRET_AWS_1]", "é", '"']
)


@settings(max_examples=60, deadline=None)
@given(st.lists(PIECES, max_size=5).map("".join))
def test_restoring_a_redaction_gives_the_text_back(text: str) -> None:
    assert asyncio.run(round_trip(text)) == text


async def round_trip(text: str) -> str:
    vault = MemoryVault()
    redaction = SecretRedaction(engines(secrets=SCANNER))
    outcome = await redaction.apply(Context.parse([text]), SecretRedactionArguments())
    redacted = vault.settle(outcome.context).to_json()
    arguments = PiiRestorationArguments(scope="s", positions="all")
    restored = await PiiRestoration(engines()).apply(Context.parse(redacted), arguments)
    [given_back] = vault.settle(restored.context).to_json()
    return str(given_back)


HOSTILE = [
    "password=",
    "session_token=",
    "-----BEGIN PRIVATE KEY-----\n",
    " eyJhbGciOiJIUzI1NiJ9.",
    "://a:b",
    "postgres://a:",
    " sk-",
    "a\u200b",
    "%41",
    'password = "',
    "login a password ",
]


@pytest.mark.parametrize("unit", HOSTILE)
def test_hostile_texts_take_time_in_proportion_to_their_length(unit: str) -> None:
    def scanned(size: int) -> None:
        SCANNER._scan([unit * (size // len(unit))], SecretOptions())

    assert_in_proportion(scanned, 15_000, 60_000)
