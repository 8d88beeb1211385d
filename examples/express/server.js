// A shop that sends a mail to who signs up, and learns by webhooks what became of it.
import { randomUUID } from "node:crypto";
import express from "express";
import { ValidationError, Waypost, WebhookVerificationError, webhooks } from "waypost";

const { PORT = "3000", WAYPOST_WEBHOOK_SECRET } = process.env;
const STATUSES = { DELIVERED: "delivered", BOUNCED: "bounced", COMPLAINED: "complained" };

const waypost = new Waypost(); // WAYPOST_URL and WAYPOST_API_KEY
const users = new Map(); // a real shop has a database
const seen = new Set();
const app = express();

app.post("/sign-up", express.json(), async (request, response) => {
  const { name, email } = request.body;
  const user = { id: randomUUID(), email, emailStatus: "sent" };
  try {
    await waypost.messages.send(
      { from: "Shop <welcome@example.com>", to: email, subject: `Welcome, ${name}`, text: `Hello ${name}, good to have you.` },
      { idempotencyKey: `welcome-${user.id}` },
    );
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error;
    response.status(422).json({ error: error.message });
    return;
  }
  users.set(user.id, user);
  response.status(201).json(user);
});

// The raw body: the signature is of its bytes.
app.post("/webhooks/waypost", express.raw({ type: "application/json" }), async (request, response) => {
  try {
    const event = await webhooks.verify(request.body, request.headers, WAYPOST_WEBHOOK_SECRET);
    const delivery = request.headers["webhook-id"];
    const user = [...users.values()].find(({ email }) => email === event.data.recipient);
    if (user && event.event in STATUSES && !seen.has(delivery)) user.emailStatus = STATUSES[event.event];
    seen.add(delivery);
    response.sendStatus(204);
  } catch (error) {
    if (!(error instanceof WebhookVerificationError)) throw error;
    response.status(400).json({ error: error.message });
  }
});

app.get("/users/:id", (request, response) => {
  const user = users.get(request.params.id);
  response.status(user ? 200 : 404).json(user ?? { error: "There is no such user" });
});

app.listen(Number(PORT), "127.0.0.1", () => console.log(`http://127.0.0.1:${PORT}`));
