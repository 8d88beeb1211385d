"""Sends a mail with nothing but Python's standard library. Needs WAYPOST_URL and WAYPOST_API_KEY.

    python3 send.py charles@example.org order-1042
"""

import json
import os
import sys
import urllib.error
import urllib.request


def send(message, idempotency_key):
    """The answer to POST /v1/send. With the same key a repeated call sends nothing twice."""
    request = urllib.request.Request(
        os.environ["WAYPOST_URL"] + "/v1/send",
        data=json.dumps(message).encode(),
        headers={
            "Authorization": "Bearer " + os.environ["WAYPOST_API_KEY"],
            "Content-Type": "application/json",
            "Idempotency-Key": idempotency_key,
        },
    )
    with urllib.request.urlopen(request, timeout=10) as response:
        return json.load(response)


def main():
    recipient, order = sys.argv[1:]
    message = {
        "from": "Ada Lovelace <ada@example.com>",
        "to": recipient,
        "subject": f"Your receipt for {order}",
        "html": "<p>Thank you for your order.</p>",
        "text": "Thank you for your order.",
        "tags": ["receipts"],
        "metadata": {"order": order},
    }
    try:
        print(json.dumps(send(message, f"{order}-receipt")))
    except urllib.error.HTTPError as refusal:
        # Every mistake is listed in error.details.issues. After a 429 or 503 repeat with the same key.
        sys.exit(f"{refusal.code}: {refusal.read().decode()}")


if __name__ == "__main__":
    main()
