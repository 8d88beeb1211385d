// Resend's client with Waypost's endpoints of Resend: every call for emails, with answers and errors as the client reads
// them. At the end, the compiler checks each answer against the type that the client declares for it.
const { execFileSync } = require("child_process");
const { writeFileSync } = require("fs");
const { join } = require("path");
const { isDeepStrictEqual, inspect } = require("util");
const { Resend } = require("resend");

const URL = `${process.env.WAYPOST_URL}/compat/resend`;
const SENDER = "Acme <sender@example.com>";
const SENT_SECONDS_MAX = 60;
const resend = new Resend(process.env.WAYPOST_API_KEY, { baseUrl: URL });
const answers = [];
let passed = 0;
let failed = 0;

function check(what, isRight, detail = "") {
  if (isRight) passed++;
  else {
    failed++;
    console.log(`FAILED resend (npm), ${what}: ${typeof detail === "string" ? detail : inspect(detail, { depth: 6 })}`.slice(0, 900));
  }
}

const equal = (what, got, wanted) => check(what, isDeepStrictEqual(got, wanted), `${inspect(got)} is not ${inspect(wanted)}`);

// The data of an answer without an error, to be checked against a type of the client.
function data(what, type, answer) {
  check(what, answer.error === null, answer.error);
  check(`${what}: rate limit`, Number(answer.headers["ratelimit-limit"]) > 0, answer.headers);
  if (answer.data) answers.push([what, type, answer.data]);
  return answer.data ?? {};
}

function refused(what, answer, statusCode, name) {
  equal(`${what}: no data`, answer.data, null);
  const { message, ...kind } = answer.error ?? {};
  equal(what, kind, { statusCode, name });
  check(`${what}: message`, typeof message === "string" && message.length > 0, message);
  if (answer.error) answers.push([what, "resend.ErrorResponse", answer.error]);
  return message;
}

async function captured(to) {
  const url = `${process.env.SIMULATOR_URL}/captured?to=${encodeURIComponent(to)}`;
  return (await (await fetch(url)).json()).messages;
}

async function waitFor(what, find) {
  const deadline = Date.now() + SENT_SECONDS_MAX * 1000;
  while (Date.now() < deadline) {
    const found = await find();
    if (found) return found;
    await new Promise((done) => setTimeout(done, 100));
  }
  check(what, false, "not in time");
  return undefined;
}

const email = (to, more = {}) => ({ from: SENDER, to, subject: "Hello", html: "<p>Hello</p>", ...more });

async function sends() {
  const to = "ann@npm.example.org";
  const given = email([to, "bob@npm.example.org"], {
    cc: "cc@npm.example.org", bcc: ["bcc@npm.example.org"], replyTo: "help@example.com", text: "Hi",
    headers: { "X-Order": "1042" }, tags: [{ name: "order", value: "1042" }],
    attachments: [
      { filename: "a.txt", content: Buffer.from("ABC") },
      { filename: "b.txt", content: Buffer.from("logo").toString("base64"), contentType: "text/csv" },
    ],
  });
  const { id } = data("send", "resend.CreateEmailResponseSuccess", await resend.emails.send(given));
  const [mail] = (await waitFor("delivered", async () => {
    const found = await captured(to);
    return found.length > 0 && found;
  })) ?? [{}];
  equal("subject", mail.subject, "Hello");
  equal("recipients", mail.visibleRecipients, [to, "bob@npm.example.org", "cc@npm.example.org"]);
  equal("reply to", mail.replyTo, "help@example.com");
  equal("tags", mail.tags, ["order:1042"]);
  equal("header", mail.headers?.["X-Order"], "1042");
  equal("files", mail.attachments?.map((file) => [file.filename, file.bytes]), [["a.txt", 3], ["b.txt", 4]]);
  const got = await waitFor("sent", async () => {
    const answer = await resend.emails.get(id);
    return answer.data?.last_event === "sent" && answer;
  });
  if (!got) return;
  const read = data("get", "resend.GetEmailResponseSuccess", got);
  for (const [name, wanted] of Object.entries({
    object: "email", id, from: SENDER, to: given.to, cc: ["cc@npm.example.org"], bcc: given.bcc,
    reply_to: ["help@example.com"], subject: "Hello", html: "<p>Hello</p>", text: "Hi", tags: given.tags,
  })) equal(`get: ${name}`, read[name], wanted);
}

async function repeats() {
  const given = email("key@npm.example.org");
  const key = { idempotencyKey: `npm-${Date.now()}` };
  const first = data("send with a key", "resend.CreateEmailResponseSuccess", await resend.emails.send(given, key));
  const again = data("send again", "resend.CreateEmailResponseSuccess", await resend.emails.send(given, key));
  equal("the same id", again.id, first.id);
  const other = await resend.emails.send(email("other@npm.example.org"), key);
  refused("the key for another email", other, 409, "invalid_idempotent_request");
}

async function schedules() {
  const inAnHour = new Date(Date.now() + 3_600_000).toISOString();
  const inTwo = new Date(Date.now() + 7_200_000).toISOString();
  const given = email("later@npm.example.org", { scheduledAt: inAnHour });
  const { id } = data("schedule", "resend.CreateEmailResponseSuccess", await resend.emails.send(given));
  data("in words", "resend.CreateEmailResponseSuccess", await resend.emails.send({ ...given, scheduledAt: "in 1 hour" }));
  const moved = await resend.emails.update({ id, scheduledAt: inTwo });
  equal("update", data("update", "resend.UpdateEmailResponseSuccess", moved), { object: "email", id });
  const read = data("get a scheduled one", "resend.GetEmailResponseSuccess", await resend.emails.get(id));
  equal("scheduled_at", new Date(read.scheduled_at).toISOString(), inTwo);
  equal("scheduled", read.last_event, "scheduled");
  equal("cancel", data("cancel", "resend.CancelEmailResponseSuccess", await resend.emails.cancel(id)), { object: "email", id });
  equal("canceled", (await resend.emails.get(id)).data?.last_event, "canceled");
  refused("update a cancelled one", await resend.emails.update({ id, scheduledAt: inTwo }), 422, "validation_error");
}

async function batches() {
  const valid = email("batch@npm.example.org");
  // Without the option, the type of the whole allows no member, not even this one.
  const type = "CreateBatchSuccessResponse<{ batchValidation: 'permissive' }>";
  const strict = data("batch", `Pick<resend.${type}, "data">`, await resend.batch.send([valid, valid]));
  equal("batch: ids", strict.data?.length, 2);
  refused("strict batch", await resend.batch.send([valid, email("nobody")]), 422, "validation_error");
  const permissive = await resend.batch.send([email("nobody"), valid], { batchValidation: "permissive" });
  const { data: ids, errors } = data("permissive batch", `resend.${type}`, permissive);
  equal("permissive batch: ids", ids?.length, 1);
  equal("permissive batch: errors", errors?.map((error) => error.index), [0]);
}

async function lists() {
  const first = data("list", "resend.ListEmailsResponseSuccess", await resend.emails.list({ limit: 3 }));
  equal("list: size", first.data?.length, 3);
  equal("list: more", first.has_more, true);
  const after = first.data?.[2].id;
  const second = data("list after", "resend.ListEmailsResponseSuccess", await resend.emails.list({ limit: 2, after }));
  check("list after: others", second.data?.every((one) => !first.data.some((other) => other.id === one.id)), second);
  const before = second.data?.[0].id;
  const back = data("list before", "resend.ListEmailsResponseSuccess", await resend.emails.list({ limit: 3, before }));
  equal("list before", back.data?.map((one) => one.id), first.data?.map((one) => one.id));
}

async function refusals() {
  const nobody = new Resend("re_123", { baseUrl: URL });
  refused("wrong key", await nobody.emails.send(email("a@example.org")), 403, "invalid_api_key");
  const { html, ...empty } = email("a@example.org");
  refused("no body", await resend.emails.send(empty), 422, "missing_required_field");
  refused("no address", await resend.emails.send(email("nobody")), 422, "validation_error");
  refused("sender", await resend.emails.send({ ...email("a@example.org"), from: "nobody" }), 422, "invalid_from_address");
  const file = { filename: "a", content: "*" };
  refused("file", await resend.emails.send(email("a@example.org", { attachments: [file] })), 422, "invalid_attachment");
  const topic = await resend.emails.send(email("a@example.org", { topicId: "none" }));
  check("topic", refused("topic", topic, 422, "validation_error")?.startsWith("topic_id "), topic.error);
  refused("unknown id", await resend.emails.get("01a21f88-0902-7411-a0f3-8c583360bade"), 404, "not_found");
  refused("limit", await resend.emails.list({ limit: 1000 }), 422, "invalid_parameter");
  // What Waypost has not is refused in Resend's form too.
  refused("share", await resend.emails.share("01a21f88-0902-7411-a0f3-8c583360bade", {}), 404, "not_found");
  refused("domains", await resend.domains.list(), 404, "not_found");
}

// Each answer as a value of its type: what the type does not have, or has otherwise, is an error of the compiler.
function checkTypes() {
  const lines = ['import type * as resend from "resend";'];
  for (const [index, [, type, answer]] of answers.entries()) {
    lines.push(`export const answer${index}: ${type} = ${JSON.stringify(answer)};`);
  }
  const file = join(process.env.JUDGE_HOME, "answers.ts");
  writeFileSync(file, lines.join("\n"));
  const options = ["--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext", "--moduleResolution", "nodenext"];
  const tsc = join(process.env.JUDGE_HOME, "node_modules", "typescript", "bin", "tsc");
  let output = "";
  try {
    execFileSync("node", [tsc, ...options, file], { cwd: process.env.JUDGE_HOME, encoding: "utf8" });
  } catch (error) {
    output = error.stdout;
  }
  for (const [index, [what, type]] of answers.entries()) {
    // Line 1 is the import.
    const found = output.split("\n").find((line) => line.includes(`(${index + 2},`));
    check(`${what} is a ${type}`, !found, found);
  }
}

(async () => {
  for (const part of [sends, repeats, schedules, batches, lists, refusals]) await part();
  checkTypes();
  writeFileSync(join(process.env.JUDGE_SCRATCH, "tally-resend-npm"), `${passed} ${failed}\n`);
  console.log(`resend (npm): ${passed} passed, ${failed} failed`);
})();
