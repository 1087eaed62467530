"""The edge guard behind a real server: slow, half-sent and huge bodies, and a drain."""

import asyncio
import select
import socket
import threading
import time
from typing import Any

import httpx2
from fastapi import FastAPI, Request
from httpx2 import Client

from app.api.errors import install_error_handlers
from app.edge.budget import ByteLimits
from app.edge.facts import facts_of
from app.edge.guard import EdgeGuard
from app.edge.limits import EdgeLimits
from tests.integration.loopback import serving, talk

HEAD = b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def make_guard(**limits: Any) -> EdgeGuard:
    app = FastAPI()
    install_error_handlers(app)

    @app.post("/echo")
    async def echo(request: Request) -> Any:
        return facts_of(request.scope).json

    @app.get("/slow")
    @app.post("/slow")
    async def slow() -> str:
        await asyncio.sleep(0.6)
        return "done"

    @app.get("/livez")
    async def livez() -> str:
        return "ok"

    return EdgeGuard(app, EdgeLimits(**limits))


def test_two_hundred_half_sent_bodies_are_answered_and_closed_while_others_are_served() -> None:
    with serving(make_guard(body_timeout_s=4)) as port:
        held = []
        for _ in range(200):
            connection = socket.create_connection(("127.0.0.1", port), timeout=10)
            connection.sendall(HEAD + b"Content-Length: 100000\r\n\r\n{")
            held.append(connection)
        with Client() as http:
            answer = http.post(f"http://127.0.0.1:{port}/echo", json=[1])
            assert (answer.status_code, answer.json()) == (200, [1])
        assert not select.select(held, [], [], 0)[0], "they were still waiting when the other was served"
        for connection in held:
            with connection:
                answered = b""
                while chunk := connection.recv(65536):
                    answered += chunk
            assert answered.startswith(b"HTTP/1.1 408")
            assert b'"code":"deadline_exceeded"' in answered


def test_a_dripping_body_is_cut_at_the_time_limit_for_the_whole() -> None:
    with (
        serving(make_guard(body_timeout_s=0.5)) as port,
        socket.create_connection(("127.0.0.1", port)) as drip,
    ):
        drip.settimeout(20)
        drip.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        stop = threading.Event()

        def dripping() -> None:
            while not stop.wait(0.05):
                try:
                    drip.sendall(b"1\r\n \r\n")
                except OSError:
                    return

        thread = threading.Thread(target=dripping)
        thread.start()
        try:
            assert drip.recv(65536).startswith(b"HTTP/1.1 408")
        finally:
            stop.set()
            thread.join()


def test_large_bodies_beyond_what_may_be_in_flight_wait_and_are_all_answered() -> None:
    guard = make_guard(in_flight=ByteLimits(total=400_000, tenant=400_000, key=400_000))
    body = b'["' + b"a" * 150_000 + b'"]'
    most, answers = [0], []

    def ask(port: int) -> None:
        with Client(timeout=20) as http:
            headers = {"content-type": "application/json"}
            answers.append(http.post(f"http://127.0.0.1:{port}/echo", content=body, headers=headers))
            most[0] = max(most[0], guard.bodies.budget.held)

    with serving(guard) as port:
        threads = [threading.Thread(target=ask, args=(port,)) for _ in range(12)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            most[0] = max(most[0], guard.bodies.budget.held)
            time.sleep(0.001)
    assert [answer.status_code for answer in answers] == [200] * 12
    assert 0 < most[0] <= 350_000
    assert guard.bodies.budget.held == 0


def test_who_announces_much_and_sends_little_holds_it_for_a_while_and_delays_no_small_body() -> None:
    guard = make_guard(body_timeout_s=1, in_flight=ByteLimits(total=800_000, tenant=800_000, key=200_000))
    with serving(guard) as port, Client() as http:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as liar:
            liar.sendall(HEAD + b"Content-Length: 150000\r\n\r\n[")
            until = time.monotonic() + 5
            while guard.bodies.budget.held < 150_000 and time.monotonic() < until:
                time.sleep(0.01)
            small = http.post(f"http://127.0.0.1:{port}/echo", json=["a"])
            assert (small.status_code, small.elapsed.total_seconds() < 0.5) == (200, True)
            assert liar.recv(65536).startswith(b"HTTP/1.1 408")
        large = http.post(f"http://127.0.0.1:{port}/echo", json=["a" * 150_000])
        assert large.status_code == 200
    assert guard.bodies.budget.held == 0


def test_a_body_that_finds_no_room_in_time_is_told_to_come_again() -> None:
    guard = make_guard(turn_timeout_s=0.3, in_flight=ByteLimits(total=100_000))
    statuses = []
    with serving(guard) as port, Client() as http:
        large = ["a" * 90_000]
        url = f"http://127.0.0.1:{port}/slow"
        thread = threading.Thread(target=lambda: statuses.append(httpx2.post(url, json=large).status_code))
        thread.start()
        until = time.monotonic() + 5
        while guard.bodies.budget.held == 0 and time.monotonic() < until:
            time.sleep(0.005)
        refused = http.post(url, json=large)
        assert (refused.status_code, refused.json()["code"]) == (503, "overloaded")
        assert refused.headers["retry-after"] == "1"
        thread.join(10)
        assert http.post(url, json=large).status_code == 200
    assert statuses == [200]


def test_a_body_may_wait_longer_for_its_turn_than_it_may_take_to_arrive() -> None:
    guard = make_guard(body_timeout_s=0.3, turn_timeout_s=20, in_flight=ByteLimits(total=100_000))
    large = ["a" * 90_000]
    statuses = []
    with serving(guard) as port:
        url = f"http://127.0.0.1:{port}/slow"
        threads = [
            threading.Thread(
                target=lambda: statuses.append(httpx2.post(url, json=large, timeout=30).status_code)
            )
            for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert statuses == [200] * 3, (
        "the last one waited for two others, each of which took longer than a body may"
    )
    assert guard.bodies.budget.held == 0


def test_sixty_megabytes_are_refused_and_the_client_can_read_why() -> None:
    with serving(make_guard()) as port, Client(timeout=20) as http:
        body = b'"' + b"a" * 60_000_000 + b'"'
        headers = {"content-type": "application/json"}
        answer = http.post(f"http://127.0.0.1:{port}/echo", content=body, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
        assert http.get(f"http://127.0.0.1:{port}/livez").status_code == 200


def test_a_client_that_asks_first_is_refused_before_it_sends() -> None:
    with serving(make_guard()) as port:
        answer = talk(port, HEAD + b"Content-Length: 60000000\r\nExpect: 100-continue\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 413")
        assert b"100 Continue" not in answer


def test_smuggled_and_broken_framing_is_never_a_server_error() -> None:
    requests = [
        HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n[1,2]",
        HEAD + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        HEAD + b"Content-Length: -5\r\n\r\n",
        HEAD + b"Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}",
        HEAD + b"Host: evil.example\r\nContent-Length: 2\r\n\r\n{}",
        b"POST /echo HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}",
        b"GET /livez HTTP/1.1\r\nHost: localhost\r\nOrigin: a\r\nOrigin: b\r\n\r\n",
        b"GET /livez HTTP/9.9\r\nHost: localhost\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
    ]
    with serving(make_guard()) as port:
        for request in requests:
            answer = talk(port, request, wait_s=0.5)
            assert not answer.startswith(b"HTTP/1.1 5"), request[:80]
        with Client() as http:
            assert http.get(f"http://127.0.0.1:{port}/livez").status_code == 200


def test_a_drain_lets_running_requests_end_and_refuses_new_ones() -> None:
    guard = make_guard()
    with serving(guard) as port, Client() as slow, Client() as other:
        base = f"http://127.0.0.1:{port}"
        answers = []
        thread = threading.Thread(target=lambda: answers.append(slow.get(f"{base}/slow")))
        thread.start()
        until = time.monotonic() + 5
        while guard.drain.running == 0 and time.monotonic() < until:
            time.sleep(0.01)
        guard.drain.begin()
        refused = other.post(f"{base}/echo", json=[1])
        assert (refused.status_code, refused.json()["code"]) == (503, "overloaded")
        assert refused.headers["connection"] == "close"
        assert other.get(f"{base}/livez").status_code == 200
        thread.join(10)
        assert answers[0].status_code == 200
        assert guard.drain.running == 0
