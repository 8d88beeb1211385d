"""Counts checks, prints those that fail, reads what the simulator took, and calls Waypost's own API."""

import json
import os
import time
import urllib.request
from pathlib import Path
from urllib.parse import quote

SENT_SECONDS_MAX = 60


class Tally:
    def __init__(self, name):
        self.name = name
        self.counts = {True: 0, False: 0}

    def check(self, what, is_right, detail=""):
        self.counts[bool(is_right)] += 1
        if not is_right:
            print(f"FAILED {self.name}, {what}: {detail}"[:900])

    def equal(self, what, got, wanted):
        self.check(what, got == wanted, f"{got!r} is not {wanted!r}")

    def mail(self, to):
        """The mail to an address, once the simulator has it."""
        deadline = time.monotonic() + SENT_SECONDS_MAX
        while time.monotonic() < deadline:
            with urllib.request.urlopen(f"{os.environ['SIMULATOR_URL']}/captured?to={quote(to)}") as answer:
                if found := json.load(answer)["messages"]:
                    return found[0]
            time.sleep(0.1)
        self.check(f"mail to {to}", False, "not in time")
        return {}

    def close(self):
        passed, failed = self.counts[True], self.counts[False]
        Path(os.environ["JUDGE_SCRATCH"], f"tally-{self.name}").write_text(f"{passed} {failed}\n")
        print(f"{self.name}: {passed} passed, {failed} failed")


def waypost(method, path, body):
    request = urllib.request.Request(os.environ["WAYPOST_URL"] + path, json.dumps(body).encode(), method=method)
    request.add_header("Authorization", f"Bearer {os.environ['WAYPOST_API_KEY']}")
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["data"]


def template(version):
    """Adds a template with this version; returns its id."""
    id = waypost("POST", "/v1/templates", {"name": "Judge"})["id"]
    waypost("POST", f"/v1/templates/{id}/versions", version)
    return id
