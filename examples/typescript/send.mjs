// @ts-check
// Sends a mail with nothing but Node's own fetch. Needs WAYPOST_URL and WAYPOST_API_KEY.
//
//   node send.mjs charles@example.org order-1042

/**
 * @typedef {object} Message
 * @property {string} from
 * @property {string | string[]} to
 * @property {string} subject
 * @property {string} [html]
 * @property {string} [text]
 * @property {string[]} [tags]
 * @property {Record<string, unknown>} [metadata]
 */

/**
 * The answer to POST /v1/send. With the same key a repeated call sends nothing twice.
 *
 * @param {Message} message
 * @param {string} idempotencyKey
 * @returns {Promise<{ messageId: string | null, status: "queued" | "suppressed" }>}
 */
async function send(message, idempotencyKey) {
  const response = await fetch(`${process.env.WAYPOST_URL}/v1/send`, {
    method: "POST",
    headers: {
      Authorization: `Bearer ${process.env.WAYPOST_API_KEY}`,
      "Content-Type": "application/json",
      "Idempotency-Key": idempotencyKey,
    },
    body: JSON.stringify(message),
    signal: AbortSignal.timeout(10_000),
  });
  if (response.status !== 202) {
    // Every mistake is listed in error.details.issues. After a 429 or 503 repeat with the same key.
    throw new Error(`${response.status}: ${await response.text()}`);
  }
  return response.json();
}

const [recipient, order] = process.argv.slice(2);
const answer = await send(
  {
    from: "Ada Lovelace <ada@example.com>",
    to: recipient,
    subject: `Your receipt for ${order}`,
    html: "<p>Thank you for your order.</p>",
    text: "Thank you for your order.",
    tags: ["receipts"],
    metadata: { order },
  },
  `${order}-receipt`,
);
console.log(JSON.stringify(answer));
