"""Sends the mails of mails.py over SMTP accounts and compares what arrives with what was given.

Postfix (its port in POSTFIX_PORT, its maildir in POSTFIX_MAIL; neither where it cannot run) takes them with STARTTLS,
aiosmtpd in the clear. Each delivered mail is read by Python's email package and by mailparser.
"""

import email
import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from email import policy
from email.header import decode_header, make_header
from email.utils import parseaddr
from pathlib import Path

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP

from mails import mails

DELIVERY_SECONDS_MAX = 90
DOMAIN = "judge.example"
SCRATCH = Path(os.environ["JUDGE_SCRATCH"])
passed, failures = 0, []


def check(what, is_right, detail=""):
    global passed
    if is_right:
        passed += 1
    else:
        failures.append(what)
        print(f"FAILED {what}: {detail}"[:900])


def call(method, path, body=None):
    request = urllib.request.Request(os.environ["WAYPOST_URL"] + path, method=method)
    request.add_header("Authorization", "Bearer " + os.environ["WAYPOST_API_KEY"])
    request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(request, json.dumps(body).encode() if body else None) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refusal:
        return refusal.code, json.load(refusal)


class Aiosmtpd(Controller):
    """Accepts every valid message, and stores its bytes."""

    def __init__(self):
        self.taken = []
        super().__init__(self, hostname="127.0.0.1", port=0)

    def factory(self):
        return SMTP(self, hostname="aiosmtpd.judge.example", data_size_limit=None)

    async def handle_DATA(self, server, session, envelope):
        self.taken.append((envelope.rcpt_tos[0], envelope.mail_from, envelope.content))
        return "250 OK"

    def _trigger_server(self):
        self.port = self.server.sockets[0].getsockname()[1]  # The free port that 0 stood for.
        super()._trigger_server()

    def delivered(self):
        return list(self.taken)


class Postfix:
    """Its maildir; the delivery agent adds the envelope as headers."""

    def delivered(self):
        found = []
        for file in (Path(os.environ["POSTFIX_MAIL"]) / "all/new").glob("*"):
            content = file.read_bytes()
            # Above the sent headers are Return-Path, X-Original-To and Delivered-To.
            lines = content.split(b"\n", 3)
            header = {line.split(b": ", 1)[0]: line.split(b": ", 1)[1].decode() for line in lines[:3]}
            found.append((header[b"X-Original-To"], header[b"Return-Path"].strip("<>"), content))
        return found


def connect(tag, port, tls):
    credentials = {"host": "127.0.0.1", "port": port, "tls": tls}
    status, account = call("POST", "/v1/providers", {"providerType": "SMTP", "displayName": tag, "credentials": credentials})
    assert status == 201, account
    rule = {"name": tag, "tags": [tag], "providerAccountId": account["data"]["id"]}
    status, answer = call("POST", "/v1/routing-rules", rule)
    assert status == 201, answer


def mailbox(name, address):
    """In the form of RFC 5322, with everything quoted that may be quoted."""
    quoted = name and '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return f"{quoted} <{address}>" if name else address


def address(mail, field, number):
    """Each message's recipient has its own domain, which identifies the message."""
    return f"{mail[field]}@m{number}.{DOMAIN}" if field == "to" else f"{mail[field]}@{DOMAIN}"


def send(tag, number, mail, may_refuse):
    """The id of the message; None if it was rejected."""
    body = {"tags": [tag], "tracking": {"opens": False, "clicks": False}}
    for field, name in (("from", "from"), ("to", "to"), ("reply_to", "replyTo")):
        body[name] = mailbox(mail[f"{field}_name"], address(mail, field, number))
    body |= {field: mail[field] for field in ("subject", "text", "html") if mail[field]}
    status, answer = call("POST", "/v1/send", body)
    if status == 400 and may_refuse:
        return None
    check(f"{tag} {number}: accepted", status == 202, f"{status} {answer} for {body}")
    return answer.get("messageId") if status == 202 else None


def await_delivery(sent, server):
    """The received messages by number, as (recipient, sender, bytes)."""
    deadline = time.monotonic() + DELIVERY_SECONDS_MAX
    while True:
        arrived = {}
        for recipient, sender, content in server.delivered():
            number = int(re.search(rf"@m(\d+)\.{re.escape(DOMAIN)}$", recipient)[1])
            arrived.setdefault(number, []).append((recipient, sender, content))
        if len(arrived) >= len(sent) or time.monotonic() > deadline:
            return arrived
        missing = [call("GET", f"/v1/messages/{sent[number]}")[1]["data"] for number in sent.keys() - arrived.keys()]
        if all(message["status"] == "FAILED" for message in missing):
            return arrived
        time.sleep(0.2)


def read_by_python(content):
    mail = email.message_from_bytes(content, policy=policy.default)
    raw = email.message_from_bytes(content, policy=policy.compat32)

    def person(field):
        # Not display_name: up to Python 3.12 it keeps the space between two encoded words and loses others in them.
        name = make_header(decode_header(parseaddr(raw[field])[0]))
        return [str(name), mail[field].addresses[0].addr_spec]

    def body(kind):
        part = mail.get_body((kind,))
        return part and part.get_content()

    return {"subject": mail["subject"], "from": person("from"), "to": person("to"),
            "reply_to": person("reply-to"), "text": body("plain"), "html": body("html")}


def read_by_mailparser(files):
    names = {name: str(file) for name, file in files.items()}
    script = Path(__file__).with_name("read.js")
    output = subprocess.run(["node", script], input=json.dumps(names), capture_output=True, text=True, check=True).stdout
    return json.loads(output)


def unified(text):
    """Normalizes line ends and removes the last one, which a single-part body always has."""
    return text and re.sub(r"\r\n|\r", "\n", text).removesuffix("\n")


def unquoted(address):
    """Some libraries keep the quotes around a local part, others do not."""
    local, domain = address.rsplit("@", 1)
    if local.startswith('"') and local.endswith('"') and len(local) > 1:
        local = re.sub(r"\\(.)", r"\1", local[1:-1])
    return f"{local}@{domain}"


def compare(what, mail, number, read):
    for field in ("subject", "text", "html"):
        given, got = mail[field], read[field]
        if field != "subject":
            given, got = unified(given), unified(got)
        check(f"{what}: {field}", given == got, f"{given!r} was read as {got!r}")
    for field in ("from", "to", "reply_to"):
        given = [mail[f"{field}_name"] or "", unquoted(address(mail, field, number))]
        got = [read[field][0], unquoted(read[field][1])]
        check(f"{what}: {field}", given == got, f"{given!r} was read as {got!r}")


def judge(tag, server, port, tls):
    connect(tag, port, tls)
    given = dict(enumerate(mails()))
    sent = {number: send(tag, number, *each) for number, each in given.items()}
    refused = [number for number in sent if sent[number] is None]
    sent = {number: message for number, message in sent.items() if message}
    print(f"{tag}: {len(sent)} mails accepted, {len(refused)} refused")
    arrived = await_delivery(sent, server)
    files = {}
    for number, message in sent.items():
        mail = given[number][0]
        received = arrived.get(number, [])
        if len(received) != 1:
            _, recipients = call("GET", f"/v1/messages/{message}/recipients")
            error = [one["lastError"] for one in recipients.get("data", [])]
            check(f"{tag} {number}: delivered once", False, f"{len(received)} messages of {mail}: {error}")
            continue
        recipient, sender, content = received[0]
        files[str(number)] = SCRATCH / f"{tag}-{number}.eml"
        files[str(number)].write_bytes(content)
        envelope = [unquoted(sender), unquoted(recipient)]
        wanted = [unquoted(address(mail, field, number)) for field in ("from", "to")]
        check(f"{tag} {number}: envelope", envelope == wanted, f"{envelope} is not {wanted}")
        # Postfix rejects a bare LF, and stores lines with LF alone.
        bare = rb"\r" if tag == "postfix" else rb"\r(?!\n)|(?<!\r)\n"
        check(f"{tag} {number}: no CR or LF alone", not re.search(bare, content), content[:300])
        lines = content.replace(b"\r\n", b"\n").split(b"\n")
        check(f"{tag} {number}: no line beyond 998 characters", max(map(len, lines)) <= 998, f"{mail}")
    by_mailparser = read_by_mailparser(files)
    for number, file in files.items():
        mail = given[int(number)][0]
        compare(f"{tag} {number} by Python", mail, number, read_by_python(file.read_bytes()))
        compare(f"{tag} {number} by mailparser", mail, number, by_mailparser[number])


def main():
    server = Aiosmtpd()
    server.start()
    judge("aiosmtpd", server, server.port, "none")
    server.stop()
    if "POSTFIX_PORT" in os.environ:
        judge("postfix", Postfix(), int(os.environ["POSTFIX_PORT"]), "starttls")
    print(f"{passed} passed, {len(failures)} failed")
    return 1 if failures else 0


sys.exit(main())
