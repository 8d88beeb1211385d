// Postmark's client with Waypost's endpoints of Postmark: every call for sending, with answers and errors as the client reads
// them.
const postmark = require("postmark");
const { Tally, template, waypost } = require("./tally.js");

const SENDER = "Sender <sender@example.com>";
const tally = new Tally("postmark-npm");
const { host } = new URL(process.env.WAYPOST_URL);
const options = { useHttps: false, requestHost: `${host}/compat/postmark` };
const client = new postmark.ServerClient(process.env.WAYPOST_API_KEY, options);
let serial = 0;

const address = () => `to${serial++}@postmark-npm.example.org`;
const message = (to, more = {}) => ({ From: SENDER, To: to, Subject: "Hello", HtmlBody: "<p>Hi</p>", TextBody: "Hi", ...more });

function accepted(what, answer, to) {
  const { MessageID, SubmittedAt, ...rest } = answer;
  tally.equal(what, { To: rest.To, ErrorCode: rest.ErrorCode, Message: rest.Message }, { To: to, ErrorCode: 0, Message: "OK" });
  tally.check(`${what}: id`, /^[0-9a-f-]{36}$/.test(MessageID), answer);
  tally.check(`${what}: time`, Math.abs(Date.parse(SubmittedAt) - Date.now()) < 60_000, answer);
  return MessageID;
}

async function refused(what, call, kind, code, statusCode) {
  try {
    tally.check(what, false, await call());
  } catch (error) {
    tally.equal(what, [error.name, error.code, error.statusCode], [kind, code, statusCode]);
    tally.check(`${what}: message`, error.message.length > 0, error);
    return error;
  }
}

async function single() {
  const [to, copy, hidden] = [address(), address(), address()];
  const file = Buffer.from("ABC").toString("base64");
  const attachments = [
    new postmark.Models.Attachment("a.csv", file, "text/csv"),
    new postmark.Models.Attachment("b.png", file, "image/png", "cid:logo"),
  ];
  const given = message(`"One, Two" <${to}>`, {
    HtmlBody: '<img src="cid:logo">', Cc: copy, Bcc: hidden, ReplyTo: "help@example.com", Tag: "orders", Metadata: { order: "7" },
    TrackOpens: false, TrackLinks: postmark.Models.LinkTrackingOptions.None, MessageStream: "outbound",
    Headers: [new postmark.Models.Header("X-Order", "7")], Attachments: attachments,
  });
  const id = accepted("send", await client.sendEmail(given), given.To);
  const got = await tally.mail(to);
  tally.equal("recipients", got.visibleRecipients, [to, copy]);
  tally.equal("bodies", [got.subject, got.text, got.html], ["Hello", "Hi", given.HtmlBody]);
  tally.equal("head", [got.from, got.replyTo, got.tags, got.headers?.["X-Order"]], [SENDER, "help@example.com", ["orders"], "7"]);
  tally.equal("files", got.attachments?.map((one) => [one.filename, one.contentId]), [["a.csv", null], ["b.png", "logo"]]);
  const details = await tally.waitFor("sent", async () => {
    const found = await client.getOutboundMessageDetails(id);
    return found.Status === "Sent" && found;
  });
  for (const [name, wanted] of Object.entries({
    MessageID: id, Tag: "orders", Subject: "Hello", From: SENDER, HtmlBody: given.HtmlBody, TextBody: "Hi", Sandboxed: false,
    To: [{ Email: to, Name: "One, Two" }], Cc: [{ Email: copy, Name: "" }], Bcc: [{ Email: hidden, Name: "" }],
    Recipients: [to, copy, hidden], Attachments: ["a.csv", "b.png"], Metadata: { order: "7" }, MessageStream: "outbound",
  })) tally.equal(`details: ${name}`, details?.[name], wanted);
  tally.check("details: time", Date.parse(details?.ReceivedAt) > 0, details);
  tally.check("details: events", Array.isArray(details?.MessageEvents), details);
}

async function batches() {
  const [one, two] = [address(), address()];
  const answers = await client.sendEmailBatch([message(one), message("nobody"), message(two)]);
  tally.equal("batch", answers.map((answer) => answer.ErrorCode), [0, 300, 0]);
  for (const to of [one, two]) await tally.mail(to);
  const id = await template({ subject: "Order {{number}}", htmlContent: "<p>Hi {{name}}!</p>" });
  const given = (to, name) => ({ From: SENDER, To: to, TemplateAlias: id, TemplateModel: { name, number: 7 } });
  const [three, four] = [address(), address()];
  const both = await client.sendEmailBatchWithTemplates([given(three, "Three"), { ...given(four, "Four"), TemplateAlias: "x" }]);
  tally.equal("batch with templates", both.map((answer) => answer.ErrorCode), [0, 1101]);
  const five = address();
  const templated = new postmark.TemplatedMessage(SENDER, id, { name: "Five", number: 5 }, five);
  accepted("template", await client.sendEmailWithTemplate(templated), five);
  for (const [to, subject, html] of [[three, "Order 7", "<p>Hi Three!</p>"], [five, "Order 5", "<p>Hi Five!</p>"]]) {
    const got = await tally.mail(to);
    tally.equal("rendered", [got.subject, got.html], [subject, html]);
  }
  const number = { From: SENDER, To: five, TemplateId: 1234, TemplateModel: {} };
  await refused("template id", () => client.sendEmailWithTemplate(number), "ApiInputError", 1101, 422);
}

async function inactive() {
  const [one, two] = [address(), address()];
  await waypost("POST", "/v1/suppressions", { email: one });
  const error = await refused("inactive", () => client.sendEmail(message(one)), "InactiveRecipientsError", 406, 422);
  tally.equal("inactive: recipients", error?.recipients, [one]);
  const answer = await client.sendEmail(message(`${one}, ${two}`));
  tally.equal("partly inactive", answer.ErrorCode, 0);
  tally.check("partly inactive: message", answer.Message.includes(`inactive addresses: ${one}. Inactive`), answer);
  await tally.mail(two);
}

async function refusals() {
  await refused("address", () => client.sendEmail(message("nobody")), "InvalidEmailRequestError", 300, 422);
  const stream = message(address(), { MessageStream: "broadcasts" });
  await refused("stream", () => client.sendEmail(stream), "ApiInputError", 1235, 422);
  const sender = message(address(), { From: "a@unverified.example" });
  await refused("sender", () => client.sendEmail(sender), "ApiInputError", 400, 422);
  const many = Array.from({ length: 501 }, () => message("a@example.org"));
  await refused("batch of 501", () => client.sendEmailBatch(many), "ApiInputError", 410, 422);
  const nowhere = "01a21f88-0902-7411-a0f3-8c583360bade";
  await refused("unknown message", () => client.getOutboundMessageDetails(nowhere), "ApiInputError", 701, 422);
  await refused("other path", () => client.getServer(), "PostmarkError", 300, 404);
  const bulk = { From: SENDER, Subject: "x", TextBody: "x", Messages: [{ To: "a@example.org" }] };
  await refused("bulk", () => client.sendBulkEmail(bulk), "PostmarkError", 300, 404);
  const wrong = new postmark.ServerClient("POSTMARK_API_TEST", options);
  await refused("wrong token", () => wrong.sendEmail(message(address())), "InvalidAPIKeyError", 10, 401);
  await new Promise((done) => {
    client.sendEmail(message("nobody"), (error, result) => {
      tally.equal("callback", [error?.code, result], [300, null]);
      done();
    });
  });
}

(async () => {
  for (const part of [single, batches, inactive, refusals]) await part();
  tally.close();
})();
