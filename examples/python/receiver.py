"""Receives Waypost's webhooks and prints the genuine ones. Standard library only.

    python3 receiver.py 8099 webhook-secret

The second argument is a file that holds the endpoint's signing secret. It is read for each request, since the
receiver must be running before the endpoint can be made.
"""

import hashlib
import hmac
import http.server
import json
import pathlib
import sys
import time

TOLERANCE_SECONDS = 300


def is_genuine(secret, headers, body):
    """Whether Waypost signed this body, with this secret, in the last five minutes."""
    timestamp = headers.get("X-Waypost-Timestamp", "")
    signature = headers.get("X-Waypost-Signature", "")
    if not secret or not timestamp.isdecimal() or abs(time.time() - int(timestamp)) > TOLERANCE_SECONDS:
        return False
    signed = timestamp.encode() + b"." + body
    expected = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    # In constant time: how long it takes must not tell how much of a guess is right.
    return hmac.compare_digest(expected.encode(), signature.encode())


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        # The raw body: parsing it and writing it again would change the bytes that were signed.
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        secret_file = pathlib.Path(sys.argv[2])
        secret = secret_file.read_text().strip() if secret_file.exists() else ""
        if not is_genuine(secret, self.headers, body):
            self.answer(401)
            return
        webhook = json.loads(body)
        # A delivery may come twice: a real receiver stores this id and ignores it the next time.
        delivery = self.headers["webhook-id"]
        print(webhook["event"], webhook["data"]["recipient"], delivery, flush=True)
        self.answer(204)

    def answer(self, status):
        self.send_response(status)
        self.end_headers()

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver).serve_forever()
