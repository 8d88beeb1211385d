"""Does calls: with retries, timeouts and typed errors. What to send, and what to do after an attempt, is decided in
`Attempts` for both clients; `Http` and `AsyncHttp` only send and wait.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import random
import re
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, TypedDict, TypeVar, cast
from urllib.parse import quote
from uuid import uuid4

import httpx

from .._generated.errors import ERROR_CLASSES
from ..types import ErrorDetails
from .errors import APIConnectionError, APITimeoutError, RateLimit, WaypostError
from .model import decode, encode
from .pages import AsyncPage, AsyncPages, Page

T = TypeVar("T")

TIMEOUT_S = 30.0
RETRIES = 2
BACKOFF_S, BACKOFF_MAX_S = 0.5, 8.0
RETRY_AFTER_MAX_S = 60
"""A longer `Retry-After` is left to the caller."""

log = logging.getLogger("waypost")


class RequestOptions(TypedDict, total=False):
    """How to do one call."""

    idempotency_key: str | None
    """Makes a call that creates something safe to repeat: the same key is done once. The default is a new key."""
    timeout: float | None
    """How long to wait for the answer to an attempt, in seconds."""
    max_retries: int | None
    """How often to repeat the call, if it fails and is safe to repeat."""
    extra_headers: Mapping[str, str] | None
    """Headers to add."""


@dataclass(frozen=True)
class Call:
    """An operation, and what to send."""

    method: str
    route: str
    options: RequestOptions
    path: Mapping[str, str] | None = None
    query: Mapping[str, Any] | None = None
    body: Any = None
    body_type: Any = None
    media_type: str = "application/json"
    idempotent: bool = False
    """Whether the service takes an idempotency key."""
    repeatable: bool = False
    """Whether a second POST changes nothing more."""


class Settings:
    """Where Waypost is, and how to call it."""

    def __init__(self, api_key: str | None, base_url: str | None, timeout: float, retries: int, version: str) -> None:
        key, url = api_key or os.environ.get("WAYPOST_API_KEY"), base_url or os.environ.get("WAYPOST_URL")
        if not key:
            raise ValueError("Waypost needs an API key: pass it as the first argument, or set WAYPOST_API_KEY.")
        # Else httpx would refuse the header, with the key in its message.
        if not re.fullmatch(r"[\x21-\x7e]+", key):
            raise ValueError("The API key (WAYPOST_API_KEY) has characters that no key has.")
        if not url:
            raise ValueError("Waypost needs the address of the service: pass it as base_url, or set WAYPOST_URL.")
        if not re.fullmatch(r"https?://[^/?#@\s]+(/[^?#\s]*)?", url):
            raise ValueError("The address of Waypost (base_url, WAYPOST_URL) must look like https://mail.example.com.")
        self.base_url, self.timeout, self.retries = url.rstrip("/"), timeout, retries
        self.headers = {"Authorization": f"Bearer {key}", "User-Agent": f"waypost-python/{version}"}


class Url(httpx.URL):
    """httpx logs the address of each request. That of a list may have the address of a person in its query."""

    def __str__(self) -> str:
        return super().__str__().split("?")[0]


class Attempts:
    """The attempts of one call. The headers and the body are the same in all: so is the idempotency key."""

    def __init__(self, settings: Settings, client: httpx.Client | httpx.AsyncClient, call: Call) -> None:
        unknown = set(call.options) - set(RequestOptions.__annotations__)
        if unknown:
            raise TypeError(f"{call.method} {call.route} got an unexpected argument {unknown.pop()!r}")
        given: dict[str, Any] = {name: value for name, value in call.options.items() if value is not None}
        self.timeout: float = given.get("timeout", settings.timeout)
        self.retries: int = given.get("max_retries", settings.retries)
        self.call, self.base_url, self.count = call, settings.base_url, 0
        headers = {**given.get("extra_headers", {}), **settings.headers}
        if call.idempotent or "idempotency_key" in given:
            headers["Idempotency-Key"] = given.get("idempotency_key") or str(uuid4())
        content = json.dumps(encode(call.body_type, call.body)) if call.body_type else call.body
        if content is not None:
            headers["Content-Type"] = call.media_type
        url = httpx.URL(self.base_url + fill(call.route, call.path or {}), params=params(call.query or {}))
        self.request = client.build_request(call.method, url, headers=headers, content=content, timeout=self.timeout)
        self.request.url = Url(self.request.url)

    def begin(self) -> httpx.Request:
        self.count, self.begun = self.count + 1, time.monotonic()
        return self.request

    def in_time(self, part: bytes) -> bytes:
        """A part of an answer. httpx limits the time between two parts, but not that of all."""
        if time.monotonic() > self.begun + self.timeout:
            raise httpx.ReadTimeout("the answer takes too long")
        return part

    def error(self, response: httpx.Response) -> WaypostError | None:
        if not response.is_success:
            return error_of(response)
        self.report(response.status_code, response.headers.get("X-Request-Id"), "")
        return None

    def failure(self, cause: httpx.RequestError) -> WaypostError:
        why = str(cause) or type(cause).__name__
        error = APIConnectionError(f"Waypost at {self.base_url} cannot be reached, or broke off: {why}")
        if isinstance(cause, httpx.TimeoutException):
            error = APITimeoutError(f"Waypost did not answer within {self.timeout:g} s. See the argument timeout.")
        error.__cause__ = cause
        return error

    def wait(self, error: WaypostError) -> float:
        """How many seconds to wait before the next attempt. If there is to be none, it raises the error."""
        repeat = self.count <= self.retries and may_repeat(error, self.call)
        seconds = delay(error, self.count - 1) if repeat else None
        self.report(
            error.status, error.request_id, f", {error.code}" + (f", again in {seconds:.1f} s" if seconds else "")
        )
        if seconds is None:
            raise error
        return seconds

    def report(self, status: int | None, request_id: str | None, more: str) -> None:
        what, ms = f"{self.call.method} {self.call.route}", (time.monotonic() - self.begun) * 1000
        log.debug("%s attempt %d: status %s, request %s, %d ms%s", what, self.count, status, request_id, ms, more)


class Http:
    """Does the calls of `Waypost`."""

    def __init__(self, settings: Settings, client: httpx.Client | None) -> None:
        self._settings, self._client, self._own = settings, client or httpx.Client(), client is None

    def close(self) -> None:
        if self._own:
            self._client.close()

    def json(self, kind: type[T], call: Call, key: str | None = None) -> T:
        """The answer's JSON, or what it has under a key."""
        return cast(T, decode(kind, json_of(self.send(call), key)))

    def pages(self, kind: type[T], call: Call) -> Page[T]:
        """A list, by pages."""
        return Page(kind, call, json_of(self.send(call)), lambda call: self.pages(kind, call))

    def send(self, call: Call, stream: bool = False) -> httpx.Response:
        """The answer; a stream as it comes, for files. Then the timeout is for each part of it."""
        attempts = Attempts(self._settings, self._client, call)
        while True:
            try:
                response = self._client.send(attempts.begin(), stream=True, follow_redirects=False)
                if not (stream and response.is_success):
                    with closing(response):
                        parts = [attempts.in_time(part) for part in response.iter_raw()]
                    response = httpx.Response(response.status_code, headers=response.headers, content=b"".join(parts))
                error = attempts.error(response)
                if error is None:
                    return response
            except httpx.RequestError as cause:
                error = attempts.failure(cause)
            time.sleep(attempts.wait(error))


class AsyncHttp:
    """Does the calls of `AsyncWaypost`."""

    def __init__(self, settings: Settings, client: httpx.AsyncClient | None) -> None:
        self._settings, self._client, self._own = settings, client or httpx.AsyncClient(), client is None

    async def aclose(self) -> None:
        if self._own:
            await self._client.aclose()

    async def json(self, kind: type[T], call: Call, key: str | None = None) -> T:
        """The answer's JSON, or what it has under a key."""
        return cast(T, decode(kind, json_of(await self.send(call), key)))

    def pages(self, kind: type[T], call: Call) -> AsyncPages[T]:
        """A list, by pages."""

        async def load(call: Call) -> AsyncPage[T]:
            return AsyncPage(kind, call, json_of(await self.send(call)), load)

        return AsyncPages(call, load)

    async def send(self, call: Call, stream: bool = False) -> httpx.Response:
        """The answer; a stream as it comes, for files. Then the timeout is for each part of it."""
        attempts = Attempts(self._settings, self._client, call)
        while True:
            try:
                response = await self._client.send(attempts.begin(), stream=True, follow_redirects=False)
                if not (stream and response.is_success):
                    try:
                        parts = [attempts.in_time(part) async for part in response.aiter_raw()]
                    finally:
                        await response.aclose()
                    response = httpx.Response(response.status_code, headers=response.headers, content=b"".join(parts))
                error = attempts.error(response)
                if error is None:
                    return response
            except httpx.RequestError as cause:
                error = attempts.failure(cause)
            await asyncio.sleep(attempts.wait(error))


def json_of(response: httpx.Response, key: str | None = None) -> Any:
    body = object_of(response)
    if body is None or (key and key not in body):
        raise error_of(response)
    return body[key] if key else body


def object_of(response: httpx.Response) -> dict[str, Any] | None:
    try:
        return as_object(response.json())
    except ValueError:
        return None


def as_object(value: Any) -> dict[str, Any] | None:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def error_of(response: httpx.Response) -> WaypostError:
    headers, status = response.headers, response.status_code
    error = as_object((object_of(response) or {}).get("error")) or {}
    code, location = error.get("code", "UNEXPECTED_ANSWER"), headers.get("Location")
    hint = f"It leads to {location}: set base_url to that." if location else "Is base_url right? Is a proxy in between?"
    limits = [headers.get(f"X-RateLimit-{name}", "") for name in ("Limit", "Remaining", "Reset")]
    return ERROR_CLASSES.get(code, WaypostError)(
        error.get("message") or f"The answer (status {status}) is not one of Waypost's. {hint}",
        code=code,
        status=status,
        details=decode(ErrorDetails, as_object(error.get("details"))),
        request_id=headers.get("X-Request-Id"),
        rate_limit=RateLimit(*map(int, limits)) if all(map(str.isdecimal, limits)) else None,
        retry_after=retry_after_of(headers.get("Retry-After", "")),
    )


def may_repeat(error: WaypostError, call: Call) -> bool:
    """Whether to repeat a call. What was surely not done is repeated always. After a lost answer, or a fault of the
    service, nobody knows whether it was done: then only what may be done twice is repeated. These are GET, PUT, DELETE
    and PATCH, which here lead to the same state however often they are done (a repeated DELETE may answer 404), and a
    POST with an idempotency key that the service knows, or one that changes nothing more the second time.
    """
    if error.status in (408, 409, 429):
        return error.status != 409 or error.reason == "IDEMPOTENCY_IN_PROGRESS"
    safe = call.method != "POST" or call.idempotent or call.repeatable
    return safe and (error.status is None or error.status >= 500)


def delay(error: WaypostError, retry: int) -> float | None:
    """How many seconds to wait before the next attempt; None if that is too long."""
    jitter = random.uniform(0, min(BACKOFF_MAX_S, BACKOFF_S * 2.0**retry))
    if error.retry_after is None:
        return jitter
    return None if error.retry_after > RETRY_AFTER_MAX_S else error.retry_after + jitter / 4


def retry_after_of(value: str) -> float | None:
    """`Retry-After` in seconds; it may also be a date."""
    if value.isdecimal():
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError):
        return None


def fill(route: str, path: Mapping[str, str]) -> str:
    """The path. An empty id would make it the path of another operation."""
    for name, value in path.items():
        if str(value) in ("", ".", ".."):
            raise ValueError(f"{name} must be an id, not {value!r}.")
        route = route.replace(f"{{{name}}}", quote(str(value), safe=""))
    return route


def params(query: Mapping[str, Any]) -> dict[str, Any]:
    """The query as httpx takes it. Lists go as `a,b`."""
    given: dict[str, Any] = {name: encode(None, value) for name, value in query.items() if value is not None}
    return {name: ",".join(cast(Any, each)) if isinstance(each, list) else each for name, each in given.items()}
