#!/usr/bin/env python3
"""Walks through an example as its users would: check.py COMMAND…

Starts the command, signs two people up, waits until the webhooks tell what became of their mail, and posts
what must be refused. WAYPOST_URL and WAYPOST_API_KEY say where a Waypost is that sends to its simulator.
"""

import http.server
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

WAIT_SECONDS = 60
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def call(method, url, body=None, headers=None):
    """Status and parsed body of an answer; (None, None) if nothing listens."""
    data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json", **(headers or {})}, method=method)
    try:
        with OPENER.open(request, timeout=30) as response:
            status, text = response.status, response.read()
    except urllib.error.HTTPError as error:
        status, text = error.code, error.read()
    except OSError:
        return None, None
    try:
        return status, json.loads(text)
    except ValueError:
        return status, text.decode("utf-8", "replace")


def waypost(method, path, body=None):
    status, answer = call(method, os.environ["WAYPOST_URL"] + path, body, {"Authorization": "Bearer " + os.environ["WAYPOST_API_KEY"]})
    assert status is not None and status < 300, f"{method} {path} was answered with {status}: {answer}"
    return answer.get("data") if answer else None


def expect(what, found, wanted):
    assert found == wanted, f"{what}: {found!r} instead of {wanted!r}"


def wait_until(what, condition):
    end = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.2)
    raise AssertionError(f"{what} did not happen within {WAIT_SECONDS} s")


class Answers204(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(204)
        self.end_headers()

    do_GET = do_HEAD = do_POST

    def log_message(self, *_):
        pass


def make_endpoint(port):
    """Waypost calls the URL once before it makes the endpoint, and the example needs the secret to start."""
    server = http.server.HTTPServer(("127.0.0.1", port), Answers204)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{port}/webhooks/waypost"
        return waypost("POST", "/v1/webhook-endpoints", {"url": url, "events": ["DELIVERED", "BOUNCED", "COMPLAINED"]})
    finally:
        server.shutdown()
        server.server_close()


def walk(app):
    run = f"{time.time_ns():x}"
    users = {}
    for local, wanted in (("ada", "delivered"), ("hard-bounce", "bounced"), ("complaint", "complained")):
        status, user = call("POST", app + "/sign-up", {"name": "Ada", "email": f"{local}+{run}@example.org"})
        expect("the status of a sign-up", status, 201)
        expect("the user", user, {"id": user["id"], "email": f"{local}+{run}@example.org", "emailStatus": "sent"})
        users[user["id"]] = wanted
    for user, wanted in users.items():
        get = lambda: call("GET", f"{app}/users/{user}")[1].get("emailStatus")
        wait_until(f"emailStatus {wanted}", lambda: get() == wanted)
    status, answer = call("POST", app + "/sign-up", {"name": "Bob", "email": "nobody"})
    expect("the status of a sign-up with a wrong address", status, 422)
    assert isinstance(answer["error"], str) and "email address" in answer["error"], f"the error does not say what is wrong: {answer}"
    now = str(int(time.time()))
    forged = {"X-Waypost-Timestamp": now, "X-Waypost-Signature": "0" * 64, "webhook-id": "x", "webhook-timestamp": now, "webhook-signature": "v1,AAAA"}
    body = b'{"event":"BOUNCED","data":{"recipient":"ada@example.org"}}'
    expect("the status of a forged webhook", call("POST", app + "/webhooks/waypost", body, forged)[0], 400)
    expect("the status of a webhook without a signature", call("POST", app + "/webhooks/waypost", body)[0], 400)


def main():
    command = sys.argv[1:]
    if not waypost("GET", "/v1/providers"):
        account = {"providerType": "SENDGRID", "displayName": "Simulated", "credentials": {"apiKey": "SG.simulator"}}
        waypost("POST", "/v1/providers", account)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    endpoint = make_endpoint(port)
    environment = {**os.environ, "PORT": str(port), "WAYPOST_WEBHOOK_SECRET": endpoint["secret"]}
    process = subprocess.Popen(command, env=environment, start_new_session=True)
    app = f"http://127.0.0.1:{port}"
    try:
        wait_until("its start", lambda: process.poll() is None and call("GET", app + "/users/none")[0] == 404)
        walk(app)
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()
        waypost("DELETE", "/v1/webhook-endpoints/" + endpoint["id"])


if __name__ == "__main__":
    main()
