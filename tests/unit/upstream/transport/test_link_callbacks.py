"""Answers to what servers ask."""

import asyncio

from app.core.background import BackgroundTasks
from app.core.errors import OverloadedError
from app.core.upstream import UpstreamError
from app.upstream.transport.callbacks import MAX_OPEN, ServerQuestions


class Server:
    """Asks, and notes the answers."""

    def __init__(self):
        self.answers = []
        self.tasks = BackgroundTasks()
        self.callbacks = ServerQuestions(self.send, self.tasks)

    async def send(self, message):
        self.answers.append(message)

    def ask(self, number, method, asked, **more):
        return self.callbacks.accept({"id": number, "method": method, **more}, asked)


async def answered(server, *questions):
    await asyncio.gather(*questions)
    return server.answers[-1]


async def test_an_answer_carries_the_number_of_its_question():
    server = Server()

    async def ask(method, params):
        return {"method": method, **params}

    answer = await answered(server, server.ask("q", "sampling/createMessage", ask, params={"n": 10**30}))
    assert answer == {
        "jsonrpc": "2.0",
        "id": "q",
        "result": {"method": "sampling/createMessage", "n": 10**30},
    }


async def test_errors_become_answers_without_words_of_ours():
    server = Server()

    async def refuse(_method, _params):
        raise UpstreamError(-7, "The user said no.", {"x": 1})

    async def overloaded(_method, _params):
        raise OverloadedError("Too much at once.")

    async def broken(_method, _params):
        raise KeyError("secret")

    assert (await answered(server, server.ask(1, "x", refuse)))["error"] == {
        "code": -7,
        "message": "The user said no.",
        "data": {"x": 1},
    }
    assert (await answered(server, server.ask(2, "x", overloaded)))["error"]["message"] == "Too much at once."
    assert "secret" not in str(await answered(server, server.ask(3, "x", broken)))
    assert (await answered(server, server.ask(4, "x", None)))["error"]["code"] == -32601
    assert (await answered(server, server.ask(5, "x", refuse, params=[1])))["error"]["code"] == -32602
    assert (await answered(server, server.ask(6, "ping", None)))["result"] == {}


async def test_a_question_that_was_withdrawn_gets_no_answer():
    server = Server()

    async def ask(_method, _params):
        await asyncio.sleep(3600)

    question = server.ask(1, "x", ask)
    assert server.ask(1, "x", ask) is None, "a number that is open is not asked again"
    await asyncio.sleep(0)
    server.callbacks.cancel(1)
    server.callbacks.cancel("unknown")
    server.callbacks.cancel(None)
    await asyncio.gather(question, return_exceptions=True)
    assert server.answers == []
    assert server.ask(1, "ping", None) is not None
    await server.tasks.close()


async def test_a_server_that_asks_without_end_is_refused():
    server = Server()

    async def ask(_method, _params):
        await asyncio.sleep(3600)

    for number in range(MAX_OPEN):
        server.ask(number, "x", ask)
    await asyncio.gather(server.ask(MAX_OPEN, "x", ask))
    assert [answer["id"] for answer in server.answers] == [MAX_OPEN]
    await server.tasks.close()
