"""Sends mails through waypost-smtp with the clients of clients.py, and compares what arrives with what was given.

Waypost delivers to an aiosmtpd here, and Python's email package reads what it took. Then `crash` and `hostile` speak
SMTP themselves.
"""

import base64
import email
import hashlib
import os
import re
import sys
import time
from email import policy
from email.header import decode_header, make_header
from email.utils import getaddresses
from pathlib import Path

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP

import crash
import hostile
from clients import CLIENTS
from program import CERTIFICATE, KEY, Program, Tally, call

DELIVERY_SECONDS_MAX = 90
DOMAIN = "judge.example"
ODD_BYTES = bytes(range(256)) * 40
LONG_LINE = "Ein Satz mit Umlauten: äöü ÄÖÜ ß, und noch einer. " * 40


def mails():
    """The mails of one client; their numbers and addresses are filled in later."""
    plain = {"to": [["Ann", "ann"]], "cc": [], "bcc": [], "subject": "Hello", "text": "Hello.\n", "html": None, "files": []}
    several = {"to": [["Ann", "ann"], ["Bücher & Söhne", "bob"]], "cc": [["", "cid"]], "bcc": [["", "dan"], ["", "eve"]]}
    yield plain
    yield plain | {"text": ".\n..\n.a\nFrom me\n" + LONG_LINE + "\n", "html": f"<p>{LONG_LINE}</p>\n.\n<p>Ende</p>\n"}
    yield plain | {"html": "<p>Anbei.</p>\n", "files": [
        {"name": "Rechnung März 2026 – Größe.pdf", "type": "application/pdf", "content": ODD_BYTES},
        {"name": 'a"b; c=d, e.bin', "type": "application/octet-stream", "content": b"\r\n.\r\n\n.\n\r.\r\0"},
        {"name": "日本語のファイル名がとても長いので折り返される.png", "type": "image/png", "content": b"\x89PNG\r\n" + ODD_BYTES},
    ]}
    yield plain | {"subject": "Grüße 日本語 🎉 mit einem langen Betreff, der gefaltet werden muss, weil er lang ist: äöüß"}
    yield plain | several | {"html": "<p>An alle</p>\n"}


REFUSED = {"to": [["Ann", "ann"]], "cc": [], "bcc": [], "subject": "Refused", "text": "Hello.\n", "html": None, "files": [],
           "headers": {"X-Waypost-Tag": "judge"}}
SENTENCE = "X-Waypost-Tag is not a header of Waypost"


def numbered(mail, number):
    """With addresses of its own domain, which identifies the mail."""
    people = {field: [[name, f"{local}@m{number}.{DOMAIN}"] for name, local in mail[field]] for field in ("to", "cc", "bcc")}
    files = [{"name": one["name"], "type": one["type"], "base64": base64.b64encode(one["content"]).decode()}
             for one in mail["files"]]
    headers = mail.get("headers", {"X-Waypost-Tracking": "off", "X-Judge": f"mail {number}"})
    return mail | people | {"number": number, "files": files, "headers": headers, "from": ["Shop Ü", f"shop@{DOMAIN}"]}


class Receiver(Controller):
    """A mail server that accepts every valid message, and stores its bytes."""

    def __init__(self):
        self.taken = []
        super().__init__(self, hostname="127.0.0.1", port=0)

    def factory(self):
        return SMTP(self, hostname="aiosmtpd.judge.example", data_size_limit=None)

    async def handle_DATA(self, server, session, envelope):
        self.taken.append((envelope.rcpt_tos, envelope.content))
        return "250 OK"

    def _trigger_server(self):
        self.port = self.server.sockets[0].getsockname()[1]  # The free port that 0 stood for.
        super()._trigger_server()

    def by_number(self):
        """(recipient, bytes) of all deliveries by the number of the mail."""
        found = {}
        for recipients, content in list(self.taken):
            for recipient in recipients:
                number = re.search(rf"@m(\d+)\.{re.escape(DOMAIN)}$", recipient)
                if number:
                    found.setdefault(int(number[1]), []).append((recipient, content))
        return found

    def settled(self, wanted):
        """Waits until each mail of `wanted` has reached so many recipients, or no more come."""
        deadline = time.monotonic() + DELIVERY_SECONDS_MAX
        while time.monotonic() < deadline:
            found = self.by_number()
            if all(len(found.get(number, [])) >= count for number, count in wanted.items()):
                break
            time.sleep(0.2)
        return self.by_number()


def connect(receiver):
    credentials = {"host": "127.0.0.1", "port": receiver.port, "tls": "none"}
    account = {"providerType": "SMTP", "displayName": "judge", "credentials": credentials}
    status, answer = call("POST", "/v1/providers", account)
    assert status == 201, answer


def read(content):
    message = email.message_from_bytes(content, policy=policy.default)
    headers = email.message_from_bytes(content, policy=policy.compat32)

    def people(field):
        # Not the addresses of the newer policy: up to Python 3.12 it keeps the space between two encoded words.
        pairs = getaddresses(headers.get_all(field, []))
        return [[str(make_header(decode_header(name))), address] for name, address in pairs]

    def body(kind):
        part = message.get_body((kind,))
        return part and unified(part.get_content())

    files = [file(part.get_filename(), part.get_content_type(), part.get_payload(decode=True))
             for part in message.iter_attachments()]
    files.sort()  # Ruby's mail sorts them.
    return {"subject": message["subject"], "from": people("from"), "to": people("to"), "cc": people("cc"),
            "bcc": people("bcc"), "text": body("plain"), "html": body("html"), "files": files,
            "judge": message["x-judge"]}


def file(name, kind, content):
    """As texts that are short enough to read when they differ."""
    return f"{name} ({kind}), {len(content)} bytes, sha256 {hashlib.sha256(content).hexdigest()[:16]}"


def unified(text):
    """With LF as its line ends, and without those at its end: clients add and remove one."""
    return text and re.sub(r"\r\n|\r", "\n", text).rstrip("\n")


def compare(tally, what, mail, deliveries):
    wanted = sorted(address for field in ("to", "cc", "bcc") for _, address in mail[field])
    if not tally.equal(f"{what}: recipients", sorted(recipient for recipient, _ in deliveries), wanted):
        return
    files = sorted(file(one["name"], one["type"], base64.b64decode(one["base64"])) for one in mail["files"])
    expected = {"subject": mail["subject"], "from": [mail["from"]], "to": mail["to"], "cc": mail["cc"], "bcc": [],
                "text": unified(mail["text"]), "html": unified(mail["html"]), "files": files,
                "judge": f"mail {mail['number']}"}
    for recipient, content in deliveries:
        got = read(content)
        for field, value in expected.items():
            tally.equal(f"{what}, to {recipient.split('@')[0]}: {field}", got[field], value)


def judge_clients(tally, program, receiver):
    sent, number = {}, 0
    for name, client in CLIENTS.items():
        for tls, port in (("starttls", program.port), ("tls", program.tls_port)):
            job = {"host": "127.0.0.1", "port": port, "tls": tls, "password": KEY, "ca": CERTIFICATE}
            given = [numbered(mail, number + nth) for nth, mail in enumerate([*mails(), REFUSED])]
            number += len(given)
            if name == "ruby":
                for one in (one for mail in given for one in mail["files"]):
                    one["name"] = one["name"].replace('"', "'")  # It does not escape a quote.
            since = time.monotonic()
            errors = client(job | {"mails": given})
            for mail in given[:-1]:
                what = f"{name}, {tls}, mail {mail['number'] - given[0]['number']}"
                if tally.check(f"{what}: accepted", errors[mail["number"]] is None, errors[mail["number"]]):
                    sent[mail["number"]] = (what, mail)
            error = errors[given[-1]["number"]] or "no error"
            words = " ".join(error.split())
            tally.check(f"{name}, {tls}: the refusal reaches the client", SENTENCE in words and "5.6.0" in words, error)
            print(f"{name}, {tls}: {time.monotonic() - since:.1f} s", flush=True)
            if name != "postfix":
                wrong = job | {"password": "wp_live_wrong", "mails": [numbered(REFUSED, 10**6)]}
                error = client(wrong)[10**6] or "no error"
                tally.check(f"{name}, {tls}: a wrong key is refused", "535" in error or "not a valid API key" in error, error)
    found = receiver.settled({n: sum(len(mail[field]) for field in ("to", "cc", "bcc")) for n, (_, mail) in sent.items()})
    for n, (what, mail) in sent.items():
        compare(tally, what, mail, found.get(n, []))


def main():
    tally, receiver = Tally(), Receiver()
    receiver.start()
    connect(receiver)
    # Postfix has these ports in its settings.
    ports = os.environ.get("SUBMISSION_PORT"), os.environ.get("SUBMISSION_TLS_PORT")
    program = Program("submission", tuple(map(int, ports)) if all(ports) else None, WAYPOST_SUBMISSION_SESSIONS_PER_ADDRESS_MAX="2000")
    only = sys.argv[1:]
    try:
        if not only or "clients" in only:
            judge_clients(tally, program, receiver)
        for part in (crash, hostile):
            if not only or part.__name__ in only:
                since = time.monotonic()
                part.judge(tally, program, receiver)
                print(f"{part.__name__}: {time.monotonic() - since:.1f} s", flush=True)
    finally:
        ended = program.stop()
        receiver.stop()
    tally.equal("waypost-smtp ends without an error", ended, 0)
    tally.check("it never panicked", "panicked" not in program.log.read_text(), Path(program.log).read_text()[-800:])
    print(f"{tally.passed} passed, {len(tally.failures)} failed")
    return 1 if tally.failures else 0


sys.exit(main())
