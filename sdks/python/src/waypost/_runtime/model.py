"""Records with attributes, made of JSON; and JSON, made of arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timezone
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, Union, cast, get_args, get_origin, get_type_hints

TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,6})\d*)?(Z|[+-]\d\d:\d\d)")
SECRET = re.compile(r"(^|_)(key|password|secret|token)$")


class NotGiven:
    """The type of `NOT_GIVEN`."""

    def __repr__(self) -> str:
        return "NOT_GIVEN"


NOT_GIVEN = NotGiven()
"""Leaves a field as it is, where None would clear it. It is the default of such arguments."""


class Model:
    """A record that Waypost sent. The attributes are converted; `raw` is the JSON as it came.

    A newer Waypost may send fields that this package does not know: they are in `raw`. A field that is missing is None.
    You can make one from JSON for a test: `MessageDetail({"id": "1", "status": "SENT"})`.
    """

    raw: Mapping[str, Any]

    def __init__(self, raw: Mapping[str, Any]) -> None:
        values = {name: decode(kind, raw.get(wire(name))) for name, kind in fields(cast(Any, type(self))).items()}
        vars(self).update(values, raw=raw)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model) and type(other) is type(self) and other.raw == self.raw

    def __repr__(self) -> str:
        given = [(name, value) for name, value in vars(self).items() if name != "raw" and value is not None]
        shown = [f"{name}={'…' if SECRET.search(name) else repr(value)}" for name, value in given]
        return f"{type(self).__name__}({', '.join(shown)})"

    if not TYPE_CHECKING:  # Type checkers know the declared attributes only.

        def __getattr__(self, name: str) -> Any:
            raw = vars(self).get("raw", {})
            if wire(name) in raw:
                return raw[wire(name)]
            raise AttributeError(f"{type(self).__name__} has no {name!r}")


def wire(name: str) -> str:
    """The name in JSON of an attribute or argument: `createdAt`."""
    first, *rest = name.rstrip("_").split("_")
    return first + "".join(map(str.capitalize, rest))


@lru_cache(maxsize=None)
def fields(kind: Any) -> dict[str, Any]:
    """The fields of a record or a TypedDict, with their types."""
    return {name: hint for name, hint in get_type_hints(kind).items() if name != "raw"}


def decode(kind: Any, value: Any) -> Any:
    """Makes records and times of JSON. What is not as the type says stays as it is."""
    for option in options(kind):
        arguments: Any = get_args(option)
        if isinstance(value, str) and option is datetime:
            return parse_time(value)
        if isinstance(value, list) and get_origin(option) is list:
            return [decode(arguments[0], item) for item in value]  # pyright: ignore[reportUnknownVariableType]
        if isinstance(value, dict) and get_origin(option) is dict:
            return {key: decode(arguments[1], item) for key, item in cast("dict[str, Any]", value).items()}
        if isinstance(value, dict) and is_record(option):
            return variant(kind, cast("dict[str, Any]", value))
    return cast(Any, value)


def variant(kind: Any, value: dict[str, Any]) -> Model:
    """The record of a union whose constants the value has; for a value of tomorrow a plain `Model`."""

    def fits(record: Any) -> bool:
        constants = {name: get_args(hint) for name, hint in fields(record).items() if get_origin(hint) is Literal}
        return all(value.get(wire(name)) in allowed for name, allowed in constants.items())

    return next((option for option in options(kind) if is_record(option) and fits(option)), Model)(value)


def encode(kind: Any, value: Any) -> Any:
    """Makes JSON of arguments: names as in JSON, times as text. Keys that the type does not name stay as they are."""
    if isinstance(value, Model):
        return value.raw
    if isinstance(value, datetime):
        return format_time(value)
    if isinstance(value, Mapping):
        requests = [fields(option) for option in options(kind) if hasattr(option, "__total__")]
        known = {name: hint for request in requests for name, hint in request.items()}
        return {
            wire(key) if key in known else key: encode(known.get(key), item)
            for key, item in cast("Mapping[str, Any]", value).items()
            if is_given(known.get(key), item)
        }
    if isinstance(value, (list, tuple)):
        items: Any = Union[tuple(each[0] for each in map(get_args, options(kind)) if len(each) == 1) or (None,)]
        return [encode(items, item) for item in cast("tuple[Any, ...]", value)]
    return value


def is_given(kind: Any, value: Any) -> bool:
    """Whether to send a value. None is sent only where it means something."""
    return value is not NOT_GIVEN and (value is not None or kind is None or type(None) in options(kind))


def parse_time(text: str) -> datetime | str:
    """A time, to the microsecond. A text that is no time stays as it is."""
    match = TIME.fullmatch(text)
    seconds, fraction, zone = match.groups(default="") if match else ("", "", "")
    try:
        return datetime.fromisoformat(f"{seconds}.{fraction:0<6}{zone.replace('Z', '+00:00')}")
    except ValueError:
        return text


def format_time(time: datetime) -> str:
    if time.tzinfo is None:
        raise ValueError("A time needs a time zone: datetime.now(timezone.utc), for instance.")
    return time.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")


def options(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) is Union else (kind,)


def is_record(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Model)
