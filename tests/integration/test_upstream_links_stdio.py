"""Servers that run as our children: what they see of this host, and that nothing of them is left."""

import asyncio
import os
from pathlib import Path

import pytest

from app.core.errors import DeadlineExceededError, TooLargeError, UpstreamUnavailableError
from tests.upstreams.links import MIB, Client, Unasked, call, linked, until
from tests.upstreams.misbehaving_child import child_settings
from tests.upstreams.scripted import stdio_settings


def runs(process):
    """Return whether the process is there and no zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def test_a_child_gets_the_given_environment_and_nothing_of_ours(monkeypatch, tmp_path):
    monkeypatch.setenv("SLUICE_DATABASE__URL", "postgresql://secret")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    root = str(Path(__file__).parents[2])
    settings = stdio_settings(env={"TOKEN": "given", "PYTHONPATH": root}, cwd=str(tmp_path))
    async with linked(settings) as link:
        seen = (await call(link, "environment"))["structuredContent"]
    assert seen["TOKEN"] == "given"
    assert seen["cwd"] == str(tmp_path)
    assert seen["PATH"] == os.environ["PATH"]
    assert "secret" not in str(seen.values())
    expected = {"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "TOKEN", "PYTHONPATH", "cwd"}
    assert set(seen) - {"LC_CTYPE"} <= expected


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"command": "/nowhere/to-be-found"}, "does not exist"),
        ({"command": "python3", "cwd": "/nowhere"}, "does not exist"),
        ({"command": "/etc/passwd"}, "may not be run"),
    ],
)
async def test_a_command_that_cannot_be_started_is_told(settings, words):
    with pytest.raises(UpstreamUnavailableError, match=words):
        async with linked(settings):
            pass


async def test_a_command_that_ends_at_once_or_says_nothing_is_told():
    with pytest.raises(UpstreamUnavailableError):
        async with linked({"command": "true"}):
            pass
    with pytest.raises(DeadlineExceededError):
        async with linked({"command": "sleep", "args": ["60"]}, connect_timeout_s=1.0):
            pass


async def test_a_child_that_dies_closes_the_link_and_fails_what_waits():
    async with linked(stdio_settings()) as link:
        waiting = asyncio.create_task(call(link, "slow"))
        await asyncio.sleep(0.1)
        with pytest.raises(UpstreamUnavailableError):
            await call(link, "crash")
        with pytest.raises(UpstreamUnavailableError):
            await waiting
        async with asyncio.timeout(20):
            await link.wait_closed()
        with pytest.raises(UpstreamUnavailableError):
            await call(link, "echo")


async def test_a_server_that_ends_when_it_is_probed_is_started_again_for_the_handshake():
    async with linked(child_settings("--exits-on-discover")) as link:
        assert link.protocol_version == "2025-11-25"
        assert await call(link, "echo", {"a": 1}) == {"a": 1}


async def test_the_handshake_alone_is_one_start(tmp_path):
    async with linked(child_settings("--exits-on-discover"), revision="handshake") as link:
        assert await call(link, "echo", {"a": 1}) == {"a": 1}


@pytest.mark.parametrize("flags", [(), ("--stubborn",)])
async def test_leaving_kills_the_child_and_all_that_it_started(flags, tmp_path):
    note = tmp_path / "processes"
    async with linked(child_settings("--children", str(note), *flags)) as link:
        await call(link, "echo")
        child, grandchild = (int(text) for text in note.read_text().split())
        assert runs(child) and runs(grandchild)
    await until(lambda: not runs(child) and not runs(grandchild))


async def test_a_cancelled_owner_leaves_no_child_behind(tmp_path):
    note = tmp_path / "processes"

    async def own():
        async with linked(child_settings("--children", str(note))) as link:
            await link.wait_closed()

    owner = asyncio.create_task(own())
    await until(lambda: note.exists() and len(note.read_text().split()) == 2)
    child, grandchild = (int(text) for text in note.read_text().split())
    for _ in range(3):
        owner.cancel()
        await asyncio.sleep(0.01)
    with pytest.raises(asyncio.CancelledError):
        await owner
    await until(lambda: not runs(child) and not runs(grandchild))


async def test_a_dead_child_whose_own_child_holds_the_output_open_is_noticed(tmp_path):
    note = tmp_path / "processes"
    async with linked(child_settings("--children", str(note))) as link:
        with pytest.raises(UpstreamUnavailableError):
            await call(link, "leave")
        assert link.protocol_version
    await until(lambda: not runs(int(note.read_text().split()[1])))


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("setsid sleep 6 & exec sleep 60", id="a session of its own holds the output"),
        pytest.param("yes '{}' | head -c 4000000; exec sleep 60", id="more output than is read"),
    ],
)
async def test_leaving_closes_the_pipes_whatever_holds_the_output_open(script):
    before = open_pipes()
    with pytest.raises(DeadlineExceededError):
        async with linked({"command": "sh", "args": ["-c", script]}, connect_timeout_s=0.5):
            pass
    assert open_pipes() == before


def open_pipes():
    """Return how many pipes and sockets this process has open."""
    targets = [file.readlink() for file in Path("/proc/self/fd").iterdir() if file.is_symlink()]
    return sum(str(target).startswith(("pipe:", "socket:")) for target in targets)


async def test_a_line_that_is_too_long_fails_its_call_and_the_next_is_answered():
    async with linked(child_settings(), max_result_bytes=MIB) as link:
        with pytest.raises(TooLargeError):
            await call(link, "huge")
        assert await call(link, "echo", {"a": 1}) == {"a": 1}


async def test_an_answer_that_is_no_json_fails_its_call_at_once():
    async with linked(child_settings()) as link:
        with pytest.raises(UpstreamUnavailableError):
            await call(link, "broken")
        assert await call(link, "echo", {"a": 1}) == {"a": 1}


async def test_what_a_server_prints_beside_its_messages_is_skipped_and_told_nowhere(caplog, capfd):
    async with linked(child_settings("--prints")) as link:
        assert await call(link, "echo", {"a": 1}) == {"a": 1}
    printed = capfd.readouterr()
    assert "secret" not in printed.err + printed.out + caplog.text
    assert "Starting up" not in printed.err + printed.out + caplog.text


async def test_a_child_that_does_not_read_fails_calls_by_their_time_and_blocks_nobody():
    async with linked(child_settings("--deaf")) as link, linked(child_settings()) as other:
        large = {"x": "y" * 200_000}
        stuck = [asyncio.create_task(call(link, "echo", large, timeout_s=1.0)) for _ in range(3)]
        assert await call(other, "echo", {"a": 1}) == {"a": 1}
        results = await asyncio.gather(*stuck, return_exceptions=True)
    assert all(isinstance(result, DeadlineExceededError) for result in results)


async def test_a_question_goes_to_the_only_call_that_runs_and_else_to_the_owner():
    client, owner = Client(), Client(answers={"elicitation/create": {"action": "decline"}})
    async with linked(child_settings(), on_request=owner.ask) as link:
        alone = await call(link, "ask", hooks=client.hooks())
        hanging = asyncio.create_task(call(link, "hang", hooks=client.hooks()))
        await asyncio.sleep(0.05)
        crowded = await call(link, "ask", hooks=client.hooks())
        hanging.cancel()
    assert alone["answered"]["action"] == "accept"
    assert crowded["answered"]["action"] == "decline"


async def test_what_is_logged_while_several_calls_run_reaches_none_of_them():
    clients, unasked = [Client(), Client()], Unasked()
    async with linked(child_settings(), on_notification=unasked) as link:
        await asyncio.gather(*(call(link, "both", hooks=client.hooks()) for client in clients))
        await call(link, "echo")
    assert [client.told for client in clients] == [[], []]
    assert unasked.heard == []


@pytest.mark.parametrize(
    ("other", "heard"),
    [
        ({"owner": "one"}, True),
        ({"owner": "two"}, False),
        ({"owner": "one", "guard": lambda hooks: hooks}, False),
    ],
)
async def test_a_log_that_may_be_about_the_call_of_another_client_is_told_to_nobody(other, heard):
    earlier, client = Client(), Client()
    async with linked(stdio_settings()) as link:
        await call(link, "echo", hooks=earlier.hooks(**other))
        await call(link, "log", hooks=client.hooks(owner="one"))
    assert [method for method, _ in client.told] == (["notifications/message"] if heard else [])
    assert earlier.told == []
