"""Sends the mails of mails.json through Waypost to each simulated provider.

Writes the results to JUDGE_SCRATCH: sent.json, a list of {provider, given, received}, where received is what the
simulator took; and requests.json, the calls that Waypost made, by provider. Checks what needs no vendor's client.
"""

import email
import json
import os
import re
import time
from email import policy
from email.header import decode_header, make_header
from email.utils import getaddresses
from pathlib import Path
from urllib.parse import quote

from tally import Tally, call

SCRATCH = Path(os.environ["JUDGE_SCRATCH"])
SENT_SECONDS_MAX = 60
SENDER = "sender@example.com"  # Every simulated account has that domain.
ACCOUNTS = {
    "SENDGRID": {"apiKey": "SG.judge"},
    "POSTMARK": {"serverToken": "postmark-judge"},
    "MAILGUN": {"apiKey": "key-judge", "domain": "example.com"},
    "SES": {
        "accessKeyId": "AKIAJUDGE", "secretAccessKey": "simulator-secret-access-key", "region": "eu-central-1",
        "configurationSet": "judge",
    },
}
TOPIC = "arn:aws:sns:eu-central-1:123456789012:judge-events"
SEND_PATHS = {
    "SENDGRID": r"/v3/mail/send", "POSTMARK": r"/email(/batch)?", "MAILGUN": r"/v3/[^/]+/messages",
    "SES": r"/v2/email/outbound-emails",
}
RECORDED = Path(os.environ["RECORDED_REQUESTS"])
BEFORE = len(RECORDED.read_text())  # What others had Waypost call before.
tally = Tally("waypost")


def waypost(method, path, body=None):
    return call(os.environ["WAYPOST_URL"] + path, method, body, os.environ["WAYPOST_API_KEY"])


def connect():
    for provider, credentials in ACCOUNTS.items():
        account = {"providerType": provider, "displayName": provider, "credentials": credentials}
        if provider == "SES":
            account["eventSecrets"] = {"topicArn": TOPIC}
        status, account = waypost("POST", "/v1/providers", account)
        assert status == 201, account
        rule = {"name": provider, "tags": [provider.lower()], "providerAccountId": account["data"]["id"]}
        status, answer = waypost("POST", "/v1/routing-rules", rule)
        assert status == 201, answer


def mailbox(person):
    name, address = person
    escaped = name and name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}" <{address}>' if name else address


def send(provider, given, may_refuse=False):
    """The sent message, for `wait_for`; None if it was rejected."""
    body = {name: given[name] for name in ("subject", "text", "html") if name in given}
    body |= {"from": mailbox(given["from"]), "to": [mailbox(person) for person in given["to"]]}
    body |= {"replyTo": mailbox(given["replyTo"]), "tags": given["tags"]}
    body["tracking"] = {"opens": False, "clicks": False}
    if given.get("hasGroup"):
        body["unsubscribeGroupId"] = GROUP
    status, answer = waypost("POST", "/v1/send", body)
    if status == 400 and may_refuse:
        return None
    tally.check(f"{provider}: accepted", status == 202, f"{answer} for {body}")
    return (provider, answer["messageId"], given) if status == 202 else None


def wait_for(provider, message, given):
    """Waits until the message is sent; returns the captured message of each recipient."""
    deadline = time.monotonic() + SENT_SECONDS_MAX
    while time.monotonic() < deadline:
        status, answer = waypost("GET", f"/v1/messages/{message}")
        # 503: the service asks for a retry.
        assert status in (200, 503), answer
        if status == 200 and answer["data"]["status"] not in ("QUEUED", "SENDING"):
            break
        time.sleep(0.1)
    found = []
    for place, person in enumerate(given["to"]):
        url = f"{os.environ['SIMULATOR_URL']}/captured?provider={provider}&to={quote(person[1])}"
        messages = [one for one in call(url)[1]["messages"] if one["metadata"].get("waypost_message") == message]
        what = f"{provider}: one message to {person}"
        if not tally.check(what, len(messages) == 1, f"{len(messages)} messages; {last_errors(message)}"):
            continue
        received = messages[0]
        tally.equal(f"{provider}: recipient of {person}", received["metadata"]["waypost_recipient"], str(place))
        tally.equal(f"{provider}: address of {person}", received["to"], person[1])
        found.append({"provider": provider, "given": given | {"to": [person]}, "received": received})
    return found


def last_errors(message):
    return [one["lastError"] for one in waypost("GET", f"/v1/messages/{message}/recipients")[1].get("data", [])]


def group_headers(received):
    """Each recipient of a message with a group has its own link, the same in header, text and html."""
    link = re.fullmatch(r"<(http[^>]+)>", received["headers"].get("List-Unsubscribe", ""))
    what = f"{received['provider']}: unsubscribe link of {received['to']}"
    tally.equal(f"{what}, post", received["headers"].get("List-Unsubscribe-Post"), "List-Unsubscribe=One-Click")
    if tally.check(what, link, received["headers"]):
        tally.check(f"{what} in its bodies", link[1] in received["text"] and link[1] in received["html"], received["text"])
    return link and link[1]


def bodies(provider):
    """The bodies of Waypost's send requests, parsed."""
    found = []
    for line in RECORDED.read_text()[BEFORE:].splitlines():
        request = json.loads(line)
        if request["method"] != "POST" or not re.fullmatch(SEND_PATHS[provider], request["path"]):
            continue
        body = form(request) if provider == "MAILGUN" else json.loads(request["body"])
        if not (provider == "MAILGUN" and body.get("o:testmode")):
            found.append(body)
    return found


def form(request):
    """Parses multipart/form-data with Python's email package; a repeated field becomes a list."""
    headers = {name.lower(): value for name, value in request["headers"]}
    text = f"Content-Type: {headers['content-type']}\r\n\r\n".encode() + request["body"].encode("utf-8", "surrogateescape")
    fields = {}
    for part in email.message_from_bytes(text, policy=policy.HTTP).iter_parts():
        name = part.get_param("name", header="content-disposition")
        fields.setdefault(name, []).append(part.get_payload(decode=True).decode())
    return {name: values[0] if len(values) == 1 else values for name, values in fields.items()}


def recipients(provider, body):
    """(name, address) of each recipient in a request, parsed as mail software does."""
    if provider == "SENDGRID":
        return [(one.get("name", ""), one["email"]) for each in body["personalizations"] for one in each["to"]]
    if provider == "POSTMARK":
        fields = [one["To"] for one in (body if isinstance(body, list) else [body])]
    elif provider == "MAILGUN":
        fields = body["to"] if isinstance(body["to"], list) else [body["to"]]
    else:
        fields = body["Destination"]["ToAddresses"]
    decode = provider == "SES"
    return [(str(make_header(decode_header(name))) if decode else name, address) for name, address in getaddresses(fields)]


def check_requests(provider, people):
    names = {address: name or "" for name, address in people}
    posted = bodies(provider)
    for body in posted:
        for name, address in recipients(provider, body):
            tally.equal(f"{provider}: name of {address}", name, names.get(address))
        if provider == "MAILGUN" and "recipient-variables" in body:
            variables = json.loads(body["recipient-variables"])
            tally.equal("MAILGUN: one entry of variables for each recipient", sorted(variables), sorted(
                address for _, address in recipients(provider, body)))
            for address in variables:
                tally.check(f"MAILGUN: {address} in a batch", re.fullmatch(r"[a-z0-9._@-]+", address), body["to"])
    return posted


def givens(listed):
    """Every message, and whether it may be rejected."""
    contents = listed["contents"]
    for may_refuse, people in ((False, listed["people"] + listed["apart"]), (True, listed["refusable"])):
        for at, (name, address) in enumerate(people):
            own = {"from": [name, SENDER], "to": [[name, address]], "replyTo": [name, f"reply-{at}@judge.example.org"]}
            yield contents[at % len(contents)] | own, may_refuse
    for content in contents:
        yield content | {"from": ["Shop", SENDER], "to": listed["people"], "replyTo": ["Help", "help@judge.example.org"]}, False


def main():
    global GROUP
    listed = json.loads(Path(__file__).with_name("mails.json").read_text())
    connect()
    GROUP = waypost("POST", "/v1/unsubscribe-groups", {"name": "Judge"})[1]["data"]["id"]
    under_way = []
    for provider in ACCOUNTS:
        for given, may_refuse in givens(listed):
            tags = {"tags": [provider.lower(), "Ünïcode tag"]}
            under_way.append(send(provider, given | tags, may_refuse))
    sent = [each for one in under_way if one for each in wait_for(*one)]
    links = [group_headers(each["received"]) for each in sent if each["given"].get("hasGroup")]
    tally.equal("unsubscribe links are each another", len(set(links)), len(links))
    for each in sent:
        for body in ("text", "html"):
            given, got = each["given"].get(body), each["received"][body]
            if each["given"].get("hasGroup"):
                got = got[:len(given)]  # The link stands behind.
            tally.equal(f"{each['provider']}: {body} to {each['received']['to']}", got, given)
        tally.equal(f"{each['provider']}: subject", each["received"]["subject"], each["given"]["subject"])
    (SCRATCH / "sent.json").write_text(json.dumps(sent))
    requests = {provider: check_requests(provider, listed["people"] + listed["apart"] + listed["refusable"]) for provider in ACCOUNTS}
    (SCRATCH / "requests.json").write_text(json.dumps(requests))
    print(f"Waypost sent {len(sent)} messages, rejected {under_way.count(None)}")


if __name__ == "__main__":
    main()
    tally.close()
