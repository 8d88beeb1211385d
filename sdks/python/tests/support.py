"""What the tests share: the proxy, and the asynchronous client with the interface of the other."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import time
from collections.abc import Iterator
from typing import Any, Callable, NamedTuple, Optional, TypeVar, cast
from urllib.parse import quote

import httpx

from waypost import AsyncPage, AsyncWaypost, Waypost
from waypost._runtime.pages import AsyncPages

T = TypeVar("T")


def need(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise RuntimeError(f"{name} is not set: run scripts/test-sdks.sh")
    return value


PROXY, SIMULATOR = need("CONFORMANCE_PROXY_URL"), need("SIMULATOR_URL")
RUN = f"{time.time_ns() // 1_000_000:x}"


class Blocking:
    """`AsyncWaypost`, or a part of it, with the methods of `Waypost`: so each case runs with both clients."""

    def __init__(self, target: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._target, self._loop = target, loop

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._target, name)
        if not callable(value):
            return Blocking(value, self._loop)

        def call(*args: Any, **keywords: Any) -> Any:
            return self._settle(value(*args, **keywords))

        return call

    def _settle(self, value: Any) -> Any:
        if asyncio.iscoroutine(value):
            return self._loop.run_until_complete(value)
        return BlockingPages(value, self._loop) if isinstance(value, AsyncPages) else value


class BlockingPages:
    """A page of `AsyncWaypost` with the methods of `Page`. Awaiting and iterating are done separately."""

    def __init__(self, pages: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._pages: Any = pages
        self._loop = loop

    def _page(self) -> AsyncPage[Any]:
        if isinstance(self._pages, AsyncPages):

            async def wait() -> Any:
                return await self._pages

            self._pages = self._loop.run_until_complete(wait())
        return cast("AsyncPage[Any]", self._pages)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._page(), name)

    def next(self) -> Optional[BlockingPages]:
        following = self._loop.run_until_complete(self._page().next())
        return BlockingPages(following, self._loop) if following else None

    def __iter__(self) -> Iterator[Any]:
        items = self._pages.__aiter__()

        async def following() -> Any:
            return await items.__anext__()

        while True:
            try:
                yield self._loop.run_until_complete(following())
            except StopAsyncIteration:
                return


class Hook(NamedTuple):
    headers: dict[str, str]
    body: bytes


class Proxy:
    """A session of the proxy: what it is to do, and what it saw."""

    count = 0

    def __init__(self, rules: list[dict[str, Any]]) -> None:
        Proxy.count += 1
        self.name = f"py-{RUN}-{Proxy.count}"
        self.url, self.hook = f"{PROXY}/s/{self.name}/", f"{PROXY}/hook/{self.name}"
        httpx.put(f"{PROXY}/control/{self.name}", content=json.dumps({"rules": rules}))

    def requests(self) -> list[dict[str, Any]]:
        return cast("list[dict[str, Any]]", self._seen()["requests"])

    def hooks(self) -> list[Hook]:
        return [Hook(hook["headers"], base64.b64decode(hook["body"])) for hook in self._seen()["hooks"]]

    def _seen(self) -> dict[str, Any]:
        return cast("dict[str, Any]", httpx.get(f"{PROXY}/control/{self.name}").json())


class Client:
    """Makes clients of one kind."""

    def __init__(self, asynchronous: bool, loop: asyncio.AbstractEventLoop) -> None:
        self.asynchronous, self._loop = asynchronous, loop
        self._open: list[Any] = []

    def __call__(self, api_key: Optional[str] = None, **options: Any) -> Waypost:
        if not self.asynchronous:
            self._open.append(Waypost(api_key, **options))
            return cast(Waypost, self._open[-1])
        self._open.append(AsyncWaypost(api_key, **options))
        return cast(Waypost, Blocking(self._open[-1], self._loop))

    def by_proxy(self, *rules: dict[str, Any], **options: Any) -> tuple[Waypost, Proxy]:
        proxy = Proxy(list(rules))
        return self(base_url=proxy.url, **options), proxy

    def read(self, response: httpx.Response) -> bytes:
        return self._loop.run_until_complete(response.aread()) if self.asynchronous else response.read()

    def close(self) -> None:
        for client in self._open:
            if self.asynchronous:
                self._loop.run_until_complete(client.aclose())
            else:
                client.close()


def mail(**more: Any) -> dict[str, Any]:
    message = {"from_": "Shop <shop@example.com>", "to": f"ada-{RUN}@example.org", "subject": "Hello"}
    return {**message, "text": "Hello, Ada", **more}


def answer(status: int, body: Any, headers: Optional[dict[str, str]] = None) -> dict[str, Any]:
    return {"answer": {"status": status, "headers": headers or {}, "body": body}}


def refusal(status: int, code: str, **details: Any) -> dict[str, Any]:
    return answer(
        status, {"error": {"code": code, "message": "No.", "details": details}}, {"X-Request-Id": "request-1"}
    )


def until(condition: Callable[[], Optional[T]], what: str) -> T:
    for _ in range(150):
        value = condition()
        if value:
            return value
        time.sleep(0.1)
    raise AssertionError(f"{what} did not happen within 15 seconds")


def captured_to(address: str) -> int:
    """How many mails the simulator got for an address."""
    return len(httpx.get(f"{SIMULATOR}/captured?to={quote(address)}").json()["messages"])
