"""What `explain` shows of a text, over REST and on the command line, is what `pii_redaction` replaces in it."""

import json
import re
from typing import Any

import httpx2

from tests.e2e.running import Service, sluice
from tests.pii_identifiers import KINDS, Half, cases
from tests.pii_member_names import NESTED, ORDINARY, TELLING
from tests.sampling import examples, sample
from tests.unit.engines.pii.test_identifiers import FOUND, LEFT_ALONE

MARK = "[X_1]"
HANDLE = re.compile(r"\[[A-Z_]+_[0-9]+\]")
QUOTED = re.compile(r'\\*"\[X_1\]\\*"')
ESCAPED = json.dumps(
    {"note": 'say "hi"', "body": json.dumps({"dob": "1964-11-02", "ssn": 412689937, "next": 3})}
)


def corpus() -> list[str]:
    """Return texts of every class of identifier, and those of other tests."""
    halves: list[Half] = ["development", "held-out"]
    texts = [case.text for kind in KINDS for half in halves for case in cases(kind, half, 12)]
    return [*texts, *(text for text, *_ in FOUND), *LEFT_ALONE]


def structured() -> list[str]:
    """Return JSON texts, some of which have escapes before the values."""
    texts = [json.dumps({name: value, "next": "Ann"}) for name, value in (TELLING | ORDINARY).items()]
    texts += [json.dumps(value, ensure_ascii=False) for value, _ in NESTED]
    return texts + [json.dumps({"note": 'say "hi"\n\u00e9 to', "body": text}) for text in texts]


def marked(text: str, spans: list[dict[str, Any]]) -> str:
    for span in reversed(spans):
        text = text[: span["start"]] + MARK + text[span["end"] :]
    return unquoted(text)


def unquoted(text: str) -> str:
    """Return a text without the quotes that a number gets when it becomes a handle."""
    return QUOTED.sub(MARK, text)


def test_an_explanation_and_a_redaction_agree_on_every_text(service: Service) -> None:
    texts = sample("explained", corpus(), examples(1_000, 24))
    texts += [*sample("explained JSON", structured(), examples(250, 24)), ESCAPED, "{}", "[]", '""', ""]
    headers = {"authorization": f"Bearer {service.key}"}
    with httpx2.Client(base_url=service.url, headers=headers, timeout=60) as http:
        for text in texts:
            explained = http.post("/api/v1/pii/explain", json={"text": text}).json()
            body = {"context": [{"type": "text", "text": text}], "arguments": {}}
            answer = http.post("/api/v1/middleware/pii_redaction/invoke", json=body).json()
            redacted = unquoted(HANDLE.sub(MARK, answer["content"][0]["text"]))
            assert redacted == marked(text, explained["spans"]), text
            won = [(one["start"], one["end"]) for one in explained["candidates"] if one["won"]]
            for span in explained["spans"]:
                assert any(start < span["end"] and span["start"] < end for start, end in won), text


def test_the_command_line_explains_json_by_its_members(service: Service) -> None:
    done = sluice("pii", "explain", "--json", given=ESCAPED, environment=service.environment)
    assert done.returncode == 0, done.stderr
    explained = json.loads(done.stdout)
    places = [(ESCAPED[span["start"] : span["end"]], span["label"]) for span in explained["spans"]]
    assert places[0] == ("1964-11-02", "DATE")
    assert places[1][0] == "412689937"
    assert len(places) == 2
