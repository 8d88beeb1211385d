"""Resend's client for Python with Waypost's endpoints of Resend: every call for emails, with answers and errors as the
client reads them."""

import os
import time
import typing
from datetime import datetime, timedelta, timezone
from pathlib import Path

import resend
from resend import exceptions

SENDER = "Acme <sender@example.com>"
NOWHERE = "01a21f88-0902-7411-a0f3-8c583360bade"
SENT_SECONDS_MAX = 60
counts = {True: 0, False: 0}


def check(what, is_right, detail=""):
    counts[bool(is_right)] += 1
    if not is_right:
        print(f"FAILED resend (PyPI), {what}: {detail}"[:900])


def equal(what, got, wanted):
    check(what, got == wanted, f"{got!r} is not {wanted!r}")


def typed(what, answer, declared):
    """Each member that the client's type names is there, and simple ones have their type."""
    for name, kind in typing.get_type_hints(declared).items():
        if name == "http_headers":
            continue
        simple = {str: str, bool: bool, int: int}.get(kind)
        value = answer.get(name)
        is_absent = value is None and name in ("html", "text")
        check(f"{what}: {name}", is_absent or (name in answer and (not simple or isinstance(value, simple))), answer)


def refused(what, kind, code, error_type, call):
    try:
        answer = call()
    except exceptions.ResendError as error:
        equal(f"{what}: class", type(error), kind)
        equal(what, (error.code, error.error_type), (code, error_type))
        check(f"{what}: message", error.message, error)
        check(f"{what}: headers", "x-request-id" in {name.lower() for name in error.headers}, error.headers)
    else:
        check(what, False, f"answered {answer}")


def email(to, **more):
    return {"from": SENDER, "to": to, "subject": "Hello", "html": "<p>Hello</p>"} | more


def wait_for_sent(id):
    deadline = time.monotonic() + SENT_SECONDS_MAX
    while time.monotonic() < deadline:
        found = resend.Emails.get(id)
        if found["last_event"] == "sent":
            return found
        time.sleep(0.1)
    return found


def sends():
    given = email(
        ["ann@pypi.example.org", "bob@pypi.example.org"], cc="cc@pypi.example.org", bcc=["bcc@pypi.example.org"],
        reply_to="help@example.com", text="Hi", headers={"X-Order": "1042"}, tags=[{"name": "order", "value": "1042"}],
        attachments=[{"filename": "a.txt", "content": list(b"ABC")}],
    )
    answer = resend.Emails.send(given)
    typed("send", answer, resend.Emails.SendResponse)
    check("send: rate limit", int(answer["http_headers"]["ratelimit-limit"]) > 0, answer)
    read = wait_for_sent(answer.id)
    typed("get", read, resend.Email)
    wanted = {name: given[name] for name in ("from", "to", "bcc", "subject", "html", "text", "tags")}
    for name, value in (wanted | {"cc": ["cc@pypi.example.org"], "reply_to": ["help@example.com"]}).items():
        equal(f"get: {name}", read[name], value)


def repeats():
    options = {"idempotency_key": f"pypi-{time.time_ns()}"}
    first = resend.Emails.send(email("key@pypi.example.org"), options)
    equal("the same id", resend.Emails.send(email("key@pypi.example.org"), options).id, first.id)
    other = lambda: resend.Emails.send(email("other@pypi.example.org"), options)
    refused("the key for another email", exceptions.ResendError, 409, "invalid_idempotent_request", other)


def schedules():
    at = lambda hours: (datetime.now(timezone.utc) + timedelta(hours=hours)).isoformat()
    id = resend.Emails.send(email("later@pypi.example.org", scheduled_at=at(1))).id
    moved = resend.Emails.update({"id": id, "scheduled_at": at(2)})
    typed("update", moved, resend.Emails.UpdateEmailResponse)
    equal("scheduled", resend.Emails.get(id)["last_event"], "scheduled")
    typed("cancel", resend.Emails.cancel(id), resend.Emails.CancelScheduledEmailResponse)
    equal("canceled", resend.Emails.get(id)["last_event"], "canceled")
    late = lambda: resend.Emails.update({"id": id, "scheduled_at": at(2)})
    refused("update a cancelled one", exceptions.ValidationError, 422, "validation_error", late)


def batches():
    valid = email("batch@pypi.example.org")
    strict = resend.Batch.send([valid, valid])
    typed("batch", strict, resend.Batch.SendResponse) if "errors" in strict else equal("batch", len(strict["data"]), 2)
    wrong = lambda: resend.Batch.send([valid, email("nobody")], {"batch_validation": "strict"})
    refused("strict batch", exceptions.ValidationError, 422, "validation_error", wrong)
    permissive = resend.Batch.send([email("nobody"), valid], {"batch_validation": "permissive"})
    typed("permissive batch", permissive, resend.Batch.SendResponse)
    equal("permissive batch: ids", len(permissive["data"]), 1)
    equal("permissive batch: errors", [error["index"] for error in permissive["errors"]], [0])


def lists():
    first = resend.Emails.list({"limit": 3})
    typed("list", first, resend.Emails.ListResponse)
    equal("list: size", (len(first["data"]), first["has_more"]), (3, True))
    for one in first["data"]:
        check("list: last_event", isinstance(one["last_event"], str), one)
    second = resend.Emails.list({"limit": 2, "after": first["data"][2]["id"]})
    back = resend.Emails.list({"limit": 3, "before": second["data"][0]["id"]})
    equal("list before", [one["id"] for one in back["data"]], [one["id"] for one in first["data"]])


def refusals():
    missing = lambda: resend.Emails.send({"from": SENDER, "to": "a@example.org", "subject": "Hello"})
    refused("no body", exceptions.MissingRequiredFieldsError, 422, "missing_required_field", missing)
    refused("address", exceptions.ValidationError, 422, "validation_error", lambda: resend.Emails.send(email("nobody")))
    refused("unknown id", exceptions.ResendError, 404, "not_found", lambda: resend.Emails.get(NOWHERE))
    refused("domains", exceptions.ResendError, 404, "not_found", resend.Domains.list)
    key, resend.api_key = resend.api_key, "re_123"
    refused("wrong key", exceptions.InvalidApiKeyError, 403, "invalid_api_key", lambda: resend.Emails.get(NOWHERE))
    resend.api_key = key


def main():
    resend.api_key = os.environ["WAYPOST_API_KEY"]
    resend.api_url = f"{os.environ['WAYPOST_URL']}/compat/resend"
    for part in (sends, repeats, schedules, batches, lists, refusals):
        part()
    Path(os.environ["JUDGE_SCRATCH"], "tally-resend-pypi").write_text(f"{counts[True]} {counts[False]}\n")
    print(f"resend (PyPI): {counts[True]} passed, {counts[False]} failed")


if __name__ == "__main__":
    main()
