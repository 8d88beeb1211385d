"""The clients that send. Each gets a job: a file with `host`, `port`, `tls` ("starttls" or "tls"), `password`, `ca` and
`mails`, and prints for each mail a line of JSON: its `number`, and the `error` that the client had or null. A mail has
`number`, `from`, `to`, `cc`, `bcc` (pairs of name and address), `subject`, `text`, `html` or null, `headers`, and
`files` with `name`, `type`, `base64`.
"""

import json
import os
import re
import smtplib
import subprocess
import sys
import time
from email import policy
from pathlib import Path

from program import SCRATCH

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "clients"))
from client import compose  # noqa: E402

CLIENT_SECONDS_MAX = 120
POSTFIX_SECONDS_MAX = 60
JAVA_CLASSES = ":".join(f"/usr/share/java/{name}.jar" for name in ("jakarta-mail", "jakarta-activation"))


def properties(value, name=""):
    """The lines of a properties file with the same content."""
    if isinstance(value, dict):
        return [line for key, one in value.items() for line in properties(one, f"{name}.{key}" if name else key)]
    if isinstance(value, list):
        return [line for nth, one in enumerate(value) for line in properties(one, f"{name}.{nth}")]
    # A string of JSON in ASCII has the escapes of a property.
    return [] if value is None else [f"{name}={json.dumps(str(value))[1:-1]}"]


def program(*command, form="json"):
    """A client that is a program: sends the mails of a job; returns the errors by number."""

    def run(job):
        name = SCRATCH / f"job-{Path(command[-1]).name}-{job['tls']}.{form}"
        name.write_text(json.dumps(job) if form == "json" else "\n".join(properties(job)))
        done = subprocess.run([*command, name], capture_output=True, text=True, timeout=CLIENT_SECONDS_MAX)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        if done.returncode != 0 or len(lines) != len(job["mails"]):
            raise RuntimeError(f"{command} ended with {done.returncode}: {done.stderr[-2000:]}")
        return {line["number"]: line["error"] for line in lines}

    return run


def raw(mail, with_bcc, utf8=False):
    """The bytes of a mail, with an 8-bit header if it is to have one."""
    message = compose(mail)
    bcc = [address for _, address in mail["bcc"]]
    if not with_bcc:
        del message["Bcc"]
    rules = policy.SMTPUTF8 if utf8 else policy.SMTP
    addresses = [address for field in ("to", "cc") for _, address in mail[field]] + bcc
    return message.as_bytes(policy=rules), addresses


def swaks(job):
    errors = {}
    for mail in job["mails"]:
        content, recipients = raw(mail, with_bcc=False, utf8=True)
        file = SCRATCH / "swaks.eml"
        file.write_bytes(content)
        command = ["swaks", "--server", job["host"], "--port", str(job["port"]), "--from", mail["from"][1], "--to",
                   ",".join(recipients), "--auth", "LOGIN", "--auth-user", "waypost", "--auth-password", job["password"],
                   "--tls-verify", "--tls-ca-path", job["ca"], "--data", f"@{file}",
                   "--tls" if job["tls"] == "starttls" else "--tls-on-connect"]
        done = subprocess.run(command, capture_output=True, timeout=CLIENT_SECONDS_MAX)
        output = (done.stdout + done.stderr).decode("utf-8", "replace")
        errors[mail["number"]] = output[-3000:] if done.returncode else None
    return errors


def msmtp(job):
    errors = {}
    settings = SCRATCH / "msmtprc"
    settings.write_text(f"""defaults
auth plain
tls on
tls_starttls {"on" if job["tls"] == "starttls" else "off"}
tls_trust_file {job["ca"]}
account default
host {job["host"]}
port {job["port"]}
user waypost
password {job["password"]}
""")
    settings.chmod(0o600)
    for mail in job["mails"]:
        content, _ = raw(mail, with_bcc=True)
        command = ["msmtp", "-C", settings, "-f", mail["from"][1], "-t"]
        done = subprocess.run(command, input=content.replace(b"\r\n", b"\n"), capture_output=True, timeout=CLIENT_SECONDS_MAX)
        errors[mail["number"]] = done.stderr.decode() if done.returncode else None
    return errors


def postfix(job):
    """An application gives its mails to a Postfix on its machine, whose relayhost is Waypost. The log says what
    became of them. Postfix's own settings have the login and TLS, so that a job with another password is not for it."""
    errors = {}
    log = Path(os.environ["POSTFIX_LOG"])
    for mail in job["mails"]:
        before = log.stat().st_size
        content, recipients = raw(mail, with_bcc=False)
        sender = f"{job['tls']}@judge.example"
        with smtplib.SMTP("127.0.0.1", int(os.environ["POSTFIX_PORT"])) as client:
            client.sendmail(sender, recipients, content)
        errors[mail["number"]] = outcome(log, before, recipients)
    return errors


def outcome(log, before, recipients):
    """Waits until Postfix has said what became of each recipient; the answer that it could not deliver for, or None."""
    deadline = time.monotonic() + POSTFIX_SECONDS_MAX
    while time.monotonic() < deadline:
        text = log.read_bytes()[before:].decode()
        said = [re.search(rf"to=<{re.escape(one)}>.* status=(\w+) \((.*)\)", text) for one in recipients]
        if all(said):
            return next((one[2] for one in said if one[1] != "sent"), None)
        time.sleep(0.1)
    return "Postfix did not say what became of the mail"


CLIENTS = {
    "smtplib": program(sys.executable, HERE / "clients/client.py"),
    "nodemailer": program("node", HERE / "clients/client.js"),
    "go": program("go", "run", HERE / "clients/client.go"),
    "java": program("java", "-XX:TieredStopAtLevel=1", "-cp", JAVA_CLASSES, HERE / "clients/Client.java", form="properties"),
    "ruby": program("ruby", HERE / "clients/client.rb"),
    "swaks": swaks,
    "msmtp": msmtp,
}
if "POSTFIX_PORT" in os.environ:
    CLIENTS["postfix"] = postfix
