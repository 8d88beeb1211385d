"""Which requests `make fuzz` does not make, when its messages are due, and how it counts the sends.

In a POST, null means the same as an absent field (docs/api.md). The document does not say so field by field, because
client generators would then offer null everywhere, so schemathesis takes such a request for an invalid one.

A message must be due in the year to come, which no schema can say, so the times of valid sends are moved there.

With FUZZ_SENDS, a file, the sends that match the document are counted: `<accepted> <all>` is written there.
"""

import os
from datetime import datetime, timedelta, timezone

import schemathesis

SENDS = os.environ.get("FUZZ_SENDS")
counts = {"accepted": 0, "total": 0}


def has_null(value):
    """Whether a value is null or has a field that is."""
    if isinstance(value, dict):
        return any(has_null(field) for field in value.values())
    if isinstance(value, list):
        return any(has_null(item) for item in value if isinstance(item, dict))
    return value is None


@schemathesis.hook
def filter_case(context, case):
    return case.method.upper() != "POST" or not has_null(case.body)


def is_valid_send(case):
    is_send = case.operation.label == "POST /v1/send" and isinstance(case.body, dict)
    return is_send and case.meta is not None and case.meta.generation.mode.is_positive


@schemathesis.hook
def before_call(context, case, kwargs):
    if is_valid_send(case):
        for hours, name in enumerate(("scheduledAt", "expiresAt"), start=1):
            if isinstance(case.body.get(name), str):
                case.body[name] = (datetime.now(timezone.utc) + timedelta(hours=hours)).isoformat()


@schemathesis.hook
def after_call(context, case, response):
    # Some checks repeat calls without their API key. Coverage sets all fields, some of which exclude each other.
    is_coverage = case.meta is not None and case.meta.phase.name.value == "coverage"
    if not SENDS or not is_valid_send(case) or is_coverage or response.status_code == 401:
        return
    counts["total"] += 1
    counts["accepted"] += response.status_code == 202
    with open(SENDS, "w") as file:
        file.write(f"{counts['accepted']} {counts['total']}\n")
