"""SendGrid's client for Python with Waypost's endpoint of SendGrid: what its documentation sends, and errors as the client
reads them."""

import base64
import os
import time

import sendgrid
from python_http_client import exceptions
from sendgrid.helpers import mail as m

from tally import Tally, template

SENDER = "sender@example.com"
tally = Tally("sendgrid-pypi")
url = f"{os.environ['WAYPOST_URL']}/compat/sendgrid"
client = sendgrid.SendGridAPIClient(os.environ["WAYPOST_API_KEY"], host=url)


def address(name):
    return f"{name}@sendgrid-pypi.example.org"


def mail(to, **more):
    return m.Mail(from_email=SENDER, to_emails=to, subject="Hello", html_content="<p>Hi</p>", **more)


def sent(what, given, status=202):
    answer = client.send(given)
    tally.equal(what, (answer.status_code, answer.body), (status, b""))
    tally.check(f"{what}: id", len(answer.headers["X-Message-Id"] or "") == 36, answer.headers)
    return answer.headers["X-Message-Id"]


def refused(what, kind, field, call):
    try:
        answer = call()
    except exceptions.HTTPError as error:
        first = error.to_dict["errors"][0]
        tally.equal(what, (type(error), first["field"]), (kind, field))
        tally.check(f"{what}: message", first["message"], first)
    else:
        tally.check(what, False, answer.status_code)


def addresses():
    one, two, copy, hidden = map(address, ("one", "two", "copy", "hidden"))
    given = mail([m.To(one, "One, Two"), m.To(two)], plain_text_content="Hi")
    given.from_email = m.From(SENDER, "Sender")
    given.add_cc(m.Cc(copy, "Copy"))
    given.add_bcc(hidden)
    given.reply_to = m.ReplyTo("help@example.com", "Help")
    sent("several addresses", given)
    for to in (one, two, copy, hidden):
        got = tally.mail(to)
        tally.equal("recipients", got.get("visibleRecipients"), [one, two, copy])
        tally.equal("head", (got.get("from"), got.get("replyTo")), (f"Sender <{SENDER}>", "Help <help@example.com>"))
    both = [address("first"), address("second")]
    sent("each alone", mail(both, is_multiple=True))
    for to in both:
        tally.equal("alone", tally.mail(to).get("visibleRecipients"), [to])
    given = mail(address("list"))
    given.reply_to_list = [m.ReplyTo("a@example.com"), m.ReplyTo("b@example.com")]
    sent("reply to list", given)


def contents():
    to = address("sink")
    given = mail(to, plain_text_content=m.PlainTextContent("Hi"))
    given.add_header(m.Header("X-Order", "7"))
    given.add_category(m.Category("orders"))
    given.add_custom_arg(m.CustomArg("order", "7"))
    text = base64.b64encode(b"ABC").decode()
    given.attachment = m.Attachment(
        m.FileContent(text), m.FileName("a.csv"), m.FileType("text/csv"), m.Disposition("attachment"))
    settings = m.MailSettings()
    settings.bypass_list_management = m.BypassListManagement(False)
    settings.footer_settings = m.FooterSettings(False, m.FooterText("x"), m.FooterHtml("x"))
    settings.sandbox_mode = m.SandBoxMode(False)
    given.mail_settings = settings
    tracking = m.TrackingSettings()
    tracking.click_tracking = m.ClickTracking(False, False)
    tracking.open_tracking = m.OpenTracking(False, m.OpenTrackingSubstitutionTag("x"))
    tracking.subscription_tracking = m.SubscriptionTracking(
        False, m.SubscriptionText("x"), m.SubscriptionHtml("x"), m.SubscriptionSubstitutionTag("x"))
    tracking.ganalytics = m.Ganalytics(
        False, m.UtmSource("a"), m.UtmMedium("b"), m.UtmTerm("c"), m.UtmContent("d"), m.UtmCampaign("e"))
    given.tracking_settings = tracking
    sent("kitchen sink", given)
    got = tally.mail(to)
    tally.equal("bodies", (got.get("text"), got.get("html")), ("Hi", "<p>Hi</p>"))
    tally.equal("header", got.get("headers", {}).get("X-Order"), "7")
    tally.equal("categories", got.get("tags"), ["orders"])
    files = [(one["filename"], one["contentType"], one["bytes"]) for one in got.get("attachments", [])]
    tally.equal("files", files, [("a.csv", "text/csv", 3)])
    sandbox = mail(address("sandbox"))
    sandbox.mail_settings = m.MailSettings(sandbox_mode=m.SandBoxMode(True))
    sent("sandbox", sandbox, 200)
    later = mail(address("later"))
    later.send_at = m.SendAt(int(time.time()) + 3600)
    sent("send at", later)


def personalizations():
    given = m.Mail(from_email=SENDER)
    given.template_id = template({"subject": "Order {{number}}", "htmlContent": "<p>Hi {{name}}!</p>"})
    names = ("ada", "bob")
    for number, name in enumerate(names):
        one = m.Personalization()
        one.add_to(m.To(address(name)))
        one.dynamic_template_data = {"name": name, "number": number}
        given.add_personalization(one)
    id = sent("dynamic template", given)
    for number, name in enumerate(names):
        got = tally.mail(address(name))
        tally.equal("rendered", (got.get("subject"), got.get("html")), (f"Order {number}", f"<p>Hi {name}!</p>"))
        tally.equal("the id of all", got.get("metadata", {}).get("waypost_message"), id)
    given = m.Mail(from_email=SENDER, subject="Hello -name-", html_content="<p>-name-</p>", is_multiple=True, to_emails=[
        m.To(address("carl"), substitutions={"-name-": "Carl"}), m.To(address("dora"), substitutions={"-name-": "Dora"})])
    sent("substitutions", given)
    for name in ("Carl", "Dora"):
        got = tally.mail(address(name.lower()))
        tally.equal("substituted", (got.get("subject"), got.get("html")), (f"Hello {name}", f"<p>{name}</p>"))


def refusals():
    bad, forbidden = exceptions.BadRequestsError, exceptions.ForbiddenError
    refused("address", bad, "personalizations.0.to.0.email", lambda: client.send(mail("nobody@nowhere")))
    unverified = m.Mail(from_email="a@unverified.example", to_emails=address("x"), subject="x", html_content="x")
    refused("sender", forbidden, "from", lambda: client.send(unverified))
    group = mail(address("x"))
    group.asm = m.Asm(m.GroupId(7), m.GroupsToDisplay([7]))
    refused("group", bad, "asm.group_id", lambda: client.send(group))
    for name, setting in (("batch_id", m.BatchId("x")), ("ip_pool_name", m.IpPoolName("pool")), ("template_id", m.TemplateId("d-1"))):
        given = mail(address("x"))
        setattr(given, name, setting)
        refused(name, bad, name, lambda: client.send(given))
    refused("other path", exceptions.NotFoundError, None, lambda: client.client.scopes.get())
    refused("empty", bad, "personalizations", lambda: client.client.mail.send.post(request_body={}))
    wrong = sendgrid.SendGridAPIClient("SG.wrong", host=url)
    refused("wrong key", exceptions.UnauthorizedError, None, lambda: wrong.send(mail(address("x"))))


for part in (addresses, contents, personalizations, refusals):
    part()
tally.close()
