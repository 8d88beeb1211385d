"""Sends the mails of a job (see clients.py) with Python's smtplib and email, one after the other over one connection."""

import base64
import json
import smtplib
import ssl
import sys
from email.message import EmailMessage
from email.utils import formataddr, make_msgid


def compose(mail):
    message = EmailMessage()
    message["From"] = formataddr(mail["from"])
    for field in ("to", "cc", "bcc"):
        if mail[field]:
            message[field.capitalize()] = ", ".join(formataddr(person) for person in mail[field])
    message["Subject"] = mail["subject"]
    message["Message-ID"] = make_msgid(domain="judge.example")
    for name, value in mail["headers"].items():
        message[name] = value
    message.set_content(mail["text"])
    if mail["html"]:
        message.add_alternative(mail["html"], subtype="html")
    for file in mail["files"]:
        maintype, subtype = file["type"].split("/")
        content = base64.b64decode(file["base64"])
        message.add_attachment(content, maintype=maintype, subtype=subtype, filename=file["name"])
    return message


def connect(job):
    context = ssl.create_default_context(cafile=job["ca"])
    if job["tls"] == "tls":
        return smtplib.SMTP_SSL(job["host"], job["port"], context=context)
    client = smtplib.SMTP(job["host"], job["port"])
    if job["tls"] == "starttls":
        client.starttls(context=context)
    return client


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        job = json.load(file)
    login_error = None
    client = connect(job)
    try:
        client.login("waypost", job["password"])
    except smtplib.SMTPException as problem:
        login_error = str(problem)
    for mail in job["mails"]:
        error = login_error
        try:
            error = error or client.send_message(compose(mail)) and "some recipients were refused"
        except smtplib.SMTPException as problem:
            error = str(problem)
        print(json.dumps({"number": mail["number"], "error": error or None}))
    client.quit()


if __name__ == "__main__":
    main()
