"""Where a command works: what of the address, the key and the tenant is refused, and what is asked there."""

import json

import httpx2
import pytest

from app.cli import calls as calls_module
from app.cli.addresses import fault_of
from app.cli.calls import CallError, ServiceCalls, segment
from app.cli.root import run
from app.cli.target import CommandTarget

URL = "https://sluice.example.com"
KEY = f"slc_0a1b2c3d_{'k' * 43}"
TOKEN = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2ln"


@pytest.fixture
def asked(monkeypatch):
    """Answer every request with the next of ``answers``; return both."""
    requests, answers = [], []

    def answer(request):
        requests.append(request)
        return answers.pop(0) if answers else httpx2.Response(200, json={"items": [], "next": None})

    client = httpx2.Client

    def made(**options):
        return client(**{**options, "transport": httpx2.MockTransport(answer)})

    monkeypatch.setattr(calls_module.httpx2, "Client", made)
    monkeypatch.delenv("SLUICE_API_KEY", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", "/nonexistent")
    return requests, answers


@pytest.mark.parametrize(
    ("url", "fits"),
    [
        ("https://sluice.example.com", True),
        ("https://sluice.example.com:8443/prefix", True),
        ("http://127.0.0.1:8000", True),
        ("http://localhost:8000", True),
        ("http://[::1]:8000", True),
        ("http://10.0.0.5:8000", False),
        ("http://localhost.example.com", False),
        ("http://127.0.0.1@sluice.example.com", False),
        ("https://ada:secret@sluice.example.com", False),
        ("https://sluice.example.com?x=1", False),
        ("https://sluice.example.com:port", False),
        ("https://", False),
        ("ftp://sluice.example.com", False),
        ("sluice.example.com", False),
        ("https://sluice.example.com\nHost: x", False),
    ],
)
def test_a_key_goes_to_no_address_that_others_could_read(url, fits, asked, capsys):
    assert (fault_of(url) is None) is fits
    code = run(["keys", "list", "--url", url, "--key", KEY])
    assert code == (0 if fits else 2)
    assert bool(asked[0]) is fits
    assert "secret" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "says"),
    [(KEY, "as key 0a1b2c3d"), (TOKEN, "as ada"), ("opaque", "with a token"), (None, "without a key")],
)
def test_the_target_is_said_and_never_the_secret(given, says, asked, capsys, monkeypatch):
    if given is not None:
        monkeypatch.setenv("SLUICE_API_KEY", given)
    assert run(["keys", "list", "--url", f"{URL}/"]) == 0
    said = capsys.readouterr().err
    assert said == f"sluice: at {URL} {says}\n"
    assert asked[0][0].headers.get("authorization") == (f"Bearer {given}" if given else None)


@pytest.mark.parametrize(
    ("url", "key", "warns"),
    [
        ("http://sluice:8000", KEY, True),
        ("http://sluice:8000", None, False),
        ("http://127.0.0.1:8000", KEY, False),
        (URL, KEY, False),
    ],
)
def test_who_calls_with_a_key_that_others_can_read_is_told(url, key, warns, asked, capsys, monkeypatch):
    if key is not None:
        monkeypatch.setenv("SLUICE_API_KEY", key)
    asked[1].append(httpx2.Response(200, json={"middleware": [], "nextCursor": None}))
    assert run(["middleware", "--url", url, "--json"]) == 0
    said = capsys.readouterr().err
    assert ("can be read on the way" in said) is warns
    assert KEY not in said
    assert len(asked[0]) == 1


def test_the_option_goes_before_the_environment(asked, monkeypatch):
    monkeypatch.setenv("SLUICE_API_KEY", "another")
    assert run(["keys", "list", "--url", URL, "--key", KEY]) == 0
    assert asked[0][0].headers["authorization"] == f"Bearer {KEY}"


def test_the_tenant_is_that_of_the_key_but_where_the_route_takes_one(asked, capsys):
    requests, _ = asked
    assert run(["keys", "list", "--url", URL, "--tenant", "acme"]) == 0
    assert dict(requests.pop().url.params)["tenant"] == "acme"
    assert run(["keys", "list", "--url", URL]) == 0
    assert "tenant" not in dict(requests.pop().url.params)
    assert run(["servers", "list", "--url", URL, "--tenant", "acme"]) == 2
    assert requests == []
    assert "the key decides" in capsys.readouterr().err


def test_a_key_without_a_service_is_a_mistake(asked, capsys):
    assert run(["keys", "list", "--key", KEY]) == 2
    said = capsys.readouterr().err
    assert "--key is for a service" in said
    assert KEY not in said


def test_an_answer_in_another_form_is_told_and_not_a_crash(asked, capsys):
    for body in ({"items": [{"id": "0a1b2c3d"}], "next": None}, {"pages": []}):
        asked[1].append(httpx2.Response(200, json=body))
        assert run(["keys", "list", "--url", URL]) == 1
        assert "another form" in capsys.readouterr().err
    asked[1].append(httpx2.Response(307, headers={"location": "https://evil.example.com"}))
    assert run(["keys", "list", "--url", URL, "--key", KEY]) == 1
    assert len(asked[0]) == 3  # nobody is followed elsewhere with the key


EVIL = "\x1b]0;owned\x07\x9b2J\u202egpj\x7f"
STRANGE = (
    {"items": 7, "next": None},
    {"items": {"a": 1}, "next": None},
    {"items": [], "next": 7},
    {"items": [], "next": ["a"]},
    {"items": None, "next": None},
)
PROBLEMS = (
    {"detail": EVIL, "code": EVIL, "request_id": EVIL, "details": {"known": [EVIL]}},
    {"detail": ["x"], "code": ["x"], "request_id": {}, "pointer": 7},
    {"error": {"code": 1, "message": {"a": EVIL}, "data": {"code": [], "retryAfter": "soon"}}},
    {"error": {"message": "x", "data": {"code": "rate_limited", "retryAfter": [1]}}},
)


def test_what_a_service_says_moves_nothing_on_the_terminal(asked, capsys):
    for body in (*STRANGE, None):
        asked[1].append(httpx2.Response(200, json=body) if body is not None else httpx2.Response(204))
        assert run(["keys", "list", "--url", URL]) == 1, body
        assert "form" in capsys.readouterr().err
    for body in PROBLEMS:
        asked[1].append(httpx2.Response(409, json=body))
        assert run(["keys", "list", "--url", URL]) == 1, body
        said = capsys.readouterr().err
        assert all(sign.isprintable() or sign == "\n" for sign in said), said
    tenant = {
        "name": EVIL,
        "created_by": "0a1b2c3d",
        "created": "2026-11-20T01:02:03Z",
        "disabled": None,
        "erased": None,
        "emptied": None,
    }
    for arguments in (["list"], ["list", "--json"], ["create", "acme"]):
        page = {"items": [tenant], "next": None}
        asked[1].append(httpx2.Response(200, json=tenant if "create" in arguments else page))
        assert run(["tenants", *arguments, "--url", URL]) == 0
        shown = capsys.readouterr()
        assert all(sign.isprintable() or sign == "\n" for sign in shown.out + shown.err), arguments
        if "--json" in arguments:
            assert json.loads(shown.out)[0]["name"] == EVIL


def test_a_service_whose_list_has_no_end_is_left(asked, monkeypatch):
    monkeypatch.setattr(calls_module, "_MOST_PAGES", 3)
    asked[1].extend(httpx2.Response(200, json={"items": [1], "next": f"{n}"}) for n in range(9))
    with ServiceCalls(URL, None, 5) as calls, pytest.raises(CallError, match="no end"):
        calls.pages("/x")
    assert len(asked[0]) == 3


def test_all_pages_are_read_and_one_that_comes_again_ends_it(asked):
    def page(item, following):
        return httpx2.Response(200, json={"items": [item], "next": following})

    requests, answers = asked
    with ServiceCalls(URL, None, 5) as calls:
        answers += [page(1, "a"), page(2, "b"), page(3, None)]
        assert calls.pages("/x") == [1, 2, 3]
        assert [dict(each.url.params).get("cursor") for each in requests] == [None, "a", "b"]
        answers += [page(1, "a"), page(2, "a")]
        with pytest.raises(CallError, match="again and again"):
            calls.pages("/x")


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("main", "main"),
        ("a/b?c#d", "a%2Fb%3Fc%23d"),
        ("..", "%2E%2E"),
        (".", "%2E"),
        ("a..b", "a..b"),
        ("ü", "%C3%BC"),
    ],
)
def test_a_name_stays_one_step_of_the_path(name, path, asked):
    requests, answers = asked
    answers.append(httpx2.Response(204))
    assert segment(name) == path
    assert run(["providers", "delete", name, "--yes", "--url", URL]) == 0
    assert requests[0].url.raw_path == f"/api/v1/providers/{path}".encode()


def test_an_empty_name_does_not_name_the_list(asked, capsys):
    assert run(["providers", "delete", "", "--yes", "--url", URL]) == 1
    assert asked[0] == []
    assert "empty" in capsys.readouterr().err


def test_a_question_names_the_place(monkeypatch):
    questions = []
    monkeypatch.setattr("app.cli.target.confirm", lambda question, **_: questions.append(question))
    CommandTarget(URL, None, 5, None).confirm("Erase it?", yes=False)
    monkeypatch.setenv("SLUICE_DATABASE__URL", "postgresql://ada:s3cret@db.internal/sluice")
    CommandTarget(None, None, 5, None).confirm("Erase it?", yes=False)
    CommandTarget(None, None, 5, None).confirm("Erase it?", yes=True)
    assert questions == [
        f"Erase it at {URL}?",
        "Erase it on this host, PostgreSQL database db.internal/sluice?",
    ]


def test_a_changed_policy_is_based_on_the_version_that_was_read(asked, tmp_path):
    requests, answers = asked
    stored = {"version": 7, "policy": {}, "created": None, "created_by": None}
    answers += [
        httpx2.Response(200, json=stored),
        httpx2.Response(200, json={**stored, "version": 8, "widened": []}),
    ]
    file = tmp_path / "policy.json"
    file.write_text('{"limits": {"burst": 7}}')
    assert run(["policies", "put", str(file), "--url", URL]) == 0
    assert [each.method for each in requests] == ["GET", "PUT"]
    assert dict(requests[1].url.params) == {"expected_version": "7"}
    assert json.loads(requests[1].content) == {
        "limits": {"burst": 7}
    }  # the service fills in its own defaults
