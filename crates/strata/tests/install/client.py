"""Every method of the Python clients against a real server, and the transports against servers that misbehave."""

import asyncio
import socketserver
import sys
import threading
from contextlib import contextmanager
from typing import Any, Iterator

from strata_memory import AsyncStrata, Strata, StrataConnectionError, StrataError


def threads(url: str) -> None:
    with Strata(url, user="nora", session="orchard/2026") as memory:
        assert memory.ready()["status"] == "ready"
        first = memory.record([{"role": "user", "content": "The quince tree bears fruit. 梨树开花了。"}], idempotency_key="once")
        again = memory.record([{"role": "user", "content": "The quince tree bears fruit. 梨树开花了。"}], idempotency_key="once")
        assert first == again and first["turns"][0]["seq"] == 0
        assert memory.add("Nora is allergic to hazelnuts")["results"][0]["event"] == "ADD"
        found = memory.search("what is Nora allergic to", top_k=1, explain=True, kinds=["memory"])
        item = found["results"][0]
        assert item["memory"] == "Nora is allergic to hazelnuts" and found["trace"]
        assert memory.search("quince", user_id="somebody else")["results"] == []

        assert memory.memory(item["id"])["kind"] == "fact"
        assert memory.revise(item["id"], "Nora is allergic to almonds")["memory"] == "Nora is allergic to almonds"
        assert len(memory.history(item["id"])) == 2
        assert memory.delete_memory(item["id"])["deleted"] == 1
        assert memory.memories(limit=10)["results"] == []
        assert memory.restore(item["id"])["hidden"] is None
        assert len(memory.memories(limit=10, kind="fact")["results"]) == 1

        assert memory.session()["turn_count"] == 1
        assert memory.turns(limit=5)["turns"][0]["content"].endswith("梨树开花了。")
        assert [it["id"] for it in memory.sessions()["sessions"]] == ["orchard/2026"]
        prompt = memory.prompt("Which tree bears fruit?", format="chat")
        assert "quince" in str(prompt["messages"]) and prompt["tokens"] > 0
        assert memory.delete_session("orchard/2026")["removed"]["turns"] == 1
        refused(404, "not_found_error", lambda: memory.session())
        refused(400, "invalid_request_error", lambda: memory.memory("no id"))


def refused(status: int, kind: str, call: Any) -> None:
    try:
        call()
    except StrataError as error:
        assert (error.status, error.type) == (status, kind), (error.status, error.type, error)
        assert error.request_id and error.code and str(error)
    else:
        raise AssertionError("the call was not refused")


async def tasks(url: str) -> None:
    async with AsyncStrata(url, user="omar", session="boat") as memory:
        turns = await asyncio.gather(
            *(memory.record([{"role": "user", "content": f"Plank {number} is varnished."}]) for number in range(30))
        )
        assert sorted(it["turns"][0]["seq"] for it in turns) == list(range(30))
        assert len((await memory.turns(limit=100))["turns"]) == 30
        assert (await memory.search("which plank is varnished", top_k=2))["results"]
        added = await memory.add("Omar's boat is moored in Split")
        assert (await memory.memory(added["results"][0]["id"]))["memory"].endswith("Split")
        try:
            await memory.session("no such session")
        except StrataError as error:
            assert error.status == 404, error
        else:
            raise AssertionError("an unknown session was found")


def loops(url: str) -> None:
    """A client serves one event loop after another, and two that are open together."""
    memory = AsyncStrata(url, user="omar")
    for _ in range(3):
        assert asyncio.run(memory.ready())["status"] == "ready"
    both = [asyncio.new_event_loop(), asyncio.new_event_loop()]
    for loop in both * 2:
        assert loop.run_until_complete(memory.ready())["status"] == "ready"
    for loop in both:
        loop.run_until_complete(memory.close())
        loop.close()


@contextmanager
def scripted(answer: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """A server that gives this answer to each request and then closes the connection without saying so."""
    received: list[bytes] = []

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                line = self.rfile.readline()
                if not line:
                    return
                head += line
            lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
            body = self.rfile.read(int(lengths[0].split(b":")[1]) if lengths else 0)
            received.append(head + body)
            self.wfile.write(answer)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/under/a/path", received
        server.shutdown()


def transports() -> None:
    ready = b'HTTP/1.1 200 OK\r\nContent-Length: 18\r\n\r\n{"status":"ready"}'
    with scripted(ready) as (url, received):
        client = Strata(url, api_key="strata_secret", user="ö")
        for _ in range(3):
            assert client.ready()["status"] == "ready"
        assert len(received) == 3, "a closed connection is opened again, and no request is sent twice"
        assert received[0].startswith(b"GET /under/a/path/readyz HTTP/1.1\r\n") and b"X-API-Key: strata_secret" in received[0]

        async def thrice() -> None:
            client = AsyncStrata(url, user="ö")
            for _ in range(3):
                assert (await client.ready())["status"] == "ready"

        asyncio.run(thrice())
        assert len(received) == 6
        client.memories(limit=2, as_of="2026-01-31")
        assert b"/memories?as_of=2026-01-31&limit=2&user_id=%C3%B6 " in received[-1], received[-1]

    chunked = b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nA\r\n{"status":\r\n8;x=1\r\n"ready"}\r\n0\r\nT: 1\r\n\r\n'
    with scripted(chunked) as (url, _):
        assert Strata(url).ready()["status"] == "ready"
        assert asyncio.run(AsyncStrata(url).ready())["status"] == "ready"

    gateway = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 12\r\nRetry-After: 7\r\n\r\n<h1>bad</h1>"
    for answer, expected in [(gateway, (502, 7.0)), (b"nonsense\r\n\r\n", (0, None)), (b"", (0, None))]:
        with scripted(answer) as (url, _):
            for call in (Strata(url).ready, lambda: asyncio.run(AsyncStrata(url).ready())):
                try:
                    call()
                except StrataError as error:
                    assert (error.status, error.retry_after) == expected, (error.status, error)
                    assert isinstance(error, StrataConnectionError) == (error.status == 0)
                else:
                    raise AssertionError(f"{answer!r} is no answer")

    for url in ["127.0.0.1:8100", "ftp://example.org", "http://"]:
        try:
            Strata(url)
        except ValueError as refusal:
            assert url in str(refusal)
        else:
            raise AssertionError(f"{url} is no address")


if __name__ == "__main__":
    threads(sys.argv[1])
    asyncio.run(tasks(sys.argv[1]))
    loops(sys.argv[1])
    transports()
