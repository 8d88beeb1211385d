"""Lists, by pages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from ..types import Pagination
from .errors import WaypostError
from .model import decode

if TYPE_CHECKING:
    from .http import Call

T = TypeVar("T")


class _Page(Generic[T]):
    def __init__(self, kind: type[T], call: Call, body: dict[str, Any], load: Callable[[Call], Any]) -> None:
        self._load, self.raw = load, body
        self.data: list[T] = [decode(kind, item) for item in body["data"]]
        """The items of this page."""
        self.pagination: Pagination | None = decode(Pagination, body.get("pagination"))
        """Where this page is; None for a short list, which has one page."""
        cursor, query = self.pagination and self.pagination.next_cursor, call.query or {}
        if cursor and cursor == query.get("cursor"):
            raise WaypostError("The service gave the same page twice. Does a proxy store its answers?")
        self._next = replace(call, query={**query, "page": None, "cursor": cursor}) if cursor else None


class Page(_Page[T]):
    """A page of a list. Iterating over it gives its items and those of all pages after it."""

    def next(self) -> Page[T] | None:
        """The page after this one; None at the end. Rows that are added to the list meanwhile move nothing."""
        return cast("Page[T]", self._load(self._next)) if self._next else None

    def __iter__(self) -> Iterator[T]:
        page: Page[T] | None = self
        while page:
            yield from page.data
            page = page.next()


class AsyncPage(_Page[T]):
    """A page of a list. Iterating over it gives its items and those of all pages after it."""

    async def next(self) -> AsyncPage[T] | None:
        """The page after this one; None at the end. Rows that are added to the list meanwhile move nothing."""
        return cast("AsyncPage[T]", await self._load(self._next)) if self._next else None

    async def __aiter__(self) -> AsyncIterator[T]:
        page: AsyncPage[T] | None = self
        while page:
            for item in page.data:
                yield item
            page = await page.next()


class AsyncPages(Generic[T]):
    """A list: `await` gives its first page, `async for` all items of all pages. Nothing is sent before one of them."""

    def __init__(self, call: Call, load: Callable[[Call], Coroutine[Any, Any, AsyncPage[T]]]) -> None:
        self._call, self._load = call, load

    def __await__(self) -> Generator[Any, None, AsyncPage[T]]:
        return self._load(self._call).__await__()

    async def __aiter__(self) -> AsyncIterator[T]:
        async for item in await self:
            yield item
