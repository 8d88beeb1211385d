// The clients of SendGrid, Postmark and Mailgun with the simulator: it must accept their requests with the intended
// meaning, and they must parse its responses. Then each message from Waypost is sent again by the vendor's client: the
// simulator must show both alike. And Waypost's requests must fit the types that the clients declare.
const http = require("http");
const https = require("https");
const { once } = require("events");
const { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } = require("fs");
const { join } = require("path");
const { isDeepStrictEqual, inspect } = require("util");
const addressparser = require("nodemailer/lib/addressparser");
const FormData = require("form-data");
const Mailgun = require("mailgun.js").default || require("mailgun.js");
const postmark = require("postmark");
const SnsValidator = require("sns-validator");
const ts = require("typescript");
const { Client } = require("@sendgrid/client");
const { EventWebhook, EventWebhookHeader } = require("@sendgrid/eventwebhook");
const { MailService } = require("@sendgrid/mail");
const libmime = require("libmime");

const SIMULATOR = process.env.SIMULATOR_URL;
const SCRATCH = process.env.JUDGE_SCRATCH;
const CLIENT_TIMEOUT_MS = 700;
const EVENT_SECONDS_MAX = 20;
const TO = "ann@judge.example.org";
const FROM = "sender@example.com";
let passed = 0;
let failed = 0;

function check(what, isRight, detail = "") {
  if (isRight) passed++;
  else {
    failed++;
    console.log(`FAILED ${what}: ${typeof detail === "string" ? detail : inspect(detail, { depth: 6, breakLength: Infinity })}`.slice(0, 900));
  }
}

const equal = (what, got, wanted) => check(what, isDeepStrictEqual(got, wanted), `${inspect(got)} is not ${inspect(wanted)}`);
const json = (method, path, body) => fetch(SIMULATOR + path, { method, body: JSON.stringify(body) }).then((answer) => answer.json());
const captured = async (provider, to) =>
  (await json("GET", `/captured?provider=${provider}&to=${encodeURIComponent(to)}`)).messages;
const quoted = ([name, address]) => (name ? `"${name.replace(/[\\"]/g, "\\$&")}" <${address}>` : address);
// For a header that is put into the message unchanged.
const encoded = ([name, address]) => (name ? `=?utf-8?B?${Buffer.from(name).toString("base64")}?= <${address}>` : address);
const person = ([name, email]) => (name ? { name, email } : { email });

// ---------------------------------------------------------------------------------------------------------------------
// The vendors' clients. A message is {from, to, replyTo, subject, text, html, headers, tags, ids}.

const clients = {
  SENDGRID: {
    send(mail, key = "SG.client") {
      const client = new Client();
      client.setApiKey(key);
      client.setDefaultRequest("baseUrl", SIMULATOR);
      client.setDefaultRequest("timeout", CLIENT_TIMEOUT_MS);
      const service = new MailService();
      service.setClient(client);
      return service.send({
        from: person(mail.from), to: [person(mail.to)], replyTo: mail.replyTo && person(mail.replyTo), subject: mail.subject,
        text: mail.text, html: mail.html, headers: mail.headers, categories: mail.tags, customArgs: mail.ids,
      });
    },
    // [status or code, the first error's message]
    read: (error) => [error.code, error.response?.body?.errors?.[0]?.message],
    faults: {
      throttle: [429, /too many requests/], error: [500, /./], limit: [403, /exceeded your messaging limits/],
      pause: [401, /Maximum credits exceeded/], suspended: [401, /not authorized to send mail/],
    },
    lost: { reset: ["ECONNRESET"], timeout: ["ECONNABORTED"] },
    keys: {
      "SG.invalid": [401, /authorization grant is invalid/], "SG.noscope": [403, /access forbidden/],
      "SG.nocredit": [401, /Maximum credits exceeded/],
    },
    unverified: [403, /verified Sender Identity/], refused: [400, /valid address/],
  },

  POSTMARK: {
    send(mail, key = "postmark-client") {
      const client = new postmark.ServerClient(key, {
        useHttps: false, requestHost: SIMULATOR.replace("http://", ""), timeout: CLIENT_TIMEOUT_MS / 1000,
      });
      return client.sendEmail({
        From: quoted(mail.from), To: quoted(mail.to), ReplyTo: mail.replyTo && quoted(mail.replyTo), Subject: mail.subject,
        TextBody: mail.text, HtmlBody: mail.html, Tag: mail.tags?.[0], Metadata: mail.ids,
        Headers: Object.entries(mail.headers ?? {}).map(([Name, Value]) => ({ Name, Value })),
      });
    },
    // [class, status, ErrorCode, the message]
    read: (error) => [error.name, error.statusCode, error.code, error.message],
    faults: {
      throttle: ["RateLimitExceededError", 429, 429], error: ["InternalServerError", 500, 100],
      limit: ["ApiInputError", 422, 405], pause: ["ApiInputError", 422, 405], suspended: ["ApiInputError", 422, 413],
    },
    lost: { reset: ["PostmarkError", 0, 0, /fetch failed/], timeout: ["PostmarkError", 0, 0, /timeout/] },
    keys: {
      "postmark-invalid": ["InvalidAPIKeyError", 401, 10], "postmark-nocredit": ["ApiInputError", 422, 405],
    },
    unverified: ["ApiInputError", 422, 400], refused: ["InactiveRecipientsError", 422, 406],
  },

  MAILGUN: {
    send(mail, key = "key-client", domain = mail.from[1].split("@")[1]) {
      const client = new Mailgun(FormData).client({ username: "api", key, url: SIMULATOR, timeout: CLIENT_TIMEOUT_MS });
      const prefixed = (prefix, fields) => Object.fromEntries(Object.entries(fields ?? {}).map(([name, value]) => [prefix + name, value]));
      return client.messages.create(domain, {
        from: quoted(mail.from), to: [quoted(mail.to)], subject: mail.subject, ...(mail.text && { text: mail.text }),
        ...(mail.html && { html: mail.html }), ...(mail.replyTo && { "h:Reply-To": encoded(mail.replyTo) }),
        ...prefixed("h:", mail.headers), ...prefixed("v:", mail.ids), ...(mail.tags && { "o:tag": mail.tags }),
      });
    },
    // [status, the message]
    read: (error) => [error.status, error.details],
    faults: {
      throttle: [429, /limit exceeded, try again after \d+ seconds/], error: [500, /./],
      limit: [420, /recipient limit exceeded, try again after .*UTC/], pause: [403, /message limit you set/],
      suspended: [403, /disabled/],
    },
    lost: { reset: [400, /ECONNRESET/], timeout: [400, /timeout of/] },
    keys: { "key-invalid": [401, /Forbidden/], "key-nocredit": [420, /limit exceeded/] },
    unverified: [400, /unverified/], refused: [400, /not a valid address/],
  },
};

const MAIL = {
  from: ["Grüße, Shop", FROM], to: ["Doe, Ann 🎉", TO], replyTo: ["Help (us)", "help@judge.example.org"], subject: "Grüße 日本語",
  text: "Grüße\n", html: "<p>Grüße</p>", tags: ["judge"], ids: { order: "1042" },
  headers: { "List-Unsubscribe": "<https://example.com/u/1>", "List-Unsubscribe-Post": "List-Unsubscribe=One-Click" },
};

/** The simulator's view of a captured message, with parsed mailboxes. */
function shown(received) {
  const mailbox = (text) => text && addressparser(text).map(({ name, address }) => [libmime.decodeWords(name), address]);
  // SendGrid receives names and addresses separately, and the simulator shows them as received.
  const apart = (text) => text && [/^(?:(.*) )?<?([^<> ]*)>?$/.exec(text).slice(1).map((part) => part ?? "")];
  const read = received.provider === "SENDGRID" ? apart : mailbox;
  const { sequence, providerMessageId, acceptedAt, ...rest } = received;
  const headers = Object.fromEntries(Object.entries(received.headers).filter(([name]) => name !== "Reply-To"));
  return { ...rest, headers, from: read(received.from), replyTo: read(received.replyTo) };
}

// ---------------------------------------------------------------------------------------------------------------------

async function refusal(what, provider, promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  check(`${provider} ${what}`, false, "the client saw no error");
  return {};
}

function understood(what, provider, error, wanted) {
  const got = clients[provider].read(error);
  const fits = wanted.every((one, at) => (one instanceof RegExp ? one.test(got[at] ?? "") : one === got[at]));
  check(`${provider} ${what}`, fits, `${inspect(got)} is not ${inspect(wanted)}: ${error.stack}`);
}

async function judgeAnswers(provider) {
  const client = clients[provider];
  const before = (await captured(provider, TO)).length;
  await client.send(MAIL);
  const messages = await captured(provider, TO);
  equal(`${provider}: one message`, messages.length, before + 1);
  const received = shown(messages.at(-1));
  equal(`${provider}: sender`, received.from, [MAIL.from]);
  equal(`${provider}: reply-to`, received.replyTo, [MAIL.replyTo]);
  const { subject, text, html, headers, tags, ids } = MAIL;
  equal(`${provider}: content`, [received.subject, received.text, received.html, received.headers, received.tags, received.metadata], [subject, text, html, headers, tags, ids]);

  for (const [kind, wanted] of Object.entries({ ...client.faults, ...client.lost })) {
    understood(`fault ${kind}`, provider, await underFault(provider, kind), wanted);
  }
  const gateway = await underFault(provider, "gateway");
  check(`${provider} fault gateway`, [502, 504].includes(gateway.statusCode ?? gateway.status ?? gateway.code), gateway);
  // Three sends whose response is lost, but not the message.
  equal(`${provider}: messages after faults`, (await captured(provider, TO)).length, before + 4);
  for (const [key, wanted] of Object.entries(client.keys)) {
    understood(`key ${key}`, provider, await refusal(key, provider, client.send(MAIL, key)), wanted);
  }
  const unverified = client.send({ ...MAIL, from: ["Shop", "shop@unverified.example.net"] });
  understood("unverified sender", provider, await refusal("unverified sender", provider, unverified), client.unverified);
  const refused = await refusal("refused recipient", provider, client.send({ ...MAIL, to: ["Ann", "refuse@judge.example.org"] }));
  understood("refused recipient", provider, refused, client.refused);
  if (provider === "POSTMARK") equal("POSTMARK names who is inactive", refused.recipients, ["refuse@judge.example.org"]);
}

async function underFault(provider, kind) {
  await json("POST", "/faults", { provider, kind });
  const error = await refusal(`fault ${kind}`, provider, clients[provider].send(MAIL));
  await json("POST", "/faults", { provider, kind: "none" });
  return error;
}

// ---------------------------------------------------------------------------------------------------------------------

/** A server that takes every post: its URL, its posts, `until` waits for a condition on them. */
async function receiver() {
  const posts = [];
  const server = http.createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    posts.push({ headers: request.headers, body: Buffer.concat(chunks) });
    response.end();
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  server.unref();
  const until = async (isDone) => {
    for (const end = Date.now() + EVENT_SECONDS_MAX * 1000; !isDone() && Date.now() < end; ) {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    check("events arrive", isDone(), posts.map(({ body }) => body.toString()));
  };
  return { url: `http://127.0.0.1:${server.address().port}/`, posts, until };
}

/** What SendGrid's own code says of the signature of an event post. */
async function judgeSendgridEvents() {
  const { url, posts, until } = await receiver();
  const client = new Client();
  client.setApiKey("SG.events");
  client.setDefaultRequest("baseUrl", SIMULATOR);
  const settings = "/v3/user/webhooks/event/settings";
  const body = { enabled: true, url, delivered: true, processed: true, open: true, click: true };
  const [, { id }] = await client.request({ method: "POST", url: settings, body });
  const [, { public_key }] = await client.request({ method: "PATCH", url: `${settings}/signed/${id}`, body: { enabled: true } });
  await clients.SENDGRID.send({ ...MAIL, to: ["Ünïcode", "click+events@judge.example.org"] }, "SG.events");
  const events = () => posts.flatMap(({ body }) => JSON.parse(body));
  await until(() => events().length === 4);
  equal("SENDGRID: events", events().map(({ event }) => event).sort(), ["click", "delivered", "open", "processed"]);
  equal("SENDGRID: arguments come back with events", events().map(({ order }) => order), ["1042", "1042", "1042", "1042"]);
  const webhook = new EventWebhook();
  const key = webhook.convertPublicKeyToECDSA(public_key);
  for (const { headers, body } of posts) {
    const signature = headers[EventWebhookHeader.SIGNATURE().toLowerCase()];
    const timestamp = headers[EventWebhookHeader.TIMESTAMP().toLowerCase()];
    check("SENDGRID: signature of events", webhook.verifySignature(key, body, signature, timestamp), headers);
    const changed = Buffer.concat([body, Buffer.from(" ")]);
    check("SENDGRID: signature of changed events", !webhook.verifySignature(key, changed, signature, timestamp), headers);
  }
}

/** What Amazon's own code says of the signatures of SNS, which carries the events of SES. */
async function judgeSns() {
  // The validator fetches the certificate from Amazon's host; the simulator has it under the same path.
  https.get = (url, then) => http.get(SIMULATOR + new URL(url).pathname, then);
  const validator = new SnsValidator();
  const verdict = (message) => new Promise((resolve) => validator.validate(message, (error) => resolve(error?.message ?? "valid")));
  for (const signatureVersion of ["1", "2"]) {
    const { url, posts, until } = await receiver();
    await json("POST", "/sns/subscriptions", { topicArn: `arn:aws:sns:eu-central-1:123456789012:judge${signatureVersion}`, url, signatureVersion });
    await until(() => posts.length === 1);
    const { pathname, search } = new URL(JSON.parse(posts[0].body).SubscribeURL);
    await fetch(SIMULATOR + pathname + search);
    await until(() => posts.length === 2);
    for (const { body } of posts) {
      const message = JSON.parse(body);
      const what = `SNS ${message.Type} of version ${signatureVersion}`;
      equal(what, [message.SignatureVersion, await verdict(message)], [signatureVersion, "valid"]);
      equal(`${what}, changed`, await verdict({ ...message, Message: "x" }), "The message signature is invalid.");
    }
  }
}

// ---------------------------------------------------------------------------------------------------------------------

/** Sends each of Waypost's messages again with the vendor's client: the simulator must show the same. */
async function judgeCopies(provider, sent) {
  for (const { given, received } of sent.filter((one) => one.provider === provider)) {
    const { "Reply-To": _, ...headers } = received.headers;
    const mail = {
      ...given, to: given.to[0], headers, ids: received.metadata, tags: received.tags, text: received.text ?? undefined, html: received.html ?? undefined,
    };
    await clients[provider].send(mail, undefined, "example.com");
    const theirs = shown((await captured(provider, received.to)).at(-1));
    const ours = shown(received);
    for (const field of new Set([...Object.keys(theirs), ...Object.keys(ours)])) {
      equal(`${provider}: ${field} to ${inspect(given.to[0])}`, ours[field], theirs[field]);
    }
  }
}

/** Waypost's requests as the clients' published types have them, by the TypeScript compiler. */
function judgeTypes(requests) {
  const folder = join(SCRATCH, "types");
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  symlinkSync(join(process.env.JUDGE_HOME, "node_modules"), join(folder, "node_modules"));
  const types = {
    SENDGRID: 'import type { MailJSON as Type } from "@sendgrid/helpers/classes/mail";',
    POSTMARK: 'import type { Message as Type } from "postmark/dist/client/models";',
    // Their types allow any field: only the named ones are left, and those with the prefixes o:, h: and v:.
    MAILGUN: `import type { MailgunMessageData } from "./node_modules/mailgun.js/Types/definitions";
type Named<T> = { [K in keyof T as string extends K ? never : K]: T[K] };
type Type = Named<MailgunMessageData> & { [name: \`h:\${string}\` | \`v:\${string}\`]: string } & Newer;
// In Mailgun's API reference, and not in the client's type.
type Newer = { "o:suppress-headers"?: string };`,
  };
  const wrong = {
    SENDGRID: [{ ...requests.SENDGRID[0], reply: 1 }, { ...requests.SENDGRID[0], personalizations: [{ to: [{ mail: "x" }] }] }],
    POSTMARK: [{ ...requests.POSTMARK[0], Reply: "x" }, { ...requests.POSTMARK[0], TrackLinks: "Never" }],
    MAILGUN: [{ ...requests.MAILGUN[0], reply: "x" }, { ...requests.MAILGUN[0], "o:tracking": "never" }],
  };
  const files = Object.entries(types).map(([provider, head]) => {
    const file = join(folder, `${provider}.ts`);
    const flat = (list) => list.flat().map((body) => JSON.stringify(body));
    const known = flat(requests[provider]).map((text, at) => `export const right${at}: Type = ${text};`);
    const unknown = flat(wrong[provider]).map((text, at) => `// @ts-expect-error\nexport const wrong${at}: Type = ${text};`);
    // Postmark's link options are an enum, to which a text cannot be assigned.
    const enums = (text) => (provider === "POSTMARK" ? text.replace(/"TrackLinks":"None"/g, '"TrackLinks":Links.None') : text);
    const links = provider === "POSTMARK" ? '\nimport { LinkTrackingOptions as Links } from "postmark/dist/client/models";' : "";
    writeFileSync(file, [head + links, ...known, ...unknown].map(enums).join("\n"));
    passed += known.length + unknown.length;
    return file;
  });
  const options = { strict: true, noEmit: true, skipLibCheck: true, esModuleInterop: true, moduleResolution: ts.ModuleResolutionKind.Node10,
    module: ts.ModuleKind.CommonJS, target: ts.ScriptTarget.ES2022, types: ["node"], typeRoots: [join(folder, "node_modules/@types")] };
  for (const { messageText, file, start } of ts.getPreEmitDiagnostics(ts.createProgram(files, options))) {
    const line = file && file.text.slice(start).split("\n")[0];
    check("types", false, `${ts.flattenDiagnosticMessageText(messageText, " ")} (${file?.fileName}: ${line})`);
  }
}

async function main() {
  const read = (name) => JSON.parse(readFileSync(join(SCRATCH, name)));
  const sent = read("sent.json");
  for (const provider of Object.keys(clients)) {
    await judgeAnswers(provider);
    await judgeCopies(provider, sent);
  }
  await judgeSendgridEvents();
  await judgeSns();
  judgeTypes(read("requests.json"));
  writeFileSync(join(SCRATCH, "tally-clients"), `${passed} ${failed}\n`);
}

main();
