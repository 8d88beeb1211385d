"""Compares how django-anymail and Waypost read the simulator's events.

Waypost sends a message to each recipient for which the simulator reports events. Waypost receives the events, and so
does django-anymail, which verifies their origin and translates them into its own event types.
"""

import json
import os
import threading
import time
import warnings
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import django
import requests
from django.conf import settings

from tally import Tally
from waypost import ACCOUNTS, TOPIC, wait_for, waypost

SIMULATOR = os.environ["SIMULATOR_URL"]
EVENTS_SECONDS_MAX = 60
RECIPIENTS = ["ann", "hard-bounce", "soft-bounce", "block", "complaint", "open", "click", "unsubscribe", "defer", "drop"]
# The event types in Waypost. Other event types of django-anymail have none, or Waypost creates the event itself.
WORDS = {
    "delivered": "DELIVERED", "bounced": "BOUNCED", "rejected": "DROPPED", "deferred": "DEFERRED", "opened": "OPENED",
    "clicked": "CLICKED", "complained": "COMPLAINED", "unsubscribed": "UNSUBSCRIBED", "failed": "FAILED",
}
# Events of SES for which django-anymail has no type.
LATER_WORDS = {"DeliveryDelay": "deferred", "Subscription": "unsubscribed"}
# Both are right: django-anymail counts Postmark's "Blocked" as rejected, and what Mailgun held back because of its
# suppression list as bounced, like any permanent failure.
ALIKE = {("POSTMARK", "block"): {"DROPPED": "BOUNCED"}, ("MAILGUN", "drop"): {"BOUNCED": "DROPPED"}}
tally = Tally("events")
told = defaultdict(list)


class Receiver(BaseHTTPRequestHandler):
    """Passes each post to its provider's view, and returns the view's response."""

    def do_POST(self):
        provider = self.path.strip("/")
        body = self.rfile.read(int(self.headers["content-length"]))
        if provider == "SES" and b'"SubscriptionConfirmation"' in body:
            url = urlsplit(json.loads(body)["SubscribeURL"])
            threading.Thread(target=requests.get, args=[f"{SIMULATOR}{url.path}?{url.query}"]).start()
        headers = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in self.headers.items()}
        request = RequestFactory().post(self.path, body, content_type=self.headers["content-type"], **headers)
        try:
            status = VIEWS[provider](request).status_code
        except Exception as error:
            status = 400
            tally.check(f"{provider}: django-anymail takes an event", False, f"{error!r} for {body[:400]}")
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def ask(method, path, **more):
    answer = requests.request(method, SIMULATOR + path, timeout=10, **more)
    assert answer.ok, f"{method} {path}: {answer.status_code} {answer.text}"
    return answer.json() if answer.text else None


def subscribe(url):
    """Registers as each vendor's documentation says; keys that verify events become settings."""
    bearer = {"Authorization": f"Bearer {ACCOUNTS['SENDGRID']['apiKey']}"}
    path = "/v3/user/webhooks/event/settings"
    kinds = ["processed", "delivered", "bounce", "dropped", "deferred", "open", "click", "spam_report", "unsubscribe"]
    wish = {kind: True for kind in kinds} | {"enabled": True, "url": f"{url}/SENDGRID"}
    webhook = ask("POST", path, json=wish, headers=bearer)
    signed = ask("PATCH", f"{path}/signed/{webhook['id']}", json={"enabled": True}, headers=bearer)
    settings.ANYMAIL["SENDGRID_TRACKING_WEBHOOK_VERIFICATION_KEY"] = signed["public_key"]

    kinds = ["Open", "Click", "Delivery", "Bounce", "SpamComplaint", "SubscriptionChange"]
    wish = {"Url": f"{url}/POSTMARK", "MessageStream": "outbound", "Triggers": {kind: {"Enabled": True} for kind in kinds}}
    token = {"X-Postmark-Server-Token": ACCOUNTS["POSTMARK"]["serverToken"], "Accept": "application/json"}
    ask("POST", "/webhooks", json=wish, headers=token)

    login = ("api", ACCOUNTS["MAILGUN"]["apiKey"])
    kinds = ["delivered", "opened", "clicked", "unsubscribed", "complained", "temporary_fail", "permanent_fail"]
    for kind in kinds:
        path = f"/v3/domains/{ACCOUNTS['MAILGUN']['domain']}/webhooks"
        # Waypost has registered its own webhook already, which stays.
        urls = [*ask("GET", path, auth=login)["webhooks"][kind]["urls"], f"{url}/MAILGUN"]
        ask("PUT", f"{path}/{kind}", files=[("url", (None, one)) for one in urls], auth=login)
    key = ask("GET", "/v5/accounts/http_signing_key", auth=login)["http_signing_key"]
    settings.ANYMAIL["MAILGUN_WEBHOOK_SIGNING_KEY"] = key


def subscribe_topic(url):
    body = {"topicArn": TOPIC, "url": url, "configurationSet": ACCOUNTS["SES"]["configurationSet"]}
    ask("POST", "/sns/subscriptions", json=body)


def await_all_told():
    deadline = time.monotonic() + EVENTS_SECONDS_MAX
    while ask("GET", "/callbacks")["waiting"] and time.monotonic() < deadline:
        time.sleep(0.2)


def address(provider, name):
    """One organization per provider: a recipient that bounced at one is suppressed at all."""
    return f"{name}@{provider.lower()}.example.org"


def main():
    ask("DELETE", "/callbacks")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    for account in waypost("GET", "/v1/providers")[1]["data"]:
        status, answer = waypost("POST", f"/v1/providers/{account['id']}/event-webhook")
        tally.check(f"{account['providerType']}: event webhook", status == 200, answer)
        if account["providerType"] == "SES":
            subscribe_topic(account["webhookUrl"])
    subscribe(url)
    subscribe_topic(f"{url}/SES")
    await_all_told()
    sent = []
    for provider in ACCOUNTS:
        for name in RECIPIENTS:
            body = {"from": "sender@example.com", "to": address(provider, name), "subject": name, "tags": [provider.lower()]}
            body |= {"html": '<a href="https://example.com/ü?a=1&amp;b=2">x</a>', "tracking": {"opens": False, "clicks": False}}
            status, answer = waypost("POST", "/v1/send", body)
            assert status == 202, answer
            sent.append((provider, name, answer["messageId"]))
    for provider, name, message in sent:
        wait_for(provider, message, {"to": []})
    await_all_told()
    for provider, name, message in sent:
        alike = ALIKE.get((provider, name), {})
        seen = {alike.get(WORDS[word], WORDS[word]) for _, word in told[message] if word in WORDS}
        tally.equal(f"{provider}: of whom it is told", {who for who, _ in told[message]}, {address(provider, name)})
        _, recipients = waypost("GET", f"/v1/messages/{message}/recipients")
        events = {event["eventType"] for event in recipients["data"][0]["events"]} - {"QUEUED", "SENT"}
        tally.equal(f"{provider}: what Waypost says of {name}", sorted(events), sorted(seen))


def note(sender, event, esp_name, **_):
    """SES names the message of an event in the tags of the mail."""
    message = (event.metadata or {}).get("waypost_message") or event.esp_event["mail"]["tags"]["waypost_message"][0]
    word = event.event_type if event.event_type != "unknown" else LATER_WORDS[event.esp_event["eventType"]]
    told[message].append((event.recipient, word))


warnings.simplefilter("ignore")
settings.configure(ANYMAIL={"AMAZON_SES_AUTO_CONFIRM_SNS_SUBSCRIPTIONS": False}, ALLOWED_HOSTS=["*"])
django.setup()
from anymail.signals import tracking  # noqa: E402 -- these read the settings
from anymail.webhooks.amazon_ses import AmazonSESTrackingWebhookView  # noqa: E402
from anymail.webhooks.mailgun import MailgunTrackingWebhookView  # noqa: E402
from anymail.webhooks.postmark import PostmarkTrackingWebhookView  # noqa: E402
from anymail.webhooks.sendgrid import SendGridTrackingWebhookView  # noqa: E402
from django.test import RequestFactory  # noqa: E402

VIEWS = {
    "SENDGRID": SendGridTrackingWebhookView.as_view(), "POSTMARK": PostmarkTrackingWebhookView.as_view(),
    "MAILGUN": MailgunTrackingWebhookView.as_view(), "SES": AmazonSESTrackingWebhookView.as_view(),
}
tracking.connect(note)
main()
tally.close()
