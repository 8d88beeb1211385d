#!/usr/bin/env python3
"""Prints webhooks.json: signed webhooks that every SDK must accept or refuse. It computes the signatures with Python's
hmac, from the description in docs/api.md, so that no SDK is its own judge.

    python3 webhooks.py > webhooks.json
"""

import base64
import hashlib
import hmac
import json

NOW = 1795176000
ID = "01a1fbfa-b12e-763c-a29e-ce02006ba555"
SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
OLD = "whsec_" + base64.b64encode(b"the secret before the rotation!!").decode()
OTHER = "whsec_" + base64.b64encode(b"the secret of another endpoint!!").decode()


def event(kind="DELIVERED", **data):
    data = {"messageId": ID, "eventType": kind, "recipient": "ada@example.org", "from": "shop@example.com",
            "subject": "Your receipt – 10 €", "eventId": ID, "tags": ["receipts"], **data}
    return json.dumps({"event": kind, "timestamp": "2026-11-20T12:00:00.000Z", "data": data}, ensure_ascii=False)


def own(body, secret=SECRET, at=NOW):
    return hmac.new(secret.encode(), f"{at}.{body}".encode(), hashlib.sha256).hexdigest()


def standard(body, secret=SECRET, at=NOW):
    key = base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.new(key, f"{ID}.{at}.{body}".encode(), hashlib.sha256).digest()
    return "v1," + base64.b64encode(digest).decode()


def own_headers(body, secret=SECRET, at=NOW):
    return {"X-Waypost-Timestamp": str(at), "X-Waypost-Signature": own(body, secret, at)}


def standard_headers(body, secret=SECRET, at=NOW):
    return {"webhook-id": ID, "webhook-timestamp": str(at), "webhook-signature": standard(body, secret, at)}


def vectors():
    body = event()
    both = {**own_headers(body), **standard_headers(body)}
    lower = {name.lower(): value for name, value in both.items()}

    def case(name, valid, headers, body=body, secrets=(SECRET,), now=NOW):
        return {"name": name, "valid": valid, "now": now, "secrets": list(secrets), "headers": headers, "body": body}

    yield case("both schemes", True, both)
    yield case("header names in lower case", True, lower)
    yield case("only X-Waypost-Signature", True, own_headers(body))
    yield case("only Standard Webhooks", True, standard_headers(body))
    yield case("rotation: signed by the old secret, the new one in -Other", True,
               {**own_headers(body, OLD), "X-Waypost-Signature-Other": own(body)})
    yield case("rotation: Standard Webhooks lists two signatures", True,
               {**standard_headers(body), "webhook-signature": f"{standard(body, OLD)} {standard(body)}"})
    yield case("rotation: the receiver knows two secrets", True, own_headers(body, OLD), secrets=(SECRET, OLD))
    yield case("an unknown version of signature beside a known one", True,
               {**standard_headers(body), "webhook-signature": f"v2,abc {standard(body)}"})
    unknown = event("A_TYPE_OF_TOMORROW", fieldOfTomorrow={"a": 1})
    yield case("an unknown type of event passes through", True, own_headers(unknown), body=unknown)
    yield case("white space in the body belongs to it", True, own_headers(body + " \n"), body=body + " \n")
    yield case("299 seconds old", True, both, now=NOW + 299)
    yield case("301 seconds old", False, both, now=NOW + 301)
    yield case("301 seconds ahead", False, both, now=NOW - 301)
    yield case("another body", False, both, body=body.replace("ada@", "eve@"))
    yield case("another secret", False, both, secrets=(OTHER,))
    yield case("no headers", False, {})
    yield case("a timestamp and no signature", False, {"X-Waypost-Timestamp": str(NOW)})
    yield case("a newer timestamp than the signed one", False, {**own_headers(body), "X-Waypost-Timestamp": str(NOW + 1)})
    yield case("a timestamp that is no number", False, {**own_headers(body), "X-Waypost-Timestamp": "now"})
    yield case("an empty secret beside the right one", True, both, secrets=("", SECRET))
    yield case("an empty secret, by which it is signed", False, own_headers(body, ""), secrets=("",))
    yield case("an empty secret, by which it is signed, beside another", False, own_headers(body, ""), secrets=("", SECRET))
    yield case("an empty signature", False, {**own_headers(body), "X-Waypost-Signature": ""})
    yield case("a signature that is no hexadecimal", False, {**own_headers(body), "X-Waypost-Signature": "zz" * 32})
    yield case("half a signature", False, {**own_headers(body), "X-Waypost-Signature": own(body)[:32]})
    yield case("another webhook-id than the signed one", False, {**standard_headers(body), "webhook-id": "another"})
    yield case("Standard Webhooks without the version", False,
               {**standard_headers(body), "webhook-signature": standard(body)[3:]})


print(json.dumps({"vectors": list(vectors())}, indent=1, ensure_ascii=False))
