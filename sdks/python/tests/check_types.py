"""Read by type checkers, never run: they must accept what a user writes, and refuse what is wrong. A comment that
ignores an error where there is none is an error, too.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Optional

import httpx

import waypost as sdk
from waypost import AsyncWaypost, NotFoundError, Waypost, WaypostError, types, webhooks


def send(waypost: Waypost) -> Optional[str]:
    sent = waypost.messages.send(
        from_="Shop <shop@example.com>",
        to=[{"email": "ada@example.org", "variables": {"name": "Ada"}}, "bob@example.org"],
        subject="Hello",
        text="Hello",
        html=None,
        tags=("receipts",),
        tracking={"opens": False},
        scheduled_at=datetime.now(timezone.utc),
        test_outcome="an outcome of tomorrow",
        idempotency_key="x",
        timeout=5,
    )
    waypost.messages.send(to="b@example.com", from_="a@example.com", subjekt="x")  # type: ignore[call-arg]
    waypost.messages.send(from_="a@example.com", subject="x")  # type: ignore[call-arg]
    waypost.messages.send(to=[{"e_mail": "b@example.com"}])  # type: ignore[list-item]
    waypost.messages.send(to="b@example.com", timeout="5")  # type: ignore[arg-type]
    waypost.messages.get(5)  # type: ignore[arg-type]
    print(sent.message_identity)  # type: ignore[attr-defined]
    request: types.SendMessageRequest = {"to": "a@example.com", "from_": "b@example.com"}
    waypost.messages.send(**request)
    return None if sent.status == "suppressed" else sent.message_id


def update(waypost: Waypost) -> None:
    waypost.messages.update("id", scheduled_at=None)
    waypost.messages.update("id", scheduled_at=sdk.NOT_GIVEN)
    waypost.templates.update("id", name="x", description=None)
    waypost.settings.update(unverified_domains="accept", rate_limits={"send_per_second": None})


def list_messages(waypost: Waypost) -> list[types.MessageStatus]:
    statuses: list[types.MessageStatus] = []
    for message in waypost.messages.list(status=["BOUNCED", "A_NEW_ONE"], created_from=datetime.now(timezone.utc)):
        statuses.append(message.status)
        at: datetime = message.created_at
        sent_at: datetime = message.sent_at  # type: ignore[assignment]
        print(at, sent_at)
    page = waypost.messages.list()
    first: str = page.data[0].id
    total: Optional[int] = page.pagination.total if page.pagination else None
    following = page.next()
    return statuses if following and first and total else []


async def list_asynchronously(waypost: AsyncWaypost) -> int:
    async for message in waypost.messages.list():
        print(message.id.upper())
    page: sdk.AsyncPage[types.ProviderAccount] = await waypost.providers.list()
    following = await page.next()
    account = await waypost.providers.get("id")
    file: httpx.Response = await waypost.messages.attachments.download("id", "0")
    await file.aread()
    return len(following.data) if following and account.is_active else 0


def narrow(event: types.WebhookEvent) -> Optional[str]:
    if event.event == "CLICKED":
        return event.data.url
    if event.event == "BOUNCED":
        return event.data.bounce_type
    if isinstance(event, types.ProviderFailingEvent):
        return event.data.cause
    if event.event == "SUPPRESSION_CREATED":
        print(event.data.recipient)  # type: ignore[attr-defined]
        return event.data.email_hash
    return None


def receive(request: httpx.Request) -> tuple[int, Optional[str]]:
    try:
        event = webhooks.verify(request.content, request.headers, ["whsec_a", "whsec_b"])
    except NotFoundError as error:
        return error.status or 500, error.reason
    except WaypostError as error:
        return 401, error.issues[0].path
    return 200, narrow(event)


def resources(waypost: Waypost) -> None:
    provider = waypost.providers.create(
        provider_type="SENDGRID",
        display_name="Main",
        credentials={"api_key": "SG.x"},
        event_secrets={"public_key": "x"},
    )
    waypost.providers.domains.create(provider.id, domain="example.com")
    data = waypost.templates.versions.list("id").data
    waypost.templates.versions.get("id", data[0].id, timeout=1, extra_headers={"X-Trace": "1"})
    waypost.webhook_endpoints.deliveries.replay("endpoint", "delivery")
    waypost.suppressions.import_(emails=["ada@example.org"], unsubscribe_group_id="x")
    waypost.suppressions.import_csv("email\nada@example.org\n", idempotency_key="x")
    lines: list[str] = list(waypost.suppressions.export().iter_lines())
    with Waypost("key", base_url="https://x", http_client=httpx.Client(), max_retries=0) as custom:
        custom.settings.update(unverified_domains="accept")
        custom.webhooks.verify("", {}, lines)
