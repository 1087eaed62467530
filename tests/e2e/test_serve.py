"""Starting and stopping: what is printed, what is refused, and that nothing is left behind."""

import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx2
import psutil
import pytest

from sluice_client import Sluice
from tests.conftest import fresh_postgres
from tests.e2e.commands import COMMANDS
from tests.e2e.running import KEY, ROOT, await_ready, environment_of, running, sluice, stop


def port_is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) != 0


def eventually(condition: "object", seconds: float = 10) -> bool:
    """Wait until ``condition()`` holds."""
    assert callable(condition)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.1)
    return False


def is_worker(process: psutil.Process) -> bool:
    """Tell whether this is a live server process; one that just ended has no command line any more."""
    try:
        return "spawn_main" in " ".join(process.cmdline())
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return False


def gone(processes: list[psutil.Process]) -> bool:
    """Tell whether all have ended; one that nobody waited for yet counts as ended."""
    return all(map(has_ended, processes))


def has_ended(process: psutil.Process) -> bool:
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # between the two questions
        return True


def test_the_first_start_prints_a_key_once_and_a_line_that_works_when_pasted(tmp_path: Path) -> None:
    environment = environment_of(tmp_path)
    first = subprocess.Popen(
        [sys.executable, "-m", "app", "serve", "--port", "0"],
        env=environment,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert first.stdout is not None
    await_ready(first.stdout.readline().split()[2])
    entrance = first.stdout.readline()
    assert re.match(
        r"Console: http://127\.0\.0\.1:\d+/console/sign-in#default\.[0-9a-f]{8}\.[\w-]{43} ", entrance
    )
    lines = [first.stdout.readline() for _ in range(8)]
    line = next(one for one in lines if one.strip().startswith("curl"))
    pasted = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True, timeout=30)
    assert "My name is [PERSON_1] and my SSN is [SSN_1]" in pasted.stdout
    stop(first)
    assert len(re.findall(r"slc_[0-9a-f]{8}_[A-Za-z0-9_-]{43}", "".join(lines))) == 2
    assert "all roles" in "".join(lines)

    with (tmp_path / "log").open("a") as log:
        second = COMMANDS.start(["serve", "--port", "0"], environment, log)
    assert second.stdout is not None
    await_ready(second.stdout.readline().split()[2])
    second.send_signal(signal.SIGTERM)
    (line,) = second.stdout.read().splitlines()
    assert line.startswith("Console: http://127.0.0.1:")
    assert second.wait(30) in (0, -signal.SIGTERM)
    second.stdout.close()


def test_a_port_that_is_taken_is_explained(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = sluice("serve", "--port", str(port), environment=environment_of(tmp_path))

    assert done.returncode == 1
    assert done.stderr == (
        f"sluice: Port {port} of 127.0.0.1 is taken: stop what listens there, or choose another port with --port "
        "(SLUICE_HTTP__PORT).\n"
    )


@pytest.mark.parametrize(
    ("settings", "words", "code"),
    [
        ({"SLUICE_HTTP__HOST": "0.0.0.0"}, "loopback", 1),
        ({"SLUICE_HTTP__WORKERS": "2"}, "SQLite serves one process", 1),
        ({"SLUICE_HTTP__PROT": "1"}, "SLUICE_HTTP__PROT", 1),
        ({"SLUICE_ENVIRONMENT": "production"}, "key ring", 1),
        ({"SLUICE_DATABASE__URL": "postgresql://u:p4ss-w0rd@127.0.0.1:1/x"}, "does not answer", 3),
    ],
    ids=["host", "workers", "unknown", "production", "database"],
)
def test_a_start_that_is_refused_says_why_in_a_sentence(
    settings: dict[str, str], words: str, code: int, tmp_path: Path
) -> None:
    done = sluice("serve", "--port", "0", environment=environment_of(tmp_path, **settings))

    assert done.returncode == code
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert "p4ss-w0rd" not in done.stderr


def test_a_killed_service_leaves_no_child_and_no_port_behind(tmp_path: Path) -> None:
    with running(tmp_path, forked=False) as service:
        children = psutil.Process(service.process.pid).children(recursive=True)
        assert children
        stop(service.process, signal.SIGKILL)

        assert eventually(lambda: gone(children))
        assert port_is_free(service.port)


def test_a_service_that_exits_with_its_parent_survives_no_killed_shell(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    command = f"{sys.executable} -m app serve --port {port} --exit-with-parent; true"
    with (tmp_path / "log").open("w") as log:
        shell = subprocess.Popen(
            ["sh", "-c", command], env=environment_of(tmp_path), cwd=ROOT, stdout=log, stderr=log
        )
    await_ready(f"http://127.0.0.1:{port}")
    below = psutil.Process(shell.pid).children(recursive=True)
    assert below
    shell.kill()
    shell.wait()

    assert eventually(lambda: gone(below))
    assert port_is_free(port)


def alive_probes(url: str) -> float:
    """Return how many answers to /livez the metrics show."""
    text = httpx2.get(f"{url}/metrics", trust_env=False).text
    (line,) = re.findall(r'^sluice_http_requests_total\{.*route="/livez".*\} (\S+)$', text, re.MULTILINE)
    return float(line)


def test_workers_share_a_port_survive_the_death_of_one_and_end_with_their_supervisor(
    tmp_path: Path, postgres_url: str
) -> None:
    with fresh_postgres(postgres_url) as url:
        settings = {"SLUICE_DATABASE__URL": url, "SLUICE_DETECTION__WARM": "false"}
        assert sluice("db", "upgrade", environment=environment_of(tmp_path, **settings)).returncode == 0
        with running(tmp_path, "--workers", "2", forked=False, **settings) as service:
            supervisor = psutil.Process(service.process.pid)

            def workers() -> list[psutil.Process]:
                return [one for one in supervisor.children() if is_worker(one)]

            assert len(workers()) == 2
            # Each request has a connection of its own, which either worker may take; either shows the sum.
            for _ in range(12):
                assert httpx2.get(f"{service.url}/livez", trust_env=False).status_code == 200
            assert [alive_probes(service.url) for _ in range(4)] == [12] * 4
            before = workers()
            before[0].kill()
            assert eventually(lambda: len(workers()) == 2 and workers() != before, 20)
            assert [alive_probes(service.url) for _ in range(4)] == [12] * 4
            with Sluice(service.url, service.key, transport="mcp", revision="2025-11-25") as client:
                assert client.list_middleware()
            children = supervisor.children(recursive=True)
            stop(service.process, signal.SIGKILL)

            assert eventually(lambda: gone(children), 15)
            assert port_is_free(service.port)


def test_a_supervisor_stops_its_workers_in_order(tmp_path: Path, postgres_url: str) -> None:
    with fresh_postgres(postgres_url) as url:
        settings = {"SLUICE_DATABASE__URL": url, "SLUICE_DETECTION__WARM": "false"}
        assert sluice("db", "upgrade", environment=environment_of(tmp_path, **settings)).returncode == 0
        (tmp_path / "tmp").mkdir()
        settings["TMPDIR"] = str(tmp_path / "tmp")
        with running(tmp_path, "--workers", "2", forked=False, **settings) as service:
            children = psutil.Process(service.process.pid).children(recursive=True)
            assert [*(tmp_path / "tmp").glob("sluice-metrics-*/counter_*.db")]

            assert stop(service.process) == 0
            assert eventually(lambda: gone(children), 15)
            assert not [*(tmp_path / "tmp").glob("sluice-metrics-*")]


def test_a_running_stream_may_end_after_the_signal_to_stop(tmp_path: Path) -> None:
    with running(tmp_path) as service, Sluice(service.url, service.key) as client:
        client.redact("I am John Doe.", scope="s")
        heard = threading.Event()

        def model():
            yield "Hello "
            # The stream runs once its first text has come back.
            assert heard.wait(20)
            service.process.send_signal(signal.SIGTERM)
            time.sleep(1)
            yield "[PERSON_1]!"

        restored = []
        for text in client.restore_stream(model(), scope="s"):
            restored.append(text)
            heard.set()
        assert "".join(restored) == "Hello John Doe!"
        assert service.process.wait(timeout=30) in (0, -signal.SIGTERM)
        assert port_is_free(service.port)


def send_large_head(connection: socket.socket) -> None:
    connection.sendall(b"GET / HTTP/1.1\r\n")
    for _ in range(200):
        connection.sendall(b"X-Large: " + b"x" * 4000 + b"\r\n")
        time.sleep(0.005)


def test_a_head_that_never_ends_is_given_up(tmp_path: Path) -> None:
    with running(tmp_path, SLUICE_HTTP__HEADER_TIMEOUT_S="1") as service:
        for begun in (b"", b"POST /mcp HTTP/1.1\r\nHost: x\r\nX-Slow: "):
            with socket.create_connection(("127.0.0.1", service.port), timeout=10) as slow:
                slow.sendall(begun)
                assert slow.recv(1) == b""
        with (
            socket.create_connection(("127.0.0.1", service.port), timeout=10) as large,
            pytest.raises(OSError),
        ):
            send_large_head(large)


def test_answers_do_not_name_the_server(service) -> None:
    answer = httpx2.get(f"{service.url}/livez", trust_env=False)

    assert "server" not in answer.headers


def test_a_given_first_key_works_and_is_not_printed(tmp_path: Path) -> None:
    with running(tmp_path) as service:
        assert str(KEY) not in service.greeting
        with Sluice(service.url, str(KEY)) as client:
            assert client.list_middleware()
        log = (tmp_path / "log").read_text()

    assert str(KEY) not in log
