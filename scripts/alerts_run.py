#!/usr/bin/env python3
"""What test-alerts.sh needs while it runs:

alerts_run.py send                        sends mail until it is stopped; WAYPOST_URL, API_KEY
alerts_run.py post URL TIMES              posts an empty list to URL again and again, whatever the answer
alerts_run.py receive PORT FILE           serves a webhook endpoint, which hangs while FILE exists
alerts_run.py reading PROMETHEUS          waits until Prometheus has read the metrics of every program
alerts_run.py firing PROMETHEUS ALERT…    waits until these alerts fire; prints when, and what they say
alerts_run.py gone PROMETHEUS ALERT…      waits until they do not fire any more; without names, until none fires
alerts_run.py quiet PROMETHEUS SECONDS    fails if an alert fires within this time
alerts_run.py only PROMETHEUS SECONDS ALERT…  fails if an alert fired in the last SECONDS that is not among these
"""

import http.server
import json
import os
import secrets
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

WAIT_SECONDS_MAX = 90
SENDERS = 4
PAUSE_SECONDS = 0.5
# Random, so that PostgreSQL cannot compress it: a full disk shows at once.
BODY_BYTES = 20_000
TIMEOUT_SECONDS = 10


def send() -> None:
    for _ in range(SENDERS):
        threading.Thread(target=send_forever, daemon=True).start()
    while True:
        time.sleep(60)


def send_forever() -> None:
    headers = {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ["API_KEY"]}
    url = os.environ["WAYPOST_URL"] + "/v1/send"
    while True:
        message = {
            "from": "news@example.com",
            "to": f"{secrets.token_hex(8)}@example.org",
            "subject": "A trickle",
            "text": secrets.token_hex(BODY_BYTES // 2),
        }
        request = urllib.request.Request(url, json.dumps(message).encode(), headers)
        try:
            urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS).close()
        except OSError:
            pass  # the faults are wanted
        time.sleep(PAUSE_SECONDS)


def post(url: str, times: str) -> None:
    for _ in range(int(times)):
        request = urllib.request.Request(url, b"[]", {"Content-Type": "application/json"})
        try:
            urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS).close()
        except OSError:
            pass
        time.sleep(0.2)


def receive(port: str, file: str) -> None:
    class Endpoint(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            while os.path.exists(file):
                time.sleep(0.1)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_HEAD = do_POST

        def log_message(self, *_arguments: object) -> None:
            pass

    http.server.ThreadingHTTPServer(("127.0.0.1", int(port)), Endpoint).serve_forever()


def ask(prometheus: str, path: str) -> dict:
    with urllib.request.urlopen(prometheus + path, timeout=TIMEOUT_SECONDS) as response:
        return json.load(response)["data"]


def wait_until_reading(prometheus: str) -> None:
    began = time.monotonic()
    while True:
        targets = ask(prometheus, "/api/v1/targets")["activeTargets"]
        down = [f"{one['scrapeUrl']} ({one['lastError']})" for one in targets if one["health"] != "up"]
        if targets and not down:
            return
        if time.monotonic() - began > WAIT_SECONDS_MAX:
            sys.exit(f"error: Prometheus cannot read {', '.join(down) or 'any program'}")
        time.sleep(0.3)


def firing_alerts(prometheus: str) -> dict:
    alerts = ask(prometheus, "/api/v1/alerts")["alerts"]
    return {one["labels"]["alertname"]: one for one in alerts if one["state"] == "firing"}


def wait_for(prometheus: str, what: str, is_done) -> dict:
    began = time.monotonic()
    while True:
        alerts = firing_alerts(prometheus)
        if is_done(alerts):
            return alerts
        if time.monotonic() - began > WAIT_SECONDS_MAX:
            sys.exit(f"error: not {what} within {WAIT_SECONDS_MAX} s; these fire: {' '.join(alerts) or 'none'}")
        time.sleep(0.3)


def wait_until_firing(prometheus: str, *names: str) -> None:
    began = time.monotonic()
    for name in names:
        alert = wait_for(prometheus, f"firing: {name}", lambda alerts: name in alerts)[name]
        said = alert["annotations"]
        print(f"    {name} ({alert['labels']['severity']}) after {time.monotonic() - began:.0f} s", file=sys.stderr)
        print(f"      {said['summary']}. {said['description']}", file=sys.stderr)


def wait_until_gone(prometheus: str, *names: str) -> None:
    wanted = f"gone: {' '.join(names) or 'every alert'}"
    wait_for(prometheus, wanted, lambda alerts: not (set(names) & set(alerts) if names else alerts))


def stay_quiet(prometheus: str, seconds: str) -> None:
    until = time.monotonic() + float(seconds)
    while time.monotonic() < until:
        alerts = firing_alerts(prometheus)
        if alerts:
            sys.exit(f"error: {' '.join(alerts)} fire although all is well: {json.dumps(alerts)}")
        time.sleep(0.5)


def only(prometheus: str, seconds: str, *names: str) -> None:
    query = f'count by (alertname) (count_over_time(ALERTS{{alertstate="firing"}}[{seconds}s]))'
    found = ask(prometheus, "/api/v1/query?" + urllib.parse.urlencode({"query": query}))["result"]
    fired = {one["metric"]["alertname"] for one in found}
    if fired - set(names):
        sys.exit(f"error: {' '.join(sorted(fired - set(names)))} fired without a reason")


COMMANDS = {
    "send": send,
    "post": post,
    "receive": receive,
    "reading": wait_until_reading,
    "firing": wait_until_firing,
    "gone": wait_until_gone,
    "quiet": stay_quiet,
    "only": only,
}

if __name__ == "__main__":
    COMMANDS[sys.argv[1]](*sys.argv[2:])
