// SendGrid's client with Waypost's endpoint of SendGrid: what its documentation sends, and errors as the client reads them.
const sendgrid = require("@sendgrid/mail");
const { Tally, template, waypost } = require("./tally.js");

const SENDER = "sender@example.com";
const tally = new Tally("sendgrid-npm");
let serial = 0;

// The client warns of a key that does not begin with SG.
console.warn = () => {};
sendgrid.setApiKey(process.env.WAYPOST_API_KEY);
sendgrid.client.setDefaultRequest("baseUrl", `${process.env.WAYPOST_URL}/compat/sendgrid/`);

const address = () => `to${serial++}@sendgrid-npm.example.org`;
const mail = (to, more = {}) => ({ to, from: SENDER, subject: "Hello", text: "Hi", html: "<p>Hi</p>", ...more });

// Sends a mail that must be accepted; returns the id.
async function sent(what, given, statusCode = 202) {
  try {
    const [response, body] = await sendgrid.send(given);
    tally.equal(`${what}: status`, [response.statusCode, body], [statusCode, ""]);
    const id = response.headers["x-message-id"];
    tally.check(`${what}: id`, /^[0-9a-f-]{36}$/.test(id), response.headers);
    tally.check(`${what}: rate limit`, Number(response.headers["x-ratelimit-reset"]) > 1.7e9, response.headers);
    return id;
  } catch (error) {
    tally.check(what, false, error.response?.body ?? error);
    return undefined;
  }
}

async function refused(what, call, code, field) {
  try {
    await call();
    tally.check(what, false, "was accepted");
  } catch (error) {
    tally.equal(`${what}: code`, error.code, code);
    const first = error.response?.body?.errors?.[0] ?? {};
    tally.equal(`${what}: field`, first.field, field);
    tally.check(`${what}: message`, error.toString().includes(first.message), error.toString());
  }
}

async function addresses() {
  const [one, two, copy, hidden] = [address(), address(), address(), address()];
  await sent("several addresses", mail([{ email: one, name: "One, Two" }, two], {
    from: { email: SENDER, name: "Sender" }, cc: copy, bcc: [hidden], replyTo: { email: "help@example.com", name: "Help" },
  }));
  for (const to of [one, two, copy, hidden]) {
    const got = await tally.mail(to);
    tally.equal("recipients", got.visibleRecipients, [one, two, copy]);
    tally.equal("sender", got.from, `Sender <${SENDER}>`);
    tally.equal("reply to", got.replyTo, "Help <help@example.com>");
  }
  const [third, fourth] = [address(), address()];
  await sendgrid.sendMultiple(mail([third, fourth]));
  for (const to of [third, fourth]) tally.equal("sendMultiple", (await tally.mail(to)).visibleRecipients, [to]);
  const [fifth, sixth] = [address(), address()];
  const results = await sendgrid.send([mail(fifth), mail(sixth)]);
  tally.equal("an array", results.map(([response]) => response.statusCode), [202, 202]);
  for (const to of [fifth, sixth]) await tally.mail(to);
}

async function contents() {
  const to = address();
  const file = Buffer.from("ABC").toString("base64");
  await sent("kitchen sink", mail(to, {
    html: '<img src="cid:logo">', headers: { "X-Order": "7" }, categories: ["orders", "shop"], customArgs: { order: "7" },
    attachments: [
      { filename: "a.csv", type: "text/csv", content: file, disposition: "attachment" },
      { filename: "b.png", type: "image/png", content: file, disposition: "inline", content_id: "logo" },
    ],
    mailSettings: { bypassListManagement: { enable: false }, footer: { enable: false }, sandboxMode: { enable: false } },
    trackingSettings: {
      clickTracking: { enable: false, enableText: false }, openTracking: { enable: false }, subscriptionTracking: { enable: false },
      ganalytics: { enable: false },
    },
  }));
  const got = await tally.mail(to);
  tally.equal("bodies", [got.subject, got.text, got.html], ["Hello", "Hi", '<img src="cid:logo">']);
  tally.equal("header", got.headers?.["X-Order"], "7");
  tally.equal("categories", got.tags, ["orders", "shop"]);
  const files = got.attachments?.map((one) => [one.filename, one.contentType, one.contentId, one.bytes]);
  tally.equal("files", files, [["a.csv", "text/csv", null, 3], ["b.png", "image/png", "logo", 3]]);
  await sent("sandbox", mail(address(), { mailSettings: { sandboxMode: { enable: true } } }), 200);
  const later = address();
  const id = await sent("send at", mail(later, { sendAt: Math.floor(Date.now() / 1000) + 3600 }));
  const { status, scheduledAt } = await waypost("GET", `/v1/messages/${id}`);
  tally.check("scheduled", status === "QUEUED" && Date.parse(scheduledAt) > Date.now(), { status, scheduledAt });
}

async function personalizations() {
  const templateId = "d-" + await template({ subject: "Order {{number}}", htmlContent: "<p>Hi {{name}}!</p>" });
  const [one, two, three] = [address(), address(), address()];
  const id = await sent("dynamic template", {
    from: SENDER, templateId,
    personalizations: [
      { to: one, dynamicTemplateData: { name: "One", number: 1 } },
      { to: [{ email: two, name: "Two" }], dynamicTemplateData: { name: "Two", number: 2 }, customArgs: { order: "2" } },
    ],
  });
  for (const [to, name, number] of [[one, "One", 1], [two, "Two", 2]]) {
    const got = await tally.mail(to);
    tally.equal("rendered", [got.subject, got.html], [`Order ${number}`, `<p>Hi ${name}!</p>`]);
    tally.equal("the id of all", got.metadata?.waypost_message, id);
  }
  const { id: groupId } = await waypost("POST", "/v1/unsubscribe-groups", { name: "Judge" });
  await refused("group", () => sendgrid.send(mail(three, { asm: { groupId: 7 } })), 400, "asm.group_id");
  tally.check("a group of Waypost", groupId);
  const [four, five] = [address(), address()];
  await sent("substitutions", {
    from: SENDER, subject: "Order {{number}}", html: "<p>%name%</p>", substitutionWrappers: ["%", "%"],
    personalizations: [
      { to: four, substitutions: { name: "Four" } },
      { to: five, substitutions: { name: "Five" }, subject: "Own", headers: { "X-Own": "5" } },
    ],
  });
  tally.equal("substituted", (await tally.mail(four)).html, "<p>Four</p>");
  const own = await tally.mail(five);
  tally.equal("own", [own.subject, own.html, own.headers?.["X-Own"]], ["Own", "<p>Five</p>", "5"]);
}

async function refusals() {
  await refused("address", () => sendgrid.send(mail("nobody")), 400, "personalizations.0.to.0.email");
  await refused("sender", () => sendgrid.send(mail(address(), { from: "a@unverified.example" })), 403, "from");
  await refused("batch id", () => sendgrid.send(mail(address(), { batchId: "x" })), 400, "batch_id");
  await refused("pool", () => sendgrid.send(mail(address(), { ipPoolName: "pool" })), 400, "ip_pool_name");
  await refused("template", () => sendgrid.send(mail(address(), { templateId: "d-0123" })), 400, "template_id");
  await refused("other path", () => sendgrid.client.request({ method: "GET", url: "/v3/scopes" }), 404, null);
  await new Promise((done) => {
    sendgrid.send(mail("nobody"), (error, result) => {
      tally.equal("callback", [error?.code, result], [400, null]);
      done();
    });
  });
  sendgrid.client.auth = "Bearer SG.wrong";
  await refused("wrong key", () => sendgrid.send(mail(address())), 401, null);
}

(async () => {
  for (const part of [addresses, contents, personalizations, refusals]) await part();
  tally.close();
})();
