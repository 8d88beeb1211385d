"""postmarker, a client of Postmark for Python, with Waypost's endpoints of Postmark: every call for sending, with answers and
errors as the client reads them.

The client drops the path of its base URL. So it calls a proxy that puts the path before, as a reverse proxy with a host name
of its own does."""

import os
import threading
import urllib.error
import urllib.request
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from postmarker.core import PostmarkClient
from postmarker.exceptions import ClientError

from tally import Tally, template, waypost

SENDER = "Sender <sender@example.com>"
tally = Tally("postmarker-pypi")


class Proxy(BaseHTTPRequestHandler):
    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))) or None
        headers = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "connection")}
        url = f"{os.environ['WAYPOST_URL']}/compat/postmark{self.path}"
        request = urllib.request.Request(url, body, headers, method=self.command)
        try:
            reply = urllib.request.urlopen(request)
        except urllib.error.HTTPError as error:
            reply = error
        content = reply.read()
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.headers["Content-Type"])
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = answer

    def log_message(self, *_):
        pass


def address(name):
    return f"{name}@postmarker-pypi.example.org"


def message(to, **more):
    return {"From": SENDER, "To": to, "Subject": "Hello", "HtmlBody": "<p>Hi</p>"} | more


def accepted(what, answer):
    tally.equal(what, (answer["ErrorCode"], answer["Message"]), (0, "OK"))
    tally.check(f"{what}: id", len(answer["MessageID"]) == 36, answer)
    return answer["MessageID"]


def refused(what, code, call):
    try:
        tally.check(what, False, call())
    except ClientError as error:
        tally.equal(what, error.error_code, code)
        tally.check(f"{what}: message", str(error), error)


def single(postmark):
    one, two, copy, hidden = map(address, ("one", "two", "copy", "hidden"))
    given = postmark.emails.Email(
        From=SENDER, To=[one, two], Cc=copy, Bcc=[hidden], Subject="Hello", HtmlBody="<p>Hi</p>", TextBody="Hi", Tag="orders",
        ReplyTo="help@example.com", Headers={"X-Order": "7"}, Metadata={"order": "7"}, TrackOpens=False)
    given.attach_binary(b"ABC", "a.csv")
    id = accepted("send", given.send())
    got = tally.mail(one)
    tally.equal("recipients", got.get("visibleRecipients"), [one, two, copy])
    tally.equal("bodies", (got.get("text"), got.get("html")), ("Hi", "<p>Hi</p>"))
    tally.equal("head", (got.get("tags"), got.get("replyTo")), (["orders"], "help@example.com"))
    tally.equal("files", [(file["filename"], file["bytes"]) for file in got.get("attachments", [])], [("a.csv", 3)])
    details = postmark.messages.outbound.get(id)
    tally.equal("details", (details.MessageID, details.Recipients, details.Tag), (id, [one, two, copy, hidden], "orders"))
    tally.check("details: text", str(details).endswith(f"message to {one}, {two}, {copy}, {hidden}"), details)
    accepted("keywords", postmark.emails.send(**message(address("keywords"), TextBody="Hi", MessageStream="outbound")))
    mime = MIMEMultipart("alternative")
    mime["Subject"], mime["From"], mime["To"] = "From MIME", SENDER, address("mime")
    mime.attach(MIMEText("Hi", "plain"))
    mime.attach(MIMEText("<p>Hi</p>", "html"))
    accepted("MIME", postmark.emails.send(message=mime))
    tally.equal("MIME: subject", tally.mail(address("mime")).get("subject"), "From MIME")


def templates(postmark):
    id = template({"subject": "Order {{number}}", "htmlContent": "<p>Hi {{name}}!</p>"})
    given = lambda name: {
        "From": SENDER, "To": address(name), "TemplateAlias": id, "TemplateModel": {"name": name, "number": 7}}
    accepted("template", postmark.emails.send_with_template(**given("ada")))
    answers = postmark.emails.send_template_batch(given("bob"), given("carl") | {"TemplateAlias": "unknown"})
    tally.equal("template batch", [answer["ErrorCode"] for answer in answers], [0, 1101])
    for name in ("ada", "bob"):
        got = tally.mail(address(name))
        tally.equal("rendered", (got.get("subject"), got.get("html")), ("Order 7", f"<p>Hi {name}!</p>"))
    refused("template id", 1101, lambda: postmark.emails.send_with_template(
        From=SENDER, To=address("x"), TemplateId=1234, TemplateModel={}))


def batches(postmark):
    answers = postmark.emails.send_batch(message(address("first")), message("nobody"), message(address("second")))
    tally.equal("batch", [answer["ErrorCode"] for answer in answers], [0, 300, 0])
    for name in ("first", "second"):
        tally.mail(address(name))


def refusals(postmark):
    waypost("POST", "/v1/suppressions", {"email": address("inactive")})
    refused("inactive", 406, lambda: postmark.emails.send(**message(address("inactive"))))
    refused("address", 300, lambda: postmark.emails.send(**message("nobody")))
    refused("sender", 400, lambda: postmark.emails.send(**message(address("x"), From="a@unverified.example")))
    refused("unknown message", 701, lambda: postmark.messages.outbound.get("01a21f88-0902-7411-a0f3-8c583360bade"))
    wrong = PostmarkClient(server_token="POSTMARK_API_TEST", root_api_url=postmark.root_api_url)
    refused("wrong token", 10, lambda: wrong.emails.send(**message(address("x"))))


with ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as proxy:
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{proxy.server_port}/"
    client = PostmarkClient(server_token=os.environ["WAYPOST_API_KEY"], root_api_url=url)
    for part in (single, templates, batches, refusals):
        part(client)
    proxy.shutdown()
tally.close()
