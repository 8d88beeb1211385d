// Compiled, never run: what a user writes must compile with the strictest settings, and what is wrong must not.

import { NotFoundError, Waypost, WaypostError, webhooks, type MessageStatus, type WebhookEvent } from "../src/index.js";

export async function send(waypost: Waypost): Promise<string | null> {
  const { messageId, status } = await waypost.messages.send({
    from: "Shop <shop@example.com>",
    to: [{ email: "ada@example.org", variables: { name: "Ada" } }, "bob@example.org"],
    subject: "Hello",
    text: "Hello",
    html: undefined,
    tags: ["receipts"] as const,
    scheduledAt: new Date(),
  });
  if (status === "suppressed") return null;
  // @ts-expect-error: no such field
  await waypost.messages.send({ from: "a@example.com", to: "b@example.com", subjekt: "x" });
  // @ts-expect-error: no recipient
  await waypost.messages.send({ from: "a@example.com", subject: "x" });
  return messageId;
}

export async function list(waypost: Waypost): Promise<MessageStatus[]> {
  const statuses: MessageStatus[] = [];
  for await (const message of waypost.messages.list({ status: ["BOUNCED", "A_NEW_ONE"], createdFrom: new Date() })) {
    statuses.push(message.status);
  }
  const page = await waypost.messages.list();
  const first: string | undefined = page.data[0]?.id;
  const total: number | undefined = page.pagination?.total;
  const next = await page.next();
  return next && first && total ? statuses : [];
}

export function narrow(event: WebhookEvent): string | undefined {
  switch (event.event) {
    case "CLICKED":
      return event.data.url;
    case "BOUNCED":
      return event.data.bounceType;
    case "SUPPRESSION_CREATED":
      // @ts-expect-error: only messages have a recipient
      return event.data.recipient ?? event.data.emailHash;
    default:
      return undefined;
  }
}

export async function receive(request: Request): Promise<Response> {
  try {
    const event = await webhooks.verify(await request.text(), request.headers, ["whsec_a", "whsec_b"]);
    return new Response(narrow(event));
  } catch (error) {
    if (error instanceof NotFoundError) return new Response(error.reason, { status: error.status ?? 500 });
    return new Response(error instanceof WaypostError ? error.issues[0]?.path : null, { status: 401 });
  }
}

export async function resources(waypost: Waypost): Promise<void> {
  const provider = await waypost.providers.create({
    providerType: "SENDGRID",
    displayName: "Main",
    credentials: { apiKey: "SG.x" },
  });
  await waypost.providers.domains.create(provider.id, { domain: "example.com" });
  const { data } = await waypost.templates.versions.list("id");
  await waypost.templates.versions.get("id", data[0]?.id ?? "", { timeout: 1000, signal: new AbortController().signal });
  await waypost.webhookEndpoints.deliveries.replay("endpoint", "delivery");
  await waypost.suppressions.import("email\nada@example.org\n", {}, { idempotencyKey: "x" });
  const file: Response = await waypost.messages.attachments.download("id", "0");
  await file.arrayBuffer();
  const custom = new Waypost("key", { baseUrl: "https://x", fetch, logger: console, timeout: undefined });
  await custom.settings.update({ unverifiedDomains: "accept" });
}
