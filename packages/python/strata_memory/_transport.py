"""HTTP with the standard library alone: kept connections, time limits and errors, for threads and for asyncio.

A server closes connections that have been idle, and a client cannot know that before it writes. A call that may be repeated
therefore uses a kept connection and repeats itself on another one; a call that may not be repeated opens a new connection.
"""

from __future__ import annotations

import asyncio
import http.client
import io
import json
import ssl
import uuid
from types import TracebackType
from typing import Any, Mapping, Self
from urllib.parse import quote, urlencode, urlsplit

from ._errors import StrataConnectionError, StrataError

_Headers = Mapping[str, "str | None"]


class _Settings:
    """What both transports share: the address, the defaults of the client, and the form of requests and answers."""

    def __init__(
        self,
        url: str = "http://127.0.0.1:8100",
        *,
        user: str | None = None,
        session: str | None = None,
        api_key: str | None = None,
        timeout: float = 30.0,
    ) -> None:
        """A client of the server at `url`.

        user, session: The user and the session of calls that name none.
        api_key: A key, as `strata keys create` shows it.
        timeout: How long to wait for the server, in seconds.
        """
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"`{url}` is no address of a server; it begins with http:// or https://")
        self._host = parts.hostname
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._authority = parts.netloc.rsplit("@", 1)[-1]
        self._prefix = parts.path.rstrip("/")
        self._default_user = user
        self._default_session = session
        self._api_key = api_key
        self._timeout = timeout

    def _user(self, user: str | None) -> str | None:
        return self._default_user if user is None else user

    def _session(self, session: str | None) -> str | None:
        return self._default_session if session is None else session

    @staticmethod
    def _key(key: str | None) -> str:
        return str(uuid.uuid4()) if key is None else key

    @staticmethod
    def _escaped(part: str | None) -> str:
        if part is None:
            raise ValueError("name a session: as a parameter, or as `session` of the client")
        return quote(part, safe="")

    def _request(
        self, path: str, query: Mapping[str, Any] | None, body: Mapping[str, Any] | None, headers: _Headers | None
    ) -> tuple[str, dict[str, str], bytes]:
        target = self._prefix + path
        given = {name: _as_query(value) for name, value in (query or {}).items() if value is not None}
        if given:
            target += "?" + urlencode(given)
        lines = {"Host": self._authority, "Accept": "application/json", "User-Agent": "strata-memory-python"}
        if self._api_key is not None:
            # `X-API-Key` and not `Authorization`: it passes gateways that use the latter themselves.
            lines["X-API-Key"] = self._api_key
        lines.update({name: value for name, value in (headers or {}).items() if value is not None})
        payload = b""
        if body is not None:
            payload = json.dumps({name: value for name, value in body.items() if value is not None}).encode()
            lines["Content-Type"] = "application/json"
        lines["Content-Length"] = str(len(payload))
        return target, lines, payload

    def _answer(self, status: int, headers: http.client.HTTPMessage, data: bytes) -> Any:
        try:
            answer = json.loads(data) if data else None
        except ValueError:
            answer = None
        if 200 <= status < 300:
            return answer
        raise StrataError.of(status, headers, answer, data)

    def _unreachable(self, error: BaseException) -> StrataConnectionError:
        return StrataConnectionError(f"no answer from {self._authority}: {error or type(error).__name__}")


class Transport(_Settings):
    """The transport of threads."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._idle: list[http.client.HTTPConnection] = []

    def close(self) -> None:
        """Close the kept connections. The client still works, and opens new ones."""
        while self._idle:
            self._idle.pop().close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        headers: _Headers | None = None,
        repeatable: bool,
    ) -> Any:
        target, lines, payload = self._request(path, query, body, headers)
        while True:
            kept = self._kept() if repeatable else None
            connection = kept or self._open()
            try:
                connection.request(method, target, payload, lines)
                response = connection.getresponse()
                data = response.read()
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                if kept is None or isinstance(error, TimeoutError):
                    raise self._unreachable(error) from error
                continue
            if not response.will_close:
                self._idle.append(connection)
            return self._answer(response.status, response.headers, data)

    def _kept(self) -> http.client.HTTPConnection | None:
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _open(self) -> http.client.HTTPConnection:
        if self._tls is None:
            return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)
        return http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout, context=self._tls)


_Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class AsyncTransport(_Settings):
    """The transport of asyncio. A connection belongs to the event loop that has opened it, so each loop keeps its own."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._idle: dict[asyncio.AbstractEventLoop, list[_Connection]] = {}

    async def close(self) -> None:
        """Close the kept connections of this event loop. The client still works, and opens new ones."""
        for _, writer in self._idle.pop(asyncio.get_running_loop(), []):
            writer.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        headers: _Headers | None = None,
        repeatable: bool,
    ) -> Any:
        target, lines, payload = self._request(path, query, body, headers)
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        request = f"{method} {target} HTTP/1.1\r\n{head}\r\n".encode("latin-1") + payload
        idle = self._kept()
        while True:
            kept = idle.pop() if repeatable and idle else None
            writer: asyncio.StreamWriter | None = None
            try:
                async with asyncio.timeout(self._timeout):
                    reader, writer = kept or await self._open()
                    status, answered, data, stays = await _exchange(reader, writer, request)
            except (OSError, EOFError, ValueError, asyncio.LimitOverrunError) as error:
                if writer is not None:
                    writer.close()
                if kept is None or isinstance(error, TimeoutError):
                    raise self._unreachable(error) from error
                continue
            except asyncio.CancelledError:
                if writer is not None:
                    writer.close()
                raise
            if stays:
                idle.append((reader, writer))
            else:
                writer.close()
            return self._answer(status, answered, data)

    def _kept(self) -> list[_Connection]:
        """The kept connections of this event loop. Those of closed loops are dropped, because they cannot be used any more."""
        for loop in list(self._idle):
            if loop.is_closed():
                self._idle.pop(loop, None)
        return self._idle.setdefault(asyncio.get_running_loop(), [])

    async def _open(self) -> _Connection:
        return await asyncio.open_connection(self._host, self._port, ssl=self._tls)


async def _exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes
) -> tuple[int, http.client.HTTPMessage, bytes, bool]:
    """Sends a request and reads the answer: its status, headers and body, and whether the connection stays open."""
    writer.write(request)
    await writer.drain()
    status = 100
    while status < 200:  # «continue» and early hints come before the answer
        head = io.BytesIO(await reader.readuntil(b"\r\n\r\n"))
        version, code = head.readline().split(b" ", 2)[:2]
        status = int(code)
        headers = http.client.parse_headers(head)
    stays = version == b"HTTP/1.1" and headers.get("Connection", "").lower() != "close"
    length = headers.get("Content-Length")
    if headers.get("Transfer-Encoding", "").lower() == "chunked":
        return status, headers, await _chunks(reader), stays
    if length is not None:
        return status, headers, await reader.readexactly(int(length)), stays
    return status, headers, b"" if status == 204 else await reader.read(), stays and status == 204


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    data = bytearray()
    while True:
        size = int((await reader.readuntil(b"\r\n")).split(b";")[0], 16)
        if size == 0:
            break
        data += await reader.readexactly(size)
        await reader.readuntil(b"\r\n")
    while await reader.readuntil(b"\r\n") != b"\r\n":  # trailers
        pass
    return bytes(data)


def _as_query(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
