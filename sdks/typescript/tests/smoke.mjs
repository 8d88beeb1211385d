// One send, one list and one webhook, in whatever runs it: node, deno, bun. Needs WAYPOST_URL and WAYPOST_API_KEY.

import { VERSION, Waypost, webhooks } from "../dist/esm/index.js";

const waypost = new Waypost();
const { messageId } = await waypost.messages.send({
  from: "shop@example.com",
  to: "ada@example.org",
  subject: "Hello",
  text: "Hello, Ada",
});
let found = false;
for await (const message of waypost.messages.list({ limit: 5 })) {
  found = message.id === messageId;
  if (found) break;
}
const body = JSON.stringify({ event: "SENT", timestamp: "", data: {} });
const secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
const event = await webhooks.verify(body, await webhooks.sign(body, secret), secret);
if (!found || event.event !== "SENT") throw new Error("something is wrong");
console.log(`waypost ${VERSION}: ok`);
