#!/usr/bin/env python3
"""A proxy in front of Waypost that does what networks and newer services do, for the conformance tests of all SDKs.

    WAYPOST_URL=http://127.0.0.1:8080 python3 proxy.py [PORT]

It prints CONFORMANCE_PROXY_URL=… when it listens. Python's standard library only.

Each test takes a session of its own, by any name, so that tests can run side by side:

    /s/NAME/…              forwards to Waypost, as the rules of the session say
    PUT  /control/NAME     {"rules": […]} sets the rules, and forgets what was recorded
    GET  /control/NAME     {"requests": […], "hooks": […]}: what came so far
    POST /hook/NAME        records a webhook: its headers in lower case, and its body in base64

The first rule that matches a request and is not used up decides; without one the request is forwarded. A rule has
`method` and `path` (a regular expression for the whole path) to match, `times` (1 if missing, 0 without end), and one of:

    "answer": {"status", "headers", "body"}   answers itself; a body that is not a string is JSON
    "drop": true                              closes the connection and forwards nothing
    "lose": true                              forwards, and closes the connection instead of answering
    "cut": true                               forwards, and closes the connection in the middle of the answer
    "wait": seconds                           waits, then forwards
    "set": [[PATH, value], …]                 forwards, and changes the JSON of the answer; PATH is a list of keys, in
                                              which "*" stands for each item of a list
"""

import base64
import http.client
import json
import os
import re
import socket
import sys
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HOP_HEADERS = {"connection", "keep-alive", "transfer-encoding", "content-length", "host", "content-encoding", "accept-encoding"}
UPSTREAM_TIMEOUT_SECONDS = 60


class Session:
    def __init__(self, rules):
        self.rules = [dict(rule, left=rule.get("times", 1)) for rule in rules]
        self.requests = []
        self.hooks = []
        self.lock = threading.Lock()

    def take(self, method, path):
        """The rule for this request, one use of which it takes."""
        with self.lock:
            for rule in self.rules:
                unlimited = rule.get("times") == 0
                fits = rule.get("method", method) == method and re.fullmatch(rule.get("path", ".*"), path)
                if fits and (unlimited or rule["left"] > 0):
                    rule["left"] -= 1
                    return rule
        return {}


sessions = {}
sessions_lock = threading.Lock()


def session(name):
    with sessions_lock:
        return sessions.setdefault(name, Session([]))


def change(value, path, new):
    """Sets what is at `path` of a JSON value."""
    key, rest = path[0], path[1:]
    for each in range(len(value)) if key == "*" else [key]:
        if rest:
            change(value[each], rest, new)
        else:
            value[each] = new


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Else the headers and the body go in two packets, and the second waits for an acknowledgement.
    wbufsize = -1

    def handle_any(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        _, kind, name, *_ = self.path.split("?")[0].split("/") + ["", ""]
        if kind == "control":
            self.control(name, body)
        elif kind == "hook":
            headers = {key.lower(): value for key, value in self.headers.items()}
            session(name).hooks.append({"headers": headers, "body": base64.b64encode(body).decode()})
            self.answer(204, {}, b"")
        elif kind == "s":
            self.proxy(session(name), self.path[len(f"/s/{name}"):], body)
        else:
            self.answer(404, {}, b"")

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = handle_any

    def control(self, name, body):
        if self.command == "PUT":
            with sessions_lock:
                sessions[name] = Session(json.loads(body)["rules"])
            self.answer(204, {}, b"")
            return
        found = session(name)
        self.answer(200, {"Content-Type": "application/json"},
                    json.dumps({"requests": found.requests, "hooks": found.hooks}).encode())

    def proxy(self, found, path, body):
        record = {
            "method": self.command,
            "path": path.split("?")[0],
            "query": urllib.parse.urlsplit(path).query,
            "idempotencyKey": self.headers.get("Idempotency-Key"),
            "userAgent": self.headers.get("User-Agent"),
            "body": body.decode("utf-8", "replace"),
            "at": time.time(),
            "status": None,
        }
        with found.lock:
            found.requests.append(record)
        rule = found.take(self.command, record["path"])
        if "answer" in rule:
            canned = rule["answer"]
            text = canned.get("body", "")
            text = text if isinstance(text, str) else json.dumps(text)
            self.answer(canned["status"], {"Content-Type": "application/json", **canned.get("headers", {})}, text.encode())
            return
        if rule.get("drop"):
            self.break_off()
            return
        time.sleep(rule.get("wait", 0))
        status, headers, answer = forward(self.command, path, self.headers, body)
        record["status"] = status
        if rule.get("lose"):
            self.break_off()
            return
        if "set" in rule:
            value = json.loads(answer)
            for where, new in rule["set"]:
                change(value, where, new)
            answer = json.dumps(value).encode()
        self.answer(status, headers, answer, cut=rule.get("cut", False))

    def answer(self, status, headers, body, cut=False):
        try:
            self.send_response_only(status)
            for name, value in headers.items():
                self.send_header(name, value)
            if status != 204:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if cut else body)
            self.wfile.flush()
            if cut:
                self.break_off()
        except OSError:
            # The client is gone: that is what some of the tests do.
            self.close_connection = True

    def break_off(self):
        self.close_connection = True
        try:
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def log_message(self, *_):
        pass


def forward(method, path, headers, body):
    target = urllib.parse.urlsplit(os.environ["WAYPOST_URL"])
    kind = http.client.HTTPSConnection if target.scheme == "https" else http.client.HTTPConnection
    connection = kind(target.hostname, target.port, timeout=UPSTREAM_TIMEOUT_SECONDS)
    try:
        kept = {name: value for name, value in headers.items() if name.lower() not in HOP_HEADERS}
        connection.request(method, target.path.rstrip("/") + path, body or None, kept)
        response = connection.getresponse()
        answer = response.read()
        return response.status, {n: v for n, v in response.getheaders() if n.lower() not in HOP_HEADERS}, answer
    finally:
        connection.close()


def main():
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 0), Handler)
    server.daemon_threads = True
    print(f"CONFORMANCE_PROXY_URL=http://127.0.0.1:{server.server_address[1]}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
