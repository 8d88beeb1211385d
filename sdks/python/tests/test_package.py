"""What holds for the package as it is published, and what is not in the cases that all SDKs share."""

from __future__ import annotations

import ast
import copy
import inspect
import json
import pickle
from collections.abc import Iterator
from datetime import datetime, timezone
from importlib.metadata import requires, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import waypost as sdk
from waypost import AsyncWaypost, Waypost, types

from .support import RUN, Client, mail

SOURCES = Path(__file__).resolve().parents[1] / "src" / "waypost"


def members(client: object, path: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in inspect.getmembers(client):
        if inspect.ismethod(value) and path and not name.startswith("_"):
            yield path + name, inspect.signature(value).parameters
        elif type(value).__module__.endswith(".resources"):
            yield from members(value, f"{path}{name}.")


def test_both_clients_have_the_same_methods() -> None:
    options: dict[str, Any] = {"api_key": "key", "base_url": "https://mail.example.com"}
    methods = dict(members(Waypost(**options)))
    assert methods == dict(members(AsyncWaypost(**options)))
    assert "templates.versions.list" in methods and "suppressions.import_csv" in methods


def test_the_package_depends_on_httpx_alone() -> None:
    assert requires("waypost") == ["httpx<1,>=0.25"]
    for path in SOURCES.rglob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        names |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and not node.level}
        specs = {name: find_spec(name.split(".")[0]) for name in names - {"typing_extensions"}}
        installed = {name for name, spec in specs.items() if spec is None or "site-packages" in (spec.origin or "")}
        assert installed <= {"httpx"}, path


def test_the_package_is_typed_and_has_the_version_of_the_api() -> None:
    assert (SOURCES / "py.typed").exists()
    assert version("waypost") == sdk.VERSION


def test_the_names_in_dicts_are_those_of_arguments(client: Client) -> None:
    waypost, proxy = client.by_proxy()
    at = datetime(2030, 1, 1, tzinfo=timezone.utc)
    message: Any = mail(reply_to="b@example.org", html=None, metadata={"snake_case": None, "at": at})
    message["attachments"] = ({"filename": "a.txt", "content": "YQ==", "content_type": "text/plain"},)
    # As documentation of the API has it.
    message["to"] = [{"email": "ada@example.org", "variables": {"first_name": "Ada"}}]
    waypost.messages.send_batch(messages=[message])
    (sent,) = json.loads(proxy.requests()[0]["body"])["messages"]
    assert sent == {
        "from": "Shop <shop@example.com>",
        "to": [{"email": "ada@example.org", "variables": {"first_name": "Ada"}}],
        "subject": "Hello",
        "text": "Hello, Ada",
        "replyTo": "b@example.org",
        "metadata": {"snake_case": None, "at": "2030-01-01T00:00:00Z"},
        "attachments": [{"filename": "a.txt", "content": "YQ==", "contentType": "text/plain"}],
    }


def test_none_clears_only_what_can_be_cleared(client: Client) -> None:
    waypost, proxy = client.by_proxy()
    waypost.settings.update(retention_days=None, soft_bounce_limit=None, rate_limits={"send_per_second": None})
    waypost.settings.update(rate_limits=None, track_opens=True)
    bodies = [json.loads(request["body"]) for request in proxy.requests()]
    assert bodies == [{"retentionDays": None, "rateLimits": {"sendPerSecond": None}}, {"trackOpens": True}]


def test_a_csv_file_goes_as_it_is(client: Client) -> None:
    waypost, proxy = client.by_proxy()
    result = waypost.suppressions.import_csv(f"email\ncsv-{client.asynchronous}-{RUN}@example.org\n")
    assert result.imported == 1
    assert proxy.requests()[0]["body"].startswith("email\n")
    assert proxy.requests()[0]["query"] == ""
    assert b"emailHash" in client.read(waypost.suppressions.export())


def test_a_call_says_who_it_is_and_takes_headers(client: Client) -> None:
    waypost, proxy = client.by_proxy()
    waypost.settings.get(extra_headers={"Authorization": "none"})
    assert proxy.requests()[0]["userAgent"] == f"waypost-python/{sdk.VERSION}"


def test_an_unknown_argument_is_refused(waypost: Waypost) -> None:
    with pytest.raises(TypeError, match="unexpected argument 'subjekt'"):
        waypost.messages.send(**mail(subjekt="Hello"))


def test_a_record_can_be_made_compared_copied_and_shown() -> None:
    raw = {"id": "1", "key": "wp_live_x", "name": "n", "createdAt": "2026-11-20T12:00:00.1234567+01:00", "newField": 1}
    record = types.ApiKeyWithSecret(raw)
    assert record == types.ApiKeyWithSecret(dict(raw)) and record != types.ApiKey(raw) and record != raw
    assert record.created_at == datetime(2026, 11, 20, 11, 0, 0, 123456, tzinfo=timezone.utc)
    assert record.expires_at is None
    assert pickle.loads(pickle.dumps(record)) == copy.deepcopy(record) == record
    assert repr(record).startswith("ApiKeyWithSecret(id='1', name='n', created_at=") and "wp_live" not in repr(record)
    assert getattr(record, "new_field") == 1  # noqa: B009
    with pytest.raises(AttributeError, match="ApiKeyWithSecret has no 'nothing'"):
        getattr(record, "nothing")  # noqa: B009


def test_an_error_survives_another_process() -> None:
    issues = [{"path": "to", "message": "is missing"}, {"path": "text", "message": "is empty"}]
    details = types.ErrorDetails({"reason": "TEST_KEY", "issues": issues})
    error = pickle.loads(pickle.dumps(sdk.ConflictError("No", code="CONFLICT", status=409, details=details)))
    assert type(error) is sdk.ConflictError
    assert (error.status, error.reason, str(error)) == (409, "TEST_KEY", "No: to is missing; text is empty")
