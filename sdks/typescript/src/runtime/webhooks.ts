import type { WebhookEvent } from "../generated/types.js";
import { WebhookVerificationError } from "./errors.js";
import { webCrypto } from "./platform.js";

const TOLERANCE_S = 300;
/** More signatures than a rotation can make are not looked at. */
const SIGNATURES_MAX = 10;

/** The headers of a request, as any server has them. */
export type WebhookHeaders = Headers | Record<string, string | readonly string[] | undefined>;

/** A body as it came. */
export type RawBody = string | Uint8Array | ArrayBuffer;

/**
 * The event of a request to your webhook endpoint, if Waypost signed it in the last five minutes; else it throws a
 * {@link WebhookVerificationError}. A newer Waypost may send events of other types: ignore what you do not know.
 *
 * @param rawBody The body as it came, before anything parses it.
 * @param headers The headers of the request.
 * @param secret The endpoint's secret (`whsec_…`), or several: each may have signed it.
 * @param now The time to compare with, for tests.
 */
async function verify(
  rawBody: RawBody,
  headers: WebhookHeaders,
  secret: string | readonly string[],
  now: Date = new Date(),
): Promise<WebhookEvent> {
  const body = bytesOf(rawBody);
  const secrets = [secret].flat().filter(Boolean);
  if (!secrets.length) {
    throw refusal("The secret is empty. Waypost shows it once, when the endpoint is made (whsec_…).");
  }
  const get = reader(headers);
  const [id, standardTime, ownTime] = [get("webhook-id"), get("webhook-timestamp"), get("x-waypost-timestamp")];
  const owns = [get("x-waypost-signature"), get("x-waypost-signature-other")];
  const given = [
    ...owns.map((signature) => ({ signature, timestamp: ownTime, of: ownSignature })),
    ...get("webhook-signature")
      .split(" ", SIGNATURES_MAX)
      .map((signature) => ({ signature, timestamp: standardTime, of: standardSignature })),
  ].filter(({ signature, timestamp }) => signature && timestamp);
  if (!given.length) {
    throw refusal(
      "The request has no signature: neither X-Waypost-Timestamp and X-Waypost-Signature, nor webhook-id, " +
        "webhook-timestamp and webhook-signature. Pass all its headers.",
    );
  }
  const age = (timestamp: string) => Math.abs(now.getTime() / 1000 - Number(timestamp));
  const fresh = given.filter(({ timestamp }) => /^\d{1,12}$/.test(timestamp) && age(timestamp) <= TOLERANCE_S);
  if (!fresh.length) {
    throw refusal("The request was not signed within five minutes of now: it is an old one, or a clock is wrong.");
  }
  for (const each of secrets) {
    for (const { signature, timestamp, of } of fresh) {
      if (equal(signature, await of(each, timestamp, body, id))) return JSON.parse(new TextDecoder().decode(body));
    }
  }
  throw refusal("No signature is by this secret. Is it this endpoint's, and did nothing change the body before verify?");
}

/**
 * The headers that Waypost would send with this body, to test your receiver.
 *
 * @param rawBody The body that the test posts.
 * @param secret The endpoint's secret.
 * @param options The id of the delivery, and when it was signed.
 */
async function sign(
  rawBody: RawBody,
  secret: string,
  options: { id?: string; timestamp?: Date } = {},
): Promise<Record<string, string>> {
  if (!secret) throw new TypeError("sign needs the secret that the receiver has.");
  const body = bytesOf(rawBody);
  const id = options.id ?? (await webCrypto()).randomUUID();
  const timestamp = String(Math.floor((options.timestamp ?? new Date()).getTime() / 1000));
  return {
    "X-Waypost-Timestamp": timestamp,
    "X-Waypost-Signature": await ownSignature(secret, timestamp, body),
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": await standardSignature(secret, timestamp, body, id),
  };
}

/** Verifies what Waypost posts to your webhook endpoints. */
export const webhooks = { verify, sign };

async function ownSignature(secret: string, timestamp: string, body: Uint8Array): Promise<string> {
  const mac = await hmac(new TextEncoder().encode(secret), `${timestamp}.`, body);
  return Array.from(mac, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** That of Standard Webhooks, whose key is what the secret says in base64; empty if it is not base64. */
async function standardSignature(secret: string, timestamp: string, body: Uint8Array, id: string): Promise<string> {
  const base64 = secret.replace(/^whsec_/, "");
  if (!/^[A-Za-z0-9+/]{2,}={0,2}$/.test(base64) || base64.replace(/=+$/, "").length % 4 === 1) return "";
  const key = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  return `v1,${btoa(String.fromCharCode(...(await hmac(key, `${id}.${timestamp}.`, body))))}`;
}

async function hmac(key: Uint8Array, prefix: string, body: Uint8Array): Promise<Uint8Array> {
  const { subtle } = await webCrypto();
  const start = new TextEncoder().encode(prefix);
  const message = new Uint8Array(start.length + body.length);
  message.set(start);
  message.set(body, start.length);
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const imported = await subtle.importKey("raw", new Uint8Array(key), algorithm, false, ["sign"]);
  return new Uint8Array(await subtle.sign("HMAC", imported, message));
}

/** Compares in constant time: how long it takes must not tell how much of a guess is right. */
function equal(given: string, expected: string): boolean {
  let difference = given.length ^ expected.length;
  for (let i = 0; i < expected.length; i++) difference |= given.charCodeAt(i) ^ expected.charCodeAt(i);
  return difference === 0 && expected !== "";
}

function bytesOf(body: RawBody): Uint8Array {
  if (typeof body === "string") return new TextEncoder().encode(body);
  // Not instanceof: test runners have classes of their own.
  if (ArrayBuffer.isView(body)) return new Uint8Array(body.buffer, body.byteOffset, body.byteLength);
  if (Object.prototype.toString.call(body) === "[object ArrayBuffer]") return new Uint8Array(body);
  throw refusal(
    "verify needs the raw body, as text or bytes, not parsed JSON: writing it again changes the bytes that were signed. " +
      'With Express use express.raw({ type: "application/json" }), elsewhere await request.text().',
  );
}

function reader(headers: WebhookHeaders): (name: string) => string {
  if (typeof headers.get === "function") return (name) => (headers as Headers).get(name) ?? "";
  const lower = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  return (name) => [lower.get(name)].flat()[0] ?? "";
}

function refusal(message: string): WebhookVerificationError {
  return new WebhookVerificationError(message, { code: "WEBHOOK_NOT_VERIFIED" });
}
