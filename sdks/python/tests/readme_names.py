"""What the programs of README.md take for granted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable, Optional, TypeVar

from waypost import Waypost as Waypost
from waypost import types

View = TypeVar("View", bound=Callable[..., Any])

waypost = Waypost()
receipt: types.SendMessageRequest = {"to": "ada@example.org"}
data = b"%PDF"


class order:
    id = 1


def mark_as_bounced(recipient: str, kind: Optional[types.BounceType]) -> None: ...


# Of Django:


def csrf_exempt(view: View) -> View:
    return view


def require_POST(view: View) -> View:
    return view


class settings:
    WAYPOST_WEBHOOK_SECRET = ""


class HttpRequest:
    body: bytes
    headers: Mapping[str, str]


class HttpResponse:
    def __init__(self, status: int) -> None: ...
