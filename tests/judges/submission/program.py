"""The program waypost-smtp, and a client that sees every byte."""

import base64
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
import json
from pathlib import Path

SCRATCH = Path(os.environ["JUDGE_SCRATCH"])
CERTIFICATE = os.environ["WAYPOST_SMTP_CA_FILE"]
KEY = os.environ["WAYPOST_API_KEY"]
START_SECONDS_MAX = 30


class Tally:
    def __init__(self):
        self.passed, self.failures = 0, []

    def check(self, what, is_right, detail=""):
        if is_right:
            self.passed += 1
        else:
            self.failures.append(what)
            print(f"FAILED {what}: {detail}"[:900], flush=True)
        return is_right

    def equal(self, what, got, wanted):
        return self.check(what, got == wanted, f"{got!r} is not {wanted!r}")


def call(method, path, body=None):
    """Status and body of a call of the API; its 503 asks for a retry."""
    request = urllib.request.Request(os.environ["WAYPOST_URL"] + path, method=method)
    request.add_header("Authorization", "Bearer " + KEY)
    request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(request, json.dumps(body).encode() if body else None) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refusal:
        return refusal.code, json.load(refusal)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Program:
    """A running waypost-smtp with these settings."""

    def __init__(self, name, ports=None, **settings):
        self.port, self.tls_port = ports or (free_port(), free_port())
        environment = os.environ | {
            "WAYPOST_SUBMISSION_LISTEN": f"127.0.0.1:{self.port}",
            "WAYPOST_SUBMISSION_TLS_LISTEN": f"127.0.0.1:{self.tls_port}",
            "WAYPOST_SUBMISSION_TLS_CERTIFICATE": CERTIFICATE,
            "WAYPOST_SUBMISSION_TLS_KEY": CERTIFICATE.removesuffix(".crt") + ".key",
            "WAYPOST_HEALTH_LISTEN": "127.0.0.1:0",
        } | settings
        self.log = SCRATCH / f"{name}.log"
        with self.log.open("w") as log:
            program = Path(os.environ["WAYPOST_BIN_DIR"]) / "waypost-smtp"
            self.process = subprocess.Popen([program], env=environment, stdout=log, stderr=log)
        deadline = time.monotonic() + START_SECONDS_MAX
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"waypost-smtp did not start: {self.log.read_text()}")
            time.sleep(0.1)

    def answers(self):
        try:
            Conversation(self).close()
            return True
        except OSError:
            return False

    def is_alive(self):
        return self.process.poll() is None

    def memory_kib(self):
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
        return 0

    def descriptors(self):
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def stop(self):
        """Ends it; returns its exit status."""
        self.process.terminate()
        return self.process.wait(timeout=45)


class Conversation:
    """An SMTP client that sends bytes and reads replies."""

    def __init__(self, program, greeted=True, timeout=30):
        self.socket = socket.create_connection(("127.0.0.1", program.port), timeout=timeout)
        self.input = self.socket.makefile("rb")
        self.greeting = self.reply() if greeted else None

    def send(self, data):
        self.socket.sendall(data)

    def reply(self):
        """The lines of a reply; empty if the server has closed."""
        lines = []
        while True:
            try:
                line = self.input.readline()
            except ConnectionError:
                line = b""
            if not line:
                return ""
            lines.append(line)
            if line[3:4] != b"-":
                return b"".join(lines).decode("ascii")

    def command(self, line):
        self.send(line.encode() + b"\r\n")
        return self.reply()

    def log_in(self):
        self.command("EHLO judge.example")
        token = base64.b64encode(b"\0waypost\0" + KEY.encode()).decode()
        reply = self.command(f"AUTH PLAIN {token}")
        assert reply.startswith("235"), reply
        return self

    def envelope(self, recipients, sender="shop@judge.example"):
        """Begins a mail: the reply to DATA."""
        for line in [f"MAIL FROM:<{sender}>"] + [f"RCPT TO:<{one}>" for one in recipients]:
            reply = self.command(line)
            if not reply.startswith("250"):
                return reply
        return self.command("DATA")

    def mail(self, content, recipients):
        reply = self.envelope(recipients)
        if not reply.startswith("354"):
            return reply
        self.send(content + b"\r\n.\r\n")
        return self.reply()

    def close(self):
        self.input.close()
        self.socket.close()
