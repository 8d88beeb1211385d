// @ts-check
// Receives Waypost's webhooks and prints the genuine ones. Node's own modules only.
//
//   node receiver.mjs 8099 webhook-secret
//
// The second argument is a file that holds the endpoint's signing secret. It is read for each request, since the
// receiver must be running before the endpoint can be made.

import { createHmac, timingSafeEqual } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";

const TOLERANCE_SECONDS = 300;

/**
 * Whether Waypost signed this body, with this secret, in the last five minutes.
 *
 * @param {string} secret
 * @param {import("node:http").IncomingHttpHeaders} headers
 * @param {Buffer} body
 */
export function isGenuine(secret, headers, body) {
  const timestamp = String(headers["x-waypost-timestamp"] ?? "");
  const signature = Buffer.from(String(headers["x-waypost-signature"] ?? ""));
  const age = Math.abs(Date.now() / 1000 - Number(timestamp));
  if (secret === "" || !/^\d+$/.test(timestamp) || age > TOLERANCE_SECONDS) {
    return false;
  }
  const expected = Buffer.from(createHmac("sha256", secret).update(`${timestamp}.`).update(body).digest("hex"));
  // In constant time: how long it takes must not tell how much of a guess is right.
  return signature.length === expected.length && timingSafeEqual(signature, expected);
}

const [port, secretFile] = process.argv.slice(2);

/**
 * @param {import("node:http").IncomingMessage} request
 * @param {import("node:http").ServerResponse} response
 */
async function receive(request, response) {
  // The raw body: parsing it and writing it again would change the bytes that were signed.
  const parts = [];
  for await (const part of request) parts.push(part);
  const body = Buffer.concat(parts);
  const secret = existsSync(secretFile) ? readFileSync(secretFile, "utf8").trim() : "";
  if (!isGenuine(secret, request.headers, body)) {
    response.writeHead(401).end();
    return;
  }
  const webhook = JSON.parse(body.toString());
  // A delivery may come twice: a real receiver stores this id and ignores it the next time.
  const delivery = request.headers["webhook-id"];
  console.log(webhook.event, webhook.data.recipient, delivery);
  response.writeHead(204).end();
}

// A caller that hangs up in the middle must not end the program.
const server = createServer((request, response) => receive(request, response).catch(() => response.destroy()));
server.listen(Number(port), "127.0.0.1");
