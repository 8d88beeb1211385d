"""Amazon's client against the simulator, and Waypost's requests against Amazon's description of SES.

The client is botocore, whose service model is the description. Each mail that Waypost sent is sent again by the
client: the simulator must show both alike.
"""

import json
import os
import re
import uuid
from datetime import datetime, timedelta, timezone
from email.header import Header, decode_header, make_header
from email.utils import getaddresses
from pathlib import Path
from unittest import mock
from urllib.parse import quote

import botocore.session
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import ClientError, ConnectionClosedError, ReadTimeoutError
from botocore.httpsession import URLLib3Session

from tally import Tally, call

SIMULATOR = os.environ["SIMULATOR_URL"]
SCRATCH = Path(os.environ["JUDGE_SCRATCH"])
SECRET = "simulator-secret-access-key"
REGION = "eu-central-1"
TO = "ann@judge.example.org"
FROM = "sender@example.com"
# "Common error types" of the AWS API references; no service model lists them.
COMMON = {
    "AccessDeniedException", "ExpiredTokenException", "IncompleteSignature", "InternalFailure", "MalformedHttpRequestException",
    "NotAuthorized", "OptInRequired", "RequestAbortedException", "RequestEntityTooLargeException", "RequestExpired",
    "RequestTimeoutException", "ServiceUnavailable", "UnknownOperationException", "UnrecognizedClientException",
    "ValidationError",
}
# Responses of AWS' own server framework before it calls a service, in the JSON protocols. The Amazon DynamoDB Developer
# Guide, "Error handling with DynamoDB", lists the first two; other services of the same framework were seen to respond
# with the others (com.amazon.coral.service#InvalidSignatureException, #SerializationException).
FRAMEWORK = {
    "IncompleteSignatureException", "MissingAuthenticationTokenException", "InvalidSignatureException", "SerializationException",
}
SESSION = botocore.session.get_session()
MODEL = SESSION.get_service_model("sesv2")
RETRIED = json.dumps(SESSION.get_data("_retry"))
tally = Tally("ses")
seen = {}


def client(access_key="AKIACLIENT", secret=SECRET):
    config = Config(retries={"total_max_attempts": 1}, read_timeout=0.7, connect_timeout=5)
    return SESSION.create_client("sesv2", region_name=REGION, endpoint_url=SIMULATOR, aws_access_key_id=access_key,
                                 aws_secret_access_key=secret, config=config)


SES = client()


def mailbox(person):
    """Encodes to ASCII; a text that only looks encoded is encoded too."""
    name, address = person
    return f"{Header(name, 'utf-8').encode(maxlinelen=0)} <{address}>" if name else address


def text(data):
    return {"Data": data, "Charset": "UTF-8"}


def mail(to=TO, sender=FROM, **more):
    content = {"Subject": text("Grüße 日本語"), "Body": {"Text": text("Grüße\n"), "Html": text("<p>Grüße</p>")}}
    headers = {"List-Unsubscribe": "<https://example.com/u/1>", "List-Unsubscribe-Post": "List-Unsubscribe=One-Click"}
    content["Headers"] = [{"Name": name, "Value": value} for name, value in headers.items()]
    return {"FromEmailAddress": mailbox(("Grüße, Shop", sender)), "Destination": {"ToAddresses": [mailbox(("Doe, Ann 🎉", to))]},
            "ReplyToAddresses": [mailbox(("Help (us)", "help@judge.example.org"))], "Content": {"Simple": content},
            "EmailTags": [{"Name": "order", "Value": "1042"}]} | more


def captured(to):
    return call(f"{SIMULATOR}/captured?provider=SES&to={quote(to)}")[1]["messages"]


def shown(received):
    """The simulator's view of a captured message, with parsed mailboxes."""

    def people(header):
        return header and [(str(make_header(decode_header(name))), address) for name, address in getaddresses([header])]

    rest = {name: value for name, value in received.items() if name not in ("sequence", "providerMessageId", "acceptedAt")}
    headers = {name: value for name, value in received["headers"].items() if name != "Reply-To"}
    return rest | {"from": people(received["from"]), "replyTo": people(received["replyTo"]), "headers": headers}


def judge_send():
    answer = SES.send_email(**mail())
    received = captured(TO)[-1]
    tally.equal("SES: id", answer["MessageId"], received["providerMessageId"])
    got = shown(received)
    tally.equal("SES: sender", got["from"], [("Grüße, Shop", FROM)])
    tally.equal("SES: reply-to", got["replyTo"], [("Help (us)", "help@judge.example.org")])
    tally.equal("SES: content", [got["subject"], got["text"], got["html"]], ["Grüße 日本語", "Grüße\n", "<p>Grüße</p>"])
    tally.equal("SES: headers", got["headers"].get("List-Unsubscribe-Post"), "List-Unsubscribe=One-Click")
    tally.equal("SES: tags", got["metadata"], {"order": "1042"})


def refused(what, code, status, send):
    """The client must raise the error of that code, as its own class if the model has one."""
    try:
        send()
    except ClientError as error:
        got = error.response["Error"]["Code"]
        seen.setdefault(got, what)
        tally.check(f"SES {what}: code", got in code.split(" or "), f"{got} is not {code}")
        tally.equal(f"SES {what}: status", error.response["ResponseMetadata"]["HTTPStatusCode"], status)
        shape = {one.name: one for one in MODEL.error_shapes}.get(got)
        if shape:
            tally.equal(f"SES {what}: class", type(error).__name__, got)
            tally.equal(f"SES {what}: status of the model", status, shape.metadata.get("error", {}).get("httpStatusCode"))
        tally.check(f"SES {what}: message", error.response["Error"].get("Message"), error.response)
    except Exception as error:
        tally.check(f"SES {what}", False, f"{type(error).__name__}: {error}")
    else:
        tally.check(f"SES {what}", False, "the client saw no error")


def under_fault(kind, send):
    call(f"{SIMULATOR}/faults", "POST", {"provider": "SES", "kind": kind})
    try:
        send()
    finally:
        call(f"{SIMULATOR}/faults", "POST", {"provider": "SES", "kind": "none"})


def raises(what, kind, send):
    try:
        send()
    except kind:
        tally.check(what, True)
    except Exception as error:
        tally.check(what, False, f"{type(error).__name__}: {error}")
    else:
        tally.check(what, False, "the client saw no error")


def judge_errors():
    send = lambda **more: SES.send_email(**mail(**more))
    as_key = lambda key, secret=SECRET: lambda: client(key, secret).send_email(**mail())
    for kind, code, status in [
        ("throttle", "TooManyRequestsException", 429), ("error", "InternalFailure or InternalServiceErrorException", 500),
        ("limit", "ThrottlingException", 400), ("pause", "MessageRejected", 400),
        ("suspended", "AccountSuspendedException", 400),
    ]:
        under_fault(kind, lambda: refused(f"fault {kind}", code, status, send))
    under_fault("timeout", lambda: raises("SES fault timeout", ReadTimeoutError, send))
    under_fault("reset", lambda: raises("SES fault reset", ConnectionClosedError, send))
    under_fault("gateway", lambda: raises("SES fault gateway", ClientError, send))
    refused("unverified sender", "MessageRejected", 400, lambda: send(sender="shop@unverified.example.net"))
    refused("refused recipient", "MessageRejected", 400, lambda: send(to="refuse@judge.example.org"))
    refused("unknown set", "NotFoundException", 404, lambda: send(ConfigurationSetName="invalid-set"))
    template = {"Template": {"TemplateName": "none", "TemplateData": "{}"}}
    refused("unknown template", "NotFoundException", 404, lambda: send(Content=template))
    refused("no recipient", "BadRequestException", 400, lambda: send(Destination={}))
    refused("paused account", "SendingPausedException", 400, as_key("AKIAnocredit"))
    refused("unknown key", "UnrecognizedClientException", 403, as_key("AKIAinvalid"))
    call(f"{SIMULATOR}/ses/credentials", "POST", {"accessKeyId": "AKIAREGISTERED", "secretAccessKey": SECRET})
    refused("wrong secret", "InvalidSignatureException", 403, as_key("AKIAREGISTERED", "wrong"))
    refused("no permission", "AccessDeniedException", 403, as_key("AKIAnoscope"))
    refused("unknown identity", "NotFoundException", 404, lambda: SES.get_email_identity(EmailIdentity="none.example.com"))
    domain = f"{uuid.uuid4().hex}.example.com"
    SES.create_email_identity(EmailIdentity=domain)
    refused("identity twice", "AlreadyExistsException", 400, lambda: SES.create_email_identity(EmailIdentity=domain))
    refused("unknown call", "UnknownOperationException", 404, lambda: SES.list_contact_lists())
    seen.setdefault(bare_call(b"{"), "no JSON")
    seen.setdefault(bare_call(b"{}", authorization=None), "no signature")
    seen.setdefault(bare_call(b"{}", authorization="AWS4-HMAC-SHA256 x"), "half a signature")
    with mock.patch("botocore.auth.get_current_datetime", lambda: datetime.now(timezone.utc) - timedelta(hours=1)):
        seen.setdefault(bare_call(b"{}"), "a clock that is an hour late")
    for code, what in seen.items():
        known = code in [one.name for one in MODEL.error_shapes] or f'"{code}"' in RETRIED or code in COMMON | FRAMEWORK
        tally.check(f"SES {what}: AWS has an error {code}", known, "in no service model, retry data or list of common errors")


def bare_call(body, **headers):
    """The error code of a call that the client would not make; it is signed unless `authorization` is given."""
    request = AWSRequest("POST", f"{SIMULATOR}/v2/email/outbound-emails", {"Content-Type": "application/json"}, body)
    if "authorization" not in headers:
        SigV4Auth(Credentials("AKIACLIENT", SECRET), "ses", REGION).add_auth(request)
    elif headers["authorization"]:
        request.headers["Authorization"] = headers["authorization"]
    return URLLib3Session().send(request.prepare()).headers.get("x-amzn-errortype")


def judge_messages(sent):
    """Sends each of Waypost's messages again with the client."""
    for each in sent:
        if each["provider"] != "SES":
            continue
        given, received = each["given"], each["received"]
        body = {part.capitalize(): text(received[part]) for part in ("text", "html") if received[part]}
        headers = [{"Name": name, "Value": value} for name, value in received["headers"].items() if name != "Reply-To"]
        simple = {"Subject": text(received["subject"]), "Body": body} | ({"Headers": headers} if headers else {})
        tags = [{"Name": name, "Value": value} for name, value in received["metadata"].items()]
        SES.send_email(FromEmailAddress=mailbox(given["from"]), ReplyToAddresses=[mailbox(given["replyTo"])],
                       Destination={"ToAddresses": [mailbox(given["to"][0])]}, Content={"Simple": simple}, EmailTags=tags)
        ours, theirs = shown(received), shown(captured(received["to"])[-1])
        for field in ours.keys() | theirs.keys():
            tally.equal(f"SES: {field} to {given['to'][0]}", ours.get(field), theirs.get(field))


def judge_requests(requests):
    shape = MODEL.operation_model("SendEmail").input_shape
    for request in requests:
        problems = list(misfits(request, shape, ""))
        tally.check("SES: a request of Waypost's", not problems, f"{problems} in {request}")
    wrong = [{"From": "x"}, {"Content": {"Simple": {"Subject": "x"}}}, {"EmailTags": [{"Name": "x", "Valu": "y"}]}]
    for request in wrong:
        tally.check("SES: a request that is wrong is found out", list(misfits(request, shape, "")), request)


def misfits(value, shape, path):
    """The differences between a JSON value and a shape of the model: names, types and limits."""
    kinds = {"structure": dict, "list": list, "map": dict, "string": str, "boolean": bool, "integer": int, "blob": str}
    if not isinstance(value, kinds.get(shape.type_name, object)):
        yield f"{path} is no {shape.type_name}"
        return
    if shape.type_name == "structure":
        for name in value.keys() - shape.members.keys():
            yield f"{path}.{name} is not known"
        for name in set(shape.required_members) - value.keys():
            yield f"{path}.{name} is missing"
        for name in value.keys() & shape.members.keys():
            yield from misfits(value[name], shape.members[name], f"{path}.{name}")
    elif shape.type_name == "list":
        for at, one in enumerate(value):
            yield from misfits(one, shape.member, f"{path}.{at}")
    if isinstance(value, (str, list)):
        bounds = shape.metadata
        if not bounds.get("min", 0) <= len(value) <= bounds.get("max", float("inf")):
            yield f"{path} has a length of {len(value)}"
        if "pattern" in bounds and not re.fullmatch(bounds["pattern"], value):
            yield f"{path} does not fit {bounds['pattern']}"
        if "enum" in bounds and value not in bounds["enum"]:
            yield f"{path} is none of {bounds['enum']}"


judge_send()
judge_errors()
judge_messages(json.loads((SCRATCH / "sent.json").read_text()))
judge_requests(json.loads((SCRATCH / "requests.json").read_text())["SES"])
tally.close()
