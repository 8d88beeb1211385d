// The cases of sdks/conformance/cases.md, live. Needs WAYPOST_URL, WAYPOST_API_KEY, SIMULATOR_URL and
// CONFORMANCE_PROXY_URL; scripts/test-sdks.sh starts the proxy.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { before, test } from "node:test";
import * as sdk from "waypost";

const { Waypost, webhooks } = sdk;
const proxy = need("CONFORMANCE_PROXY_URL");
const simulator = need("SIMULATOR_URL");
const run = Date.now().toString(36);
const waypost = new Waypost();
let sessions = 0;

function need(name) {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: run scripts/test-sdks.sh`);
  return value;
}

/** A client by the proxy, with rules; `seen` gives what the proxy recorded. */
async function proxied(rules = [], options = {}) {
  const name = `ts-${run}-${++sessions}`;
  await fetch(`${proxy}/control/${name}`, { method: "PUT", body: JSON.stringify({ rules }) });
  const seen = async () => (await fetch(`${proxy}/control/${name}`)).json();
  return { client: new Waypost(undefined, { baseUrl: `${proxy}/s/${name}/`, ...options }), seen, name };
}

const mail = (more = {}) => ({ from: "Shop <shop@example.com>", to: `ada-${run}@example.org`, subject: "Hello", text: "Hello, Ada", ...more });
const answer = (status, body, headers = {}) => ({ answer: { status, headers, body } });
const refusal = (status, code, details) => answer(status, { error: { code, message: "No.", details } }, { "X-Request-Id": "request-1" });

async function failure(promise) {
  return Promise.resolve(promise).then(() => assert.fail("it succeeded"), (error) => error);
}

async function until(condition, what) {
  for (let attempt = 0; attempt < 150; attempt++) {
    const value = await condition();
    if (value) return value;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.fail(`${what} did not happen within 15 seconds`);
}

/** How many mails of this run the simulator got for an address. */
async function capturedTo(address) {
  const response = await fetch(`${simulator}/captured?to=${encodeURIComponent(address)}`);
  return (await response.json()).messages.length;
}

async function countWithTag(tag) {
  let count = 0;
  for await (const _ of waypost.messages.list({ tag })) count++;
  return count;
}

before(async () => {
  await waypost.settings.update({ unverifiedDomains: "accept" });
  const accounts = await waypost.providers.list();
  if (accounts.data.length === 0) {
    await waypost.providers.create({ providerType: "SENDGRID", displayName: "Simulated", credentials: { apiKey: "SG.simulator" } });
  }
});

test("C01 a missing key or address fails at construction", () => {
  const { WAYPOST_URL, WAYPOST_API_KEY } = process.env;
  try {
    delete process.env.WAYPOST_API_KEY;
    assert.throws(() => new Waypost(), /WAYPOST_API_KEY/);
    delete process.env.WAYPOST_URL;
    assert.throws(() => new Waypost("key"), /WAYPOST_URL/);
    assert.throws(() => new Waypost("key", { baseUrl: "mail.example.com" }), /https:/);
  } finally {
    Object.assign(process.env, { WAYPOST_URL, WAYPOST_API_KEY });
  }
});

test("C02 the environment is enough", async () => {
  assert.ok((await new Waypost().settings.get()).unverifiedDomains);
});

test("C03 a key with a line break is refused and not shown", () => {
  assert.throws(() => new Waypost("wp_live_secret\n"), (error) => !error.message.includes("secret") && /API key/.test(error.message));
});

test("C04 a message is sent and delivered", async () => {
  const to = `c04-${run}@example.org`;
  const { messageId, status } = await waypost.messages.send(mail({ to }));
  assert.equal(status, "queued");
  const message = await until(async () => {
    const found = await waypost.messages.get(messageId);
    return found.status === "DELIVERED" && found;
  }, "the delivery");
  assert.equal(message.subject, "Hello");
  assert.deepEqual((await waypost.messages.recipients.list(messageId)).data.map((each) => each.status), ["DELIVERED"]);
  assert.equal(await capturedTo(to), 1);
});

test("C05 a batch has a result for each message", async () => {
  const { results } = await waypost.messages.sendBatch({ messages: [mail(), mail({ to: "nobody" }), mail()] });
  assert.equal(results.length, 3);
  assert.ok(results[0].messageId && results[2].messageId);
  assert.match(results[1].error, /email address/);
});

test("C06 a scheduled message is read, moved and cancelled", async () => {
  const tomorrow = new Date(Date.now() + 86_400_000);
  const { messageId } = await waypost.messages.send(mail({ scheduledAt: tomorrow }));
  assert.equal((await waypost.messages.get(messageId)).scheduledAt, tomorrow.toISOString());
  const later = new Date(Date.now() + 2 * 86_400_000);
  assert.equal((await waypost.messages.update(messageId, { scheduledAt: later })).scheduledAt, later.toISOString());
  assert.equal((await waypost.messages.cancel(messageId)).cancelledCount, 1);
  const error = await failure(waypost.messages.update(messageId, { scheduledAt: null }));
  assert.ok(error instanceof sdk.ConflictError && error.reason, error.message);
});

test("C07 sub-resources", async () => {
  const template = await waypost.templates.create({ name: `Receipt ${run}` });
  const version = await waypost.templates.versions.create(template.id, {
    subject: "Hello {{name}}",
    htmlContent: "<p>{{name}}</p>",
    variablesSchema: { type: "object" },
  });
  assert.equal((await waypost.templates.versions.get(template.id, version.id)).id, version.id);
  assert.equal((await waypost.templates.versions.list(template.id)).data.length, 1);
  assert.equal((await waypost.templates.preview(template.id, { variables: { name: "Ada" } })).subject, "Hello Ada");
  assert.equal((await waypost.templates.update(template.id, { name: `Renamed ${run}` })).name, `Renamed ${run}`);
  await waypost.templates.delete(template.id);
  assert.ok((await failure(waypost.templates.get(template.id))) instanceof sdk.NotFoundError);
});

test("C08 a file comes as it was sent", async () => {
  const content = Buffer.from([0, 255, 10, 13, 128]);
  const attachments = [{ filename: "data.bin", content: content.toString("base64") }];
  const { messageId } = await waypost.messages.send(mail({ attachments }));
  const listed = await waypost.messages.attachments.list(messageId);
  assert.equal(listed.data[0].size, content.length);
  const response = await waypost.messages.attachments.download(messageId, "0");
  assert.deepEqual(Buffer.from(await response.arrayBuffer()), content);
});

test("C09 an id that is none is refused before anything is sent", async () => {
  const { client, seen } = await proxied();
  for (const id of ["", "..", "."]) await assert.rejects(client.messages.get(id), TypeError);
  assert.equal((await seen()).requests.length, 0);
});

for (const [id, how] of [["C10", "lose"], ["C11", "cut"]]) {
  test(`${id} a send whose answer is lost (${how}) is done once`, async () => {
    const tag = `${id}-${run}`;
    const { client, seen } = await proxied([{ path: "/v1/send", [how]: true }]);
    const to = `${id}-${run}@example.org`.toLowerCase();
    const { messageId } = await client.messages.send(mail({ tags: [tag], to }));
    const { requests } = await seen();
    assert.equal(requests.length, 2);
    assert.ok(requests[0].idempotencyKey);
    assert.equal(requests[0].idempotencyKey, requests[1].idempotencyKey);
    assert.equal(await countWithTag(tag), 1);
    await until(async () => (await waypost.messages.get(messageId)).status === "DELIVERED", "the delivery");
    assert.equal(await capturedTo(to), 1);
  });
}

test("C12 two sends have two keys", async () => {
  const { client, seen } = await proxied();
  const [one, two] = [await client.messages.send(mail()), await client.messages.send(mail())];
  assert.notEqual(one.messageId, two.messageId);
  const keys = (await seen()).requests.map((request) => request.idempotencyKey);
  assert.equal(new Set(keys).size, 2);
});

test("C13 one key of the caller's is one message", async () => {
  const idempotencyKey = `order-${run}`;
  const one = await waypost.messages.send(mail(), { idempotencyKey });
  const two = await waypost.messages.send(mail(), { idempotencyKey });
  assert.equal(one.messageId, two.messageId);
  const error = await failure(waypost.messages.send(mail({ subject: "Another" }), { idempotencyKey }));
  assert.ok(error instanceof sdk.ConflictError);
  assert.equal(error.reason, "IDEMPOTENCY_KEY_REUSED");
});

test("C20 a wrong request names its mistakes", async () => {
  const error = await failure(waypost.messages.send(mail({ to: ["ada@example.org", "nobody"] })));
  assert.ok(error instanceof sdk.ValidationError && error instanceof sdk.WaypostError && error instanceof Error);
  assert.equal(error.status, 400);
  assert.equal(error.code, "VALIDATION_ERROR");
  assert.equal(error.name, "ValidationError");
  assert.equal(error.issues[0].path, "to.1");
  assert.ok(error.requestId);
  assert.ok(error.rateLimit.limit > 0);
});

test("C21 a wrong key", async () => {
  const error = await failure(new Waypost("wp_live_wrong").settings.get());
  assert.ok(error instanceof sdk.AuthenticationError);
  assert.equal(error.status, 401);
});

test("C22 an unknown id", async () => {
  const error = await failure(waypost.messages.get("01a1fbfa-b12e-763c-a29e-ce02006ba540"));
  assert.ok(error instanceof sdk.NotFoundError);
  assert.equal(error.status, 404);
});

test("C23 each code has a class", async () => {
  const document = JSON.parse(readFileSync(new URL("../../../openapi/waypost.v1.json", import.meta.url), "utf8"));
  const codes = document.components.schemas.ErrorCode.enum;
  assert.ok(codes.length >= 12);
  for (const code of codes) {
    const { client } = await proxied([refusal(422, code, { reason: "SOME_REASON" })]);
    const error = await failure(client.settings.get());
    const words = code.toLowerCase().split("_").filter((word) => word !== "error");
    const name = [...words, "error"].map((word) => word[0].toUpperCase() + word.slice(1)).join("");
    assert.equal(error.constructor, sdk[name], code);
    assert.notEqual(error.constructor, sdk.WaypostError);
    assert.equal(error.name, name);
    assert.equal(error.code, code);
    assert.equal(error.message, "No.");
    assert.equal(error.reason, "SOME_REASON");
    assert.equal(error.requestId, "request-1");
  }
});

test("C24 an unknown code keeps its text", async () => {
  for (const code of ["CODE_OF_TOMORROW", "constructor"]) {
    const { client } = await proxied([refusal(418, code, { reason: "NEW" })]);
    const error = await failure(client.settings.get());
    assert.equal(error.constructor, sdk.WaypostError);
    assert.deepEqual([error.code, error.reason, error.status], [code, "NEW", 418]);
  }
});

test("C25 an answer that is not Waypost's", async () => {
  for (const status of [502, 200]) {
    const { client } = await proxied([{ ...answer(status, "<h1>Hello</h1>"), times: 0 }], { maxRetries: 0 });
    const error = await failure(client.settings.get());
    assert.equal(error.constructor, sdk.WaypostError);
    assert.deepEqual([error.code, error.status], ["UNEXPECTED_ANSWER", status]);
    assert.match(error.message, /not one of Waypost's.*baseUrl/);
  }
});

test("C26 a redirect is not followed", async () => {
  const { client, seen } = await proxied([answer(301, "", { Location: "https://mail.example.com/v1/send" })]);
  const error = await failure(client.messages.send(mail()));
  assert.equal(error.status, 301);
  assert.match(error.message, /https:\/\/mail\.example\.com/);
  assert.equal((await seen()).requests.length, 1);
});

test("C27 nothing listens", async () => {
  const error = await failure(new Waypost("key", { baseUrl: "http://127.0.0.1:9", maxRetries: 0 }).settings.get());
  assert.ok(error instanceof sdk.ConnectionError && error instanceof sdk.WaypostError);
  assert.equal(error.status, undefined);
  assert.match(error.message, /127\.0\.0\.1:9/);
});

test("C30 Retry-After is waited for", async () => {
  const limited = answer(429, { error: { code: "RATE_LIMIT_EXCEEDED", message: "Slow down." } }, { "Retry-After": "1" });
  const { client, seen } = await proxied([limited]);
  await client.messages.send(mail());
  const { requests } = await seen();
  assert.equal(requests.length, 2);
  assert.ok(requests[1].at - requests[0].at >= 1, "it waited too short");
  assert.equal(requests[0].idempotencyKey, requests[1].idempotencyKey);
});

test("C31 a service that fails twice", async () => {
  const { client, seen } = await proxied([{ ...refusal(503, "SERVICE_UNAVAILABLE"), times: 2 }]);
  assert.ok((await client.messages.send(mail())).messageId);
  assert.equal((await seen()).requests.length, 3);
});

test("C32 a service that fails always", async () => {
  for (const [options, expected] of [[{}, 3], [{ maxRetries: 0 }, 1]]) {
    const { client, seen } = await proxied([{ ...refusal(500, "INTERNAL_ERROR"), times: 0 }]);
    assert.ok((await failure(client.settings.get(options))) instanceof sdk.InternalError);
    assert.equal((await seen()).requests.length, expected);
  }
});

test("C33 a twin that still runs", async () => {
  const running = await proxied([refusal(409, "CONFLICT", { reason: "IDEMPOTENCY_IN_PROGRESS" })]);
  assert.ok((await running.client.messages.send(mail())).messageId);
  const other = await proxied([refusal(409, "CONFLICT", { reason: "TEST_KEY" })]);
  assert.ok((await failure(other.client.messages.send(mail()))) instanceof sdk.ConflictError);
  assert.equal((await other.seen()).requests.length, 1);
});

test("C34 a refusal is not repeated", async () => {
  for (const status of [400, 401, 403, 404, 413, 422]) {
    const { client, seen } = await proxied([refusal(status, "VALIDATION_ERROR")]);
    assert.equal((await failure(client.messages.send(mail()))).status, status);
    assert.equal((await seen()).requests.length, 1);
  }
});

test("C35 after a lost answer only what is safe is repeated", async () => {
  const template = await waypost.templates.create({ name: `Lost ${run}` });
  const post = await proxied([{ drop: true }]);
  assert.ok((await failure(post.client.messages.retry(template.id))) instanceof sdk.ConnectionError);
  assert.equal((await post.seen()).requests.length, 1);
  const preview = await proxied([{ drop: true }]);
  assert.ok((await failure(preview.client.templates.preview(template.id, {}))) instanceof sdk.ValidationError); // there is no version
  assert.equal((await preview.seen()).requests.length, 2);
  const safe = await proxied(["GET", "PATCH", "DELETE"].map((method) => ({ method, drop: true })));
  await safe.client.templates.get(template.id);
  await safe.client.templates.update(template.id, { name: `Lost again ${run}` });
  await safe.client.templates.delete(template.id);
  assert.equal((await safe.seen()).requests.length, 6);
});

test("C36 a long Retry-After is left to the caller", async () => {
  const { client } = await proxied([answer(429, { error: { code: "RATE_LIMIT_EXCEEDED", message: "x" } }, { "Retry-After": "3600" })]);
  const error = await failure(client.settings.get());
  assert.ok(error instanceof sdk.RateLimitExceededError);
  assert.equal(error.retryAfter, 3600);
});

test("C40 paging while rows are added", async () => {
  const tag = `paging-${run}`;
  const add = async (count) => {
    const { results } = await waypost.messages.sendBatch({ messages: Array.from({ length: count }, () => mail({ tags: [tag] })) });
    return results.map((result) => result.messageId);
  };
  const first = await add(25);
  const seen = [];
  for await (const message of waypost.messages.list({ tag, limit: 5 })) {
    if (seen.length % 5 === 0) await add(3);
    seen.push(message.id);
  }
  assert.equal(new Set(seen).size, seen.length, "a row came twice");
  assert.deepEqual(first.filter((id) => !seen.includes(id)), [], "rows are missing");
});

test("C41 pages one by one", async () => {
  const tag = `pages-${run}`;
  await waypost.messages.sendBatch({ messages: [mail({ tags: [tag] }), mail({ tags: [tag] }), mail({ tags: [tag] })] });
  const page = await waypost.messages.list({ tag, limit: 2, page: 1 });
  assert.equal(page.data.length, 2);
  assert.equal(page.pagination.total, 3);
  const next = await page.next();
  assert.equal(next.data.length, 1);
  assert.equal(await next.next(), undefined);
});

test("C42 a short list is a list like the others", async () => {
  const page = await waypost.providers.list();
  const all = [];
  for await (const account of waypost.providers.list()) all.push(account);
  assert.deepEqual(all, page.data);
  assert.ok(all.length >= 1);
});

test("C43 filters", async () => {
  const { client, seen } = await proxied();
  await client.messages.list({ status: ["BOUNCED", "FAILED"], createdFrom: new Date(0), search: undefined });
  const query = new URLSearchParams((await seen()).requests[0].query);
  assert.deepEqual(Object.fromEntries(query), { status: "BOUNCED,FAILED", createdFrom: "1970-01-01T00:00:00.000Z" });
});

test("C50 unknown values and fields pass through", async () => {
  const { messageId } = await waypost.messages.send(mail());
  const { client } = await proxied([{
    set: [[["data", "status"], "OF_TOMORROW"], [["data", "newField"], { deep: [1] }], [["data", "events", "*", "eventType"], "NEW"]],
  }]);
  const message = await client.messages.get(messageId);
  assert.equal(message.status, "OF_TOMORROW");
  assert.deepEqual(message.newField, { deep: [1] });
  assert.equal(message.events[0].eventType, "NEW");
});

test("C60 the vectors of webhooks", async () => {
  const { vectors } = JSON.parse(readFileSync(new URL("../../conformance/webhooks.json", import.meta.url), "utf8"));
  assert.ok(vectors.length > 20);
  for (const { name, valid, now, secrets, headers, body } of vectors) {
    for (const given of [headers, new Headers(headers)]) {
      const outcome = webhooks.verify(Buffer.from(body), given, secrets, new Date(now * 1000));
      if (valid) assert.deepEqual(await outcome, JSON.parse(body), name);
      else await assert.rejects(outcome, sdk.WebhookVerificationError, name);
    }
  }
});

test("C61 parsed JSON is refused with the reason", async () => {
  await assert.rejects(webhooks.verify({ event: "DELIVERED" }, {}, "whsec_x"), /raw body.*parsed JSON/);
  await assert.rejects(webhooks.verify("{}", {}, ""), /secret is empty/);
});

test("C62 sign makes what verify accepts", async () => {
  const secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
  const body = JSON.stringify({ event: "SENT", timestamp: "2026-11-20T12:00:00.000Z", data: {} });
  const headers = await webhooks.sign(body, secret);
  for (const prefix of ["x-waypost", "webhook"]) {
    const one = Object.fromEntries(Object.entries(headers).filter(([name]) => name.toLowerCase().startsWith(prefix)));
    assert.equal((await webhooks.verify(body, one, secret)).event, "SENT");
  }
  await assert.rejects(webhooks.verify(`${body} `, headers, secret), sdk.WebhookVerificationError);
});

test("C63 a live webhook", async () => {
  const { seen, name } = await proxied();
  const endpoint = await waypost.webhookEndpoints.create({ url: `${proxy}/hook/${name}`, events: ["QUEUED", "DELIVERED"] });
  try {
    await waypost.webhookEndpoints.test(endpoint.id);
    const { messageId } = await waypost.messages.send(mail());
    const delivered = await until(async () => {
      for (const { headers, body } of (await seen()).hooks) {
        const raw = Buffer.from(body, "base64");
        if (!headers["x-waypost-signature"]) continue;
        const event = await webhooks.verify(raw, headers, endpoint.secret);
        if (event.event === "DELIVERED" && event.data.messageId === messageId) return event;
      }
    }, "the webhook");
    assert.equal(delivered.data.recipient, `ada-${run}@example.org`);
  } finally {
    await waypost.webhookEndpoints.delete(endpoint.id);
  }
});

test("C70 cancellation", async () => {
  for (const rule of [{ wait: 3 }, refusal(503, "SERVICE_UNAVAILABLE")]) {
    if (rule.answer) rule.answer.headers["Retry-After"] = "5";
    const { client, seen } = await proxied([rule]);
    const begun = Date.now();
    const error = await failure(client.settings.get({ signal: AbortSignal.timeout(300) }));
    assert.equal(error.name, "TimeoutError");
    assert.ok(error instanceof DOMException);
    assert.ok(Date.now() - begun < 1500);
    assert.equal((await seen()).requests.length, 1);
  }
  const reason = new Error("mine");
  assert.equal(await failure(waypost.settings.get({ signal: AbortSignal.abort(reason) })), reason);
});

test("C71 a timeout", async () => {
  const { client } = await proxied([{ wait: 2, times: 0 }], { timeout: 200, maxRetries: 0 });
  const error = await failure(client.settings.get());
  assert.ok(error instanceof sdk.TimeoutError && error instanceof sdk.ConnectionError);
  assert.match(error.message, /200 ms.*timeout/);
});

test("C72 a send that takes too long at first", async () => {
  const tag = `late-${run}`;
  const { client, seen } = await proxied([{ wait: 1 }]);
  assert.ok((await client.messages.send(mail({ tags: [tag] }), { timeout: 700, maxRetries: 5 })).messageId);
  const { requests } = await until(async () => {
    const found = await seen();
    return found.requests.every((request) => request.status) && found;
  }, "the late answer");
  assert.ok(requests.length >= 2);
  assert.equal(new Set(requests.map((request) => request.idempotencyKey)).size, 1);
  assert.equal(await countWithTag(tag), 1);
});

test("C80 the log has nothing private", async () => {
  const lines = [];
  const logger = { debug: (message, fields) => lines.push(`${message} ${JSON.stringify(fields)}`) };
  const { client } = await proxied([refusal(503, "SERVICE_UNAVAILABLE")], { logger });
  await client.messages.send(mail({ subject: "A private subject" }), { idempotencyKey: `private-${run}` });
  await client.messages.list({ recipient: "ada@example.org" });
  assert.equal(lines.length, 3);
  assert.match(lines[0], /POST \/v1\/send .*"status":503.*"requestId":"request-1"/);
  assert.doesNotMatch(lines.join(), /ada[@-]|private|wp_live|Hello/);
});
