"""The cases of sdks/conformance/cases.md, live, by both clients. Needs WAYPOST_URL, WAYPOST_API_KEY, SIMULATOR_URL and
CONFORMANCE_PROXY_URL; scripts/test-sdks.sh starts the proxy.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import signal
import time
from base64 import b64encode
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Optional
from urllib.parse import parse_qsl

import httpx
import pytest

import waypost as sdk
from waypost import AsyncWaypost, Waypost, WaypostError, types, webhooks

from .support import RUN, Client, Proxy, answer, captured_to, mail, refusal, until

ROOT = Path(__file__).resolve().parents[3]
SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="


def count_with_tag(waypost: Waypost, tag: str) -> int:
    return len(list(waypost.messages.list(tag=tag)))


def is_delivered(waypost: Waypost, message_id: str) -> Optional[types.MessageDetail]:
    found = waypost.messages.get(message_id)
    return found if found.status == "DELIVERED" else None


def send(waypost: Waypost, **more: Any) -> str:
    message_id = waypost.messages.send(**mail(**more)).message_id
    assert message_id
    return message_id


def test_c01_a_missing_key_or_address_fails_at_construction(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WAYPOST_API_KEY")
    with pytest.raises(ValueError, match="WAYPOST_API_KEY"):
        client()
    monkeypatch.delenv("WAYPOST_URL")
    with pytest.raises(ValueError, match="WAYPOST_URL"):
        client("key")
    with pytest.raises(ValueError, match="https:"):
        client("key", base_url="mail.example.com")


def test_c02_the_environment_is_enough(client: Client) -> None:
    assert client().settings.get().unverified_domains == "accept"


def test_c03_a_key_with_a_line_break_is_refused_and_not_shown(client: Client) -> None:
    with pytest.raises(ValueError, match="API key") as raised:
        client("wp_live_secret\n")
    assert "secret" not in str(raised.value)


def test_c04_a_message_is_sent_and_delivered(waypost: Waypost, client: Client) -> None:
    to = f"c04-{client.asynchronous}-{RUN}@example.org".lower()
    sent = waypost.messages.send(from_="Shop <shop@example.com>", to=to, subject="Hello", text="Hello, Ada")
    assert sent.status == "queued" and sent.message_id
    message_id = sent.message_id
    message = until(lambda: is_delivered(waypost, message_id), "the delivery")
    assert message.subject == "Hello"
    assert isinstance(message.events[0].occurred_at, datetime)
    assert [recipient.status for recipient in waypost.messages.recipients.list(message_id)] == ["DELIVERED"]
    assert captured_to(to) == 1


def test_c05_a_batch_has_a_result_for_each_message(waypost: Waypost) -> None:
    good: types.BatchMessage = {"from_": "shop@example.com", "to": "a@example.org", "subject": "A", "text": "A"}
    results = waypost.messages.send_batch(messages=[good, {**good, "to": "nobody"}, good]).results
    assert len(results) == 3
    assert results[0].message_id and results[2].message_id
    assert results[1].error and "email address" in results[1].error


def test_c06_a_scheduled_message_is_read_moved_and_cancelled(waypost: Waypost) -> None:
    tomorrow = datetime.now(timezone(timedelta(hours=2))).replace(microsecond=0) + timedelta(days=1)
    message_id = send(waypost, scheduled_at=tomorrow)
    assert waypost.messages.get(message_id).scheduled_at == tomorrow
    later = tomorrow + timedelta(days=1, milliseconds=5)
    assert waypost.messages.update(message_id, scheduled_at=later).scheduled_at == later
    assert waypost.messages.update(message_id).scheduled_at == later
    assert waypost.messages.cancel(message_id).cancelled_count == 1
    with pytest.raises(sdk.ConflictError) as raised:
        waypost.messages.update(message_id, scheduled_at=None)
    assert raised.value.reason


def test_c07_sub_resources(waypost: Waypost) -> None:
    template = waypost.templates.create(name=f"Receipt {RUN}", description="For receipts")
    version = waypost.templates.versions.create(
        template.id, subject="Hello {{name}}", html_content="<p>{{name}}</p>", variables_schema={"type": "object"}
    )
    assert waypost.templates.versions.get(template.id, version.id).id == version.id
    assert [each.id for each in waypost.templates.versions.list(template.id).data] == [version.id]
    assert waypost.templates.preview(template.id, variables={"name": "Ada"}).subject == "Hello Ada"
    renamed = waypost.templates.update(template.id, name=f"Renamed {RUN}")
    assert (renamed.name, renamed.description) == (f"Renamed {RUN}", "For receipts")
    assert waypost.templates.update(template.id, description=None).description is None
    waypost.templates.delete(template.id)
    with pytest.raises(sdk.NotFoundError):
        waypost.templates.get(template.id)


def test_c08_a_file_comes_as_it_was_sent(waypost: Waypost, client: Client) -> None:
    content = bytes([0, 255, 10, 13, 128])
    message_id = send(waypost, attachments=[{"filename": "data.bin", "content": b64encode(content).decode()}])
    assert waypost.messages.attachments.list(message_id).data[0].size == len(content)
    assert client.read(waypost.messages.attachments.download(message_id, "0")) == content


@pytest.mark.parametrize("id", ["", "..", "."])
def test_c09_an_id_that_is_none_is_refused_before_anything_is_sent(client: Client, id: str) -> None:
    waypost, proxy = client.by_proxy()
    with pytest.raises(ValueError, match="must be an id"):
        waypost.messages.get(id)
    assert proxy.requests() == []


def answer_is_lost(client: Client, how: str) -> None:
    tag = f"{how}-{client.asynchronous}-{RUN}".lower()
    waypost, proxy = client.by_proxy({"path": "/v1/send", how: True})
    to = f"{tag}@example.org"
    message_id = send(waypost, tags=[tag], to=to)
    keys = [request["idempotencyKey"] for request in proxy.requests()]
    assert len(keys) == 2 and keys[0] and keys[0] == keys[1]
    assert count_with_tag(waypost, tag) == 1
    until(lambda: is_delivered(waypost, message_id), "the delivery")
    assert captured_to(to) == 1


def test_c10_a_send_whose_answer_is_lost_is_done_once(client: Client) -> None:
    answer_is_lost(client, "lose")


def test_c11_a_send_whose_answer_breaks_off_is_done_once(client: Client) -> None:
    answer_is_lost(client, "cut")


def test_c12_two_sends_have_two_keys(client: Client) -> None:
    waypost, proxy = client.by_proxy()
    assert send(waypost) != send(waypost)
    assert len({request["idempotencyKey"] for request in proxy.requests()}) == 2


def test_c13_one_key_of_the_callers_is_one_message(waypost: Waypost, client: Client) -> None:
    key = f"order-{client.asynchronous}-{RUN}"
    assert send(waypost, idempotency_key=key) == send(waypost, idempotency_key=key)
    with pytest.raises(sdk.ConflictError) as raised:
        send(waypost, idempotency_key=key, subject="Another")
    assert raised.value.reason == "IDEMPOTENCY_KEY_REUSED"


def test_c20_a_wrong_request_names_its_mistakes(waypost: Waypost) -> None:
    with pytest.raises(sdk.ValidationError) as raised:
        send(waypost, to=["ada@example.org", "nobody"])
    error: WaypostError = raised.value
    assert (error.status, error.code) == (400, "VALIDATION_ERROR")
    assert error.issues[0].path == "to.1"
    assert error.request_id and error.request_id in str(error)
    assert error.issues[0].message in str(error)
    assert error.rate_limit and error.rate_limit.limit > 0


def test_c21_a_wrong_key(client: Client) -> None:
    with pytest.raises(sdk.AuthenticationError) as raised:
        client("wp_live_wrong").settings.get()
    assert raised.value.status == 401


def test_c22_an_unknown_id(waypost: Waypost) -> None:
    with pytest.raises(sdk.NotFoundError) as raised:
        waypost.messages.get("01a1fbfa-b12e-763c-a29e-ce02006ba540")
    assert raised.value.status == 404


def test_c23_each_code_has_a_class(client: Client) -> None:
    document = json.loads((ROOT / "openapi/waypost.v1.json").read_text())
    codes = document["components"]["schemas"]["ErrorCode"]["enum"]
    assert len(codes) >= 12
    for code in codes:
        waypost, _ = client.by_proxy(refusal(422, code, reason="SOME_REASON"), max_retries=0)
        with pytest.raises(WaypostError) as raised:
            waypost.settings.get()
        name = "".join(word.capitalize() for word in code.split("_") if word != "ERROR") + "Error"
        error = raised.value
        assert type(error) is getattr(sdk, name) and type(error) is not WaypostError
        assert (error.code, error.message, error.reason) == (code, "No.", "SOME_REASON")
        assert error.request_id == "request-1"


def test_c24_an_unknown_code_keeps_its_text(client: Client) -> None:
    waypost, _ = client.by_proxy(refusal(418, "CODE_OF_TOMORROW", reason="NEW"))
    with pytest.raises(WaypostError) as raised:
        waypost.settings.get()
    error = raised.value
    assert type(error) is WaypostError
    assert (error.code, error.reason, error.status) == ("CODE_OF_TOMORROW", "NEW", 418)


@pytest.mark.parametrize("status", [502, 200])
def test_c25_an_answer_that_is_not_wayposts(client: Client, status: int) -> None:
    waypost, _ = client.by_proxy({**answer(status, "<h1>Hello</h1>"), "times": 0}, max_retries=0)
    for call in (waypost.settings.get, lambda: waypost.providers.list().data):
        with pytest.raises(WaypostError, match=r"not one of Waypost's.*base_url") as raised:
            call()
        assert type(raised.value) is WaypostError
        assert (raised.value.code, raised.value.status) == ("UNEXPECTED_ANSWER", status)


def test_c26_a_redirect_is_not_followed(client: Client) -> None:
    kind = httpx.AsyncClient if client.asynchronous else httpx.Client
    for http_client in (None, kind(follow_redirects=True)):
        rule = answer(301, "", {"Location": "https://mail.example.com/v1/send"})
        waypost, proxy = client.by_proxy(rule, http_client=http_client)
        with pytest.raises(WaypostError, match=r"https://mail\.example\.com") as raised:
            send(waypost)
        assert raised.value.status == 301
        assert len(proxy.requests()) == 1


def test_c27_nothing_listens(client: Client) -> None:
    with pytest.raises(sdk.APIConnectionError, match=r"127\.0\.0\.1:9") as raised:
        client("key", base_url="http://127.0.0.1:9", max_retries=0).settings.get()
    assert isinstance(raised.value, WaypostError) and raised.value.status is None
    assert isinstance(raised.value.__cause__, httpx.ConnectError)


def test_c30_retry_after_is_waited_for(client: Client) -> None:
    body = {"error": {"code": "RATE_LIMIT_EXCEEDED", "message": "Slow down."}}
    waypost, proxy = client.by_proxy(answer(429, body, {"Retry-After": "1"}))
    send(waypost)
    first, second = proxy.requests()
    assert second["at"] - first["at"] >= 1
    assert first["idempotencyKey"] == second["idempotencyKey"]


def test_c31_a_service_that_fails_twice(client: Client) -> None:
    waypost, proxy = client.by_proxy({**refusal(503, "SERVICE_UNAVAILABLE"), "times": 2})
    send(waypost)
    assert len(proxy.requests()) == 3


def test_c32_a_service_that_fails_always(client: Client) -> None:
    options: list[tuple[sdk.RequestOptions, int]] = [({}, 3), ({"max_retries": 0}, 1)]
    for given, expected in options:
        waypost, proxy = client.by_proxy({**refusal(500, "INTERNAL_ERROR"), "times": 0})
        with pytest.raises(sdk.InternalError):
            waypost.settings.get(**given)
        assert len(proxy.requests()) == expected


def test_c33_a_twin_that_still_runs(client: Client) -> None:
    waypost, _ = client.by_proxy(refusal(409, "CONFLICT", reason="IDEMPOTENCY_IN_PROGRESS"))
    send(waypost)
    waypost, proxy = client.by_proxy(refusal(409, "CONFLICT", reason="TEST_KEY"))
    with pytest.raises(sdk.ConflictError):
        send(waypost)
    assert len(proxy.requests()) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_c34_a_refusal_is_not_repeated(client: Client, status: int) -> None:
    waypost, proxy = client.by_proxy(refusal(status, "VALIDATION_ERROR"))
    with pytest.raises(WaypostError) as raised:
        send(waypost)
    assert raised.value.status == status
    assert len(proxy.requests()) == 1


def test_c35_after_a_lost_answer_only_what_is_safe_is_repeated(waypost: Waypost, client: Client) -> None:
    template = waypost.templates.create(name=f"Lost {RUN}")
    post, proxy = client.by_proxy({"drop": True})
    with pytest.raises(sdk.APIConnectionError):
        post.messages.retry(template.id)
    assert len(proxy.requests()) == 1
    preview, proxy = client.by_proxy({"drop": True})
    with pytest.raises(sdk.ValidationError):  # there is no version
        preview.templates.preview(template.id)
    assert len(proxy.requests()) == 2
    safe, proxy = client.by_proxy(*({"method": method, "drop": True} for method in ("GET", "PATCH", "DELETE")))
    safe.templates.get(template.id)
    safe.templates.update(template.id, name=f"Lost again {RUN}")
    safe.templates.delete(template.id)
    assert len(proxy.requests()) == 6


def test_c36_a_long_retry_after_is_left_to_the_caller(client: Client) -> None:
    body = {"error": {"code": "RATE_LIMIT_EXCEEDED", "message": "x"}}
    waypost, _ = client.by_proxy(answer(429, body, {"Retry-After": "3600"}))
    with pytest.raises(sdk.RateLimitExceededError) as raised:
        waypost.settings.get()
    assert raised.value.retry_after == 3600


def test_c40_paging_while_rows_are_added(waypost: Waypost, client: Client) -> None:
    tag = f"paging-{client.asynchronous}-{RUN}"

    def add(count: int) -> set[Optional[str]]:
        results = waypost.messages.send_batch(messages=[mail(tags=[tag]) for _ in range(count)]).results  # type: ignore[misc]
        return {result.message_id for result in results}

    first = add(25)
    seen: list[str] = []
    for message in waypost.messages.list(tag=tag, limit=5):
        if len(seen) % 5 == 0:
            add(3)
        seen.append(message.id)
    assert len(set(seen)) == len(seen), "a row came twice"
    assert first <= set(seen), "rows are missing"


def test_c41_pages_one_by_one(waypost: Waypost, client: Client) -> None:
    tag = f"pages-{client.asynchronous}-{RUN}"
    for _ in range(3):
        send(waypost, tags=[tag])
    page = waypost.messages.list(tag=tag, limit=2, page=1)
    assert len(page.data) == 2
    assert page.pagination and page.pagination.total == 3
    following = page.next()
    assert following and len(following.data) == 1
    assert following.next() is None


def test_c42_a_short_list_is_a_list_like_the_others(waypost: Waypost) -> None:
    page = waypost.providers.list()
    everything = list(waypost.providers.list())
    assert everything == page.data
    assert len(everything) >= 1


def test_c43_filters(client: Client) -> None:
    waypost, proxy = client.by_proxy()
    epoch = datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))
    list(waypost.messages.list(status=["BOUNCED", "FAILED"], created_from=epoch, test=False, limit=7, search=None))
    query = dict(parse_qsl(proxy.requests()[0]["query"]))
    expected = {"status": "BOUNCED,FAILED", "createdFrom": "1970-01-01T00:00:00Z", "test": "false", "limit": "7"}
    assert query == expected
    with pytest.raises(ValueError, match="time zone"):
        list(waypost.messages.list(created_from=datetime(1970, 1, 1)))


def test_c50_unknown_values_and_fields_pass_through(waypost: Waypost, client: Client) -> None:
    message_id = send(waypost)
    changes = [
        [["data", "status"], "OF_TOMORROW"],
        [["data", "newField"], {"deep": [1]}],
        [["data", "events", "*", "eventType"], "NEW"],
        [["data", "subject"], 5],
        [["data", "scheduledAt"], "someday"],
    ]
    by_proxy, _ = client.by_proxy({"set": changes})
    message = by_proxy.messages.get(message_id)
    assert message.status == "OF_TOMORROW"
    assert message.raw["newField"] == {"deep": [1]}
    assert message.events[0].event_type == "NEW"
    values: list[object] = [message.subject, message.scheduled_at]
    assert values == [5, "someday"]


def test_c60_the_vectors_of_webhooks() -> None:
    vectors = json.loads((ROOT / "sdks/conformance/webhooks.json").read_text())["vectors"]
    assert len(vectors) > 20
    for vector in vectors:
        now = datetime.fromtimestamp(vector["now"], timezone.utc)
        for headers in (vector["headers"], httpx.Headers(vector["headers"])):
            for body in (vector["body"], vector["body"].encode()):
                if vector["valid"]:
                    event = webhooks.verify(body, headers, vector["secrets"], now=now)
                    assert event.raw == json.loads(body), vector["name"]
                    assert event.event == event.raw["event"]
                    assert type(event).__name__ == {"DELIVERED": "DeliveredEvent"}.get(event.event, "Model")
                else:
                    with pytest.raises(sdk.WebhookVerificationError):
                        webhooks.verify(body, headers, vector["secrets"], now=now)


def test_c61_parsed_json_is_refused_with_the_reason() -> None:
    parsed: Any = {"event": "DELIVERED"}
    with pytest.raises(sdk.WebhookVerificationError, match=r"raw body.*parsed JSON"):
        webhooks.verify(parsed, {}, "whsec_x")
    for secret in ("", [], [""]):
        with pytest.raises(sdk.WebhookVerificationError, match="secret is empty"):
            webhooks.verify("{}", {}, secret)


def test_c62_sign_makes_what_verify_accepts() -> None:
    body = json.dumps({"event": "SENT", "timestamp": "2026-11-20T12:00:00.000Z", "data": {}})
    headers = webhooks.sign(body, SECRET)
    for prefix in ("x-waypost", "webhook"):
        one = {name: value for name, value in headers.items() if name.lower().startswith(prefix)}
        assert len(one) >= 2
        event = webhooks.verify(body, one, SECRET)
        assert event.event == "SENT"
        assert event.timestamp == datetime(2026, 11, 20, 12, tzinfo=timezone.utc)
    with pytest.raises(sdk.WebhookVerificationError):
        webhooks.verify(body + " ", headers, SECRET)


def test_c63_a_live_webhook(waypost: Waypost) -> None:
    proxy = Proxy([])
    endpoint = waypost.webhook_endpoints.create(url=proxy.hook, events=["QUEUED", "DELIVERED"])
    try:
        waypost.webhook_endpoints.test(endpoint.id)
        message_id = send(waypost)

        def delivered() -> Optional[types.DeliveredEvent]:
            for hook in proxy.hooks():
                if "x-waypost-signature" in hook.headers:
                    event = webhooks.verify(hook.body, hook.headers, endpoint.secret)
                    if event.event == "DELIVERED" and event.data.message_id == message_id:
                        return event
            return None

        assert until(delivered, "the webhook").data.recipient == f"ada-{RUN}@example.org"
    finally:
        waypost.webhook_endpoints.delete(endpoint.id)


C70_RULES = [
    {"wait": 3},
    answer(503, {"error": {"code": "SERVICE_UNAVAILABLE", "message": "x"}}, {"Retry-After": "5"}),
]


@pytest.mark.parametrize("rule", C70_RULES)
def test_c70_a_cancelled_task_ends_at_once(loop: asyncio.AbstractEventLoop, rule: dict[str, Any]) -> None:
    proxy = Proxy([rule])

    async def main() -> None:
        async with AsyncWaypost(base_url=proxy.url) as waypost:
            task = asyncio.ensure_future(waypost.settings.get())
            await asyncio.sleep(0.3)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    begun = time.monotonic()
    loop.run_until_complete(main())
    assert time.monotonic() - begun < 1.5
    assert len(proxy.requests()) == 1


@pytest.mark.parametrize("rule", C70_RULES)
def test_c70_an_interrupted_call_ends_at_once(rule: dict[str, Any]) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    proxy = Proxy([rule])
    before = signal.signal(signal.SIGALRM, interrupt)
    begun = time.monotonic()
    try:
        with Waypost(base_url=proxy.url) as waypost, pytest.raises(KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            waypost.settings.get()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - begun < 1.5
    assert len(proxy.requests()) == 1


def test_c71_a_timeout(client: Client) -> None:
    waypost, _ = client.by_proxy({"wait": 2, "times": 0}, timeout=0.2, max_retries=0)
    with pytest.raises(sdk.APITimeoutError, match=r"0\.2 s.*timeout") as raised:
        waypost.settings.get()
    assert isinstance(raised.value, sdk.APIConnectionError)


def test_c71_an_answer_that_comes_in_drops(client: Client, dripping: str) -> None:
    begun = time.monotonic()
    with pytest.raises(sdk.APITimeoutError):
        client("key", base_url=dripping, timeout=0.5, max_retries=0).settings.get()
    assert time.monotonic() - begun < 1.5


def test_c72_a_send_that_takes_too_long_at_first(client: Client) -> None:
    tag = f"late-{client.asynchronous}-{RUN}"
    waypost, proxy = client.by_proxy({"wait": 1})
    send(waypost, tags=[tag], timeout=0.7, max_retries=5)

    def all_answered() -> Optional[list[dict[str, Any]]]:
        found = proxy.requests()
        return found if all(request["status"] for request in found) else None

    requests = until(all_answered, "the late answer")
    assert len(requests) >= 2
    assert len({request["idempotencyKey"] for request in requests}) == 1
    assert count_with_tag(waypost, tag) == 1


def test_c80_the_log_has_nothing_private(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    waypost, _ = client.by_proxy(refusal(503, "SERVICE_UNAVAILABLE"))
    # Everything that is logged, by whatever library.
    with caplog.at_level(logging.DEBUG):
        send(waypost, subject="A private subject", idempotency_key=f"private-{RUN}")
        list(waypost.messages.list(recipient="ada-nobody@example.org"))
    own = [record.getMessage() for record in caplog.records if record.name == "waypost"]
    assert len(own) == 3
    assert re.search(r"POST /v1/send .*status 503.*request request-1", own[0])
    assert re.search(r"POST /v1/send .*status 202.*request \S+-", own[1])
    everything = "\n".join(record.getMessage() for record in caplog.records)
    assert "HTTP Request" in everything
    assert not re.search(r"ada[@-]|private|wp_live|Hello", everything)
