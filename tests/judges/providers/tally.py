"""HTTP calls and check counts, shared by the judge's Python programs."""

import json
import os
import urllib.error
import urllib.request
from pathlib import Path


def call(url, method="GET", body=None, key=None):
    request = urllib.request.Request(url, method=method, headers={"Content-Type": "application/json"})
    if key:
        request.add_header("Authorization", f"Bearer {key}")
    try:
        with urllib.request.urlopen(request, json.dumps(body).encode() if body else None) as answer:
            return answer.status, json.loads(answer.read() or "null")
    except urllib.error.HTTPError as refusal:
        return refusal.code, json.loads(refusal.read() or "null")


class Tally:
    """Counts checks, prints those that fail, and writes both numbers for run.sh to add up."""

    def __init__(self, name):
        self.file = Path(os.environ["JUDGE_SCRATCH"]) / f"tally-{name}"
        self.passed = self.failed = 0

    def check(self, what, is_right, detail=""):
        if is_right:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAILED {what}: {detail}"[:900])
        return is_right

    def equal(self, what, got, wanted):
        return self.check(what, got == wanted, f"{got!r} is not {wanted!r}")

    def close(self):
        self.file.write_text(f"{self.passed} {self.failed}\n")
