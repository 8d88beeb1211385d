"""Verifies what Waypost posts to your webhook endpoints.

```python
event = webhooks.verify(request.body, request.headers, secret)
```
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import time
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Protocol, cast
from uuid import uuid4

from ._runtime.errors import WebhookVerificationError
from ._runtime.model import decode
from .types import WebhookEvent

__all__ = ["WebhookHeaders", "WebhookVerificationError", "sign", "verify"]

TOLERANCE_S = 300
SECONDS = re.compile(r"[0-9]{1,12}")
SIGNATURES_MAX = 10
"""More signatures than a rotation can make are not looked at."""


class WebhookHeaders(Protocol):
    """The headers of a request, as any framework has them: a dict, or something like it."""

    def items(self) -> Iterable[tuple[str, str]]: ...


def verify(
    raw_body: str | bytes, headers: WebhookHeaders, secret: str | Sequence[str], *, now: datetime | None = None
) -> WebhookEvent:
    """The event of a request to your webhook endpoint, if Waypost signed it in the last five minutes.

    Else it raises a `WebhookVerificationError`. A newer Waypost may send events of other types: ignore what you do not
    know. They have the attributes `event`, `data` and `raw`, too.

    Args:
        raw_body: The body as it came, before anything parses it.
        headers: The headers of the request.
        secret: The endpoint's secret (`whsec_…`), or several: each may have signed it.
        now: The time to compare with, for tests.
    """
    secrets = [secret] if isinstance(secret, str) else list(secret or [])
    body, secrets = _bytes_of(raw_body), [each for each in secrets if each]
    if not secrets:
        raise WebhookVerificationError(
            "The secret is empty. Waypost shows it once, when it makes the endpoint (whsec_…)."
        )
    lower = {name.lower(): value for name, value in headers.items()}
    id, own, standard = (lower.get(name, "") for name in ("webhook-id", "x-waypost-timestamp", "webhook-timestamp"))
    listed = lower.get("webhook-signature", "").split(" ")[:SIGNATURES_MAX]
    given = [(lower.get(f"x-waypost-signature{end}", ""), own, _own) for end in ("", "-other")]
    given = [each for each in [*given, *((each, standard, _standard) for each in listed)] if each[0] and each[1]]
    if not given:
        raise WebhookVerificationError("The request has no signature (webhook-signature). Pass all its headers.")
    seconds = now.timestamp() if now else time.time()
    fresh = [each for each in given if SECONDS.fullmatch(each[1]) and abs(seconds - int(each[1])) <= TOLERANCE_S]
    if not fresh:
        raise WebhookVerificationError("It was not signed within five minutes of now: it is old, or a clock is wrong.")
    for each in secrets:
        for signature, timestamp, compute in fresh:
            # In constant time: how long it takes must not tell how much of a guess is right.
            if hmac.compare_digest(signature.encode(errors="replace"), compute(each, id, timestamp, body).encode()):
                return cast(WebhookEvent, decode(WebhookEvent, json.loads(body)))
    raise WebhookVerificationError("No signature is by this secret. Is it this endpoint's, and is the body as it came?")


def sign(
    raw_body: str | bytes, secret: str, *, id: str | None = None, timestamp: datetime | None = None
) -> dict[str, str]:
    """The headers that Waypost would send with this body, to test your receiver.

    Args:
        raw_body: The body that the test posts.
        secret: The endpoint's secret.
        id: The id of the delivery.
        timestamp: When it was signed. The default is now.
    """
    body, id = _bytes_of(raw_body), id or str(uuid4())
    seconds = str(int(timestamp.timestamp() if timestamp else time.time()))
    own = {"X-Waypost-Timestamp": seconds, "X-Waypost-Signature": _own(secret, id, seconds, body)}
    standard = {"webhook-timestamp": seconds, "webhook-signature": _standard(secret, id, seconds, body)}
    return {"webhook-id": id, **own, **standard}


def _own(secret: str, id: str, timestamp: str, body: bytes) -> str:
    return hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()


def _standard(secret: str, id: str, timestamp: str, body: bytes) -> str:
    """That of Standard Webhooks, whose key is what the secret says in base64; empty if it is not base64."""
    text = secret[len("whsec_") :] if secret.startswith("whsec_") else secret
    try:
        key = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except ValueError:
        return ""
    digest = hmac.new(key, f"{id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


def _bytes_of(body: object) -> bytes:
    if isinstance(body, (str, bytes, bytearray)):
        return body.encode() if isinstance(body, str) else bytes(body)
    raise WebhookVerificationError(
        "verify needs the raw body, as str or bytes, not parsed JSON: writing it again changes the bytes that were "
        "signed. It is request.body in Django, await request.body() in FastAPI, request.get_data() in Flask."
    )
