import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type Waypost, webhooks } from "waypost";
import { expect, look, test, unique } from "./fixtures";

// Each look at a page takes seconds on a busy machine.
test.describe.configure({ timeout: 240_000 });

/** A receiver of webhooks, which answers as it is told. */
class Receiver {
  status = 204;
  /** What every answer waits for. */
  gate: Promise<void> = Promise.resolve();
  readonly bodies: { body: string; headers: Record<string, string> }[] = [];
  readonly #server: Server;

  constructor() {
    this.#server = createServer((request, response) => {
      let body = "";
      request.on("data", (chunk) => (body += chunk));
      request.on("end", async () => {
        // The check of a new URL is no delivery.
        if (request.headers["webhook-id"]) this.bodies.push({ body, headers: request.headers as Record<string, string> });
        await this.gate;
        response.writeHead(this.status, { "content-type": "text/plain" });
        response.end(this.status === 204 ? "" : "the shop is closed");
      });
    });
  }

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/${unique("webhooks")}`;
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

let receiver: Receiver;
let url: string;

test.beforeEach(async ({ waypost }) => {
  receiver = new Receiver();
  url = await receiver.start();
  // Something must send.
  if ((await waypost.providers.list()).data.some((account) => account.isActive)) return;
  await waypost.providers.create({ providerType: "SENDGRID", displayName: unique("SendGrid"), credentials: { apiKey: `SG.${unique("key")}` } });
});

test.afterEach(async ({ waypost }) => {
  // An organization may have ten endpoints.
  const { data } = await waypost.webhookEndpoints.list();
  for (const endpoint of data.filter((one) => one.url === url)) await waypost.webhookEndpoints.delete(endpoint.id);
  receiver.stop();
});

/** Sends tests, whose events follow within a second. */
async function send(waypost: Waypost, number: number, tag: string): Promise<string[]> {
  const ids: string[] = [];
  for (let at = 0; at < number; at++) {
    const { messageId } = await waypost.messages.send({
      from: "shop@example.com",
      to: `${unique("ada")}@example.org`,
      subject: "Your receipt",
      text: "Thank you.",
      tags: [tag],
      test: true,
      testOutcome: "bounced",
    });
    ids.push(messageId ?? "");
  }
  return ids;
}

test("an endpoint is added, its secret is shown once and verifies what it gets, and it is changed and deleted", async ({ page, waypost }) => {
  const tag = unique("receipts");
  await page.goto("/webhooks");
  await page.getByRole("button", { name: "Add an endpoint" }).first().click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("URL").fill("nowhere");
  await dialog.getByRole("button", { name: "Add the endpoint" }).click();
  await expect(dialog.getByLabel("URL")).toHaveAttribute("aria-invalid", "true");
  await look(page, "webhooks-add-wrong");
  await dialog.getByLabel("URL").fill(url);
  await dialog.getByRole("button", { name: "Sending: all" }).click();
  await dialog.getByLabel("Tags").fill(tag);
  await dialog.getByRole("button", { name: "Add the endpoint" }).click();
  await expect(dialog).toContainText("It cannot be shown again");
  const secret = await page.getByTestId("secret").innerText();
  expect(secret).toMatch(/^whsec_/);
  await look(page, "webhooks-secret");
  await dialog.getByRole("button", { name: "I have kept the secret" }).click();
  await expect(page).toHaveURL(/\/webhooks\/[0-9a-f-]{36}/);
  await expect(page.getByText("No delivery yet")).toBeVisible();
  await look(page, "webhooks-endpoint-empty");

  const [messageId] = await send(waypost, 1, tag);
  const table = page.getByRole("table", { name: "Deliveries" });
  await expect(table.getByRole("row").filter({ hasText: "Bounced" })).toContainText("Delivered", { timeout: 30_000 });
  const got = receiver.bodies.find(({ body }) => body.includes('"BOUNCED"'));
  const event = await webhooks.verify(got?.body ?? "", got?.headers ?? {}, secret);
  expect(event.event).toBe("BOUNCED");
  await look(page, "webhooks-endpoint");

  await page.getByLabel("Event", { exact: true }).selectOption({ label: "Sent" });
  await page.getByLabel("Id of a message").fill(messageId ?? "");
  await page.getByRole("button", { name: "Search", exact: true }).click();
  await expect(page).toHaveURL(/event=SENT&message=/);
  await expect(table.getByRole("row")).toHaveCount(2);
  await table.getByRole("row").nth(1).click();
  await expect(dialog).toContainText("Your server accepted the event.");
  await expect(dialog).toContainText(`"messageId": "${messageId}"`);
  await expect(dialog.getByRole("listitem")).toContainText("204");
  await look(page, "webhooks-delivery");
  await page.keyboard.press("Escape");
  await page.getByLabel("Created", { exact: true }).selectOption({ label: "Last 24 hours" });
  await page.getByLabel("Status", { exact: true }).selectOption({ label: "Failed" });
  await expect(page.getByText("No delivery matches")).toBeVisible();
  await page.getByRole("button", { name: "Clear the filters" }).click();

  await page.getByRole("button", { name: "Send a test" }).click();
  await expect(page.getByText("The endpoint answered 204")).toBeVisible();
  expect(receiver.bodies.at(-1)?.body).toContain('"test":true');

  await page.getByRole("button", { name: "More actions" }).click();
  await page.getByRole("menuitem", { name: "Edit" }).click();
  await dialog.getByRole("button", { name: "Recipients: all" }).click();
  await dialog.getByLabel("Tags").fill("");
  await dialog.getByRole("button", { name: "Save" }).click();
  await expect(dialog).toHaveCount(0);
  await page.getByRole("tab", { name: "About" }).click();
  await expect(page.getByText("Events of all messages")).toBeVisible();
  await look(page, "webhooks-about");
  await page.getByRole("tab", { name: "Verify signatures" }).click();
  await expect(page.getByRole("tab", { name: "Python" })).toBeVisible();
  await look(page, "webhooks-verify");

  await page.getByRole("button", { name: "More actions" }).click();
  await page.getByRole("menuitem", { name: "Delete" }).click();
  await expect(dialog).toContainText("gets no events any more");
  await dialog.getByRole("button", { name: "Delete the endpoint" }).click();
  await expect(page).toHaveURL(/\/webhooks$/);
  await expect(page.getByRole("link", { name: url })).toHaveCount(0);
});

test("the day's failed deliveries are replayed in two clicks", async ({ page, waypost }) => {
  const tag = unique("invoices");
  const endpoint = await waypost.webhookEndpoints.create({ url, events: ["BOUNCED"], tags: [tag] });
  // The server says that it is gone: Waypost gives these deliveries up, and switches the endpoint off.
  receiver.status = 410;
  // Not before all three deliveries are made: an endpoint that is off gets no new ones.
  let answer = () => {};
  receiver.gate = new Promise((resolve) => (answer = resolve));
  await send(waypost, 3, tag);
  await expect(async () => {
    expect((await waypost.webhookEndpoints.deliveries.list(endpoint.id)).data.length).toBe(3);
  }).toPass({ timeout: 30_000 });
  answer();
  await expect(async () => {
    expect((await waypost.webhookEndpoints.get(endpoint.id)).isActive).toBe(false);
  }).toPass({ timeout: 30_000 });
  const failed = (await waypost.webhookEndpoints.deliveries.list(endpoint.id, { status: "FAILED" })).data;
  expect(failed.length).toBeGreaterThan(0);

  await page.goto("/webhooks");
  const row = page.getByRole("main").getByRole("listitem").filter({ hasText: url });
  await expect(row).toContainText("Off");
  await expect(row.getByRole("button", { name: /failed deliver(y|ies) in 24 h: replay/ })).toBeVisible();
  await look(page, "webhooks");
  await row.getByRole("link", { name: url }).click();
  await expect(page.getByText("its server answered 410 (gone)")).toBeVisible();
  await look(page, "webhooks-off");

  receiver.status = 204;
  await page.getByRole("button", { name: "Switch it on" }).click();
  await expect(page.getByText("The endpoint is on. What waited is delivered now")).toBeVisible();
  await expect(page.getByText("its server answered 410 (gone)")).toHaveCount(0);

  await page.getByRole("button", { name: "Replay", exact: true }).first().click();
  const dialog = page.getByRole("dialog");
  await expect(dialog.getByLabel("Created")).toHaveValue("24h");
  await expect(dialog).toContainText(/deliver(y|ies) failed in this period/);
  await look(page, "webhooks-replay");
  await dialog.getByRole("button", { name: "Replay", exact: true }).click();
  await expect(page.getByText(/deliver(y is|ies are) due again/)).toBeVisible();
  await expect(async () => {
    const { data } = await waypost.webhookEndpoints.deliveries.list(endpoint.id);
    expect(data.map((delivery) => delivery.status)).toEqual(["DELIVERED", "DELIVERED", "DELIVERED"]);
  }).toPass({ timeout: 30_000 });
  const table = page.getByRole("table", { name: "Deliveries" });
  await expect(table.getByText("Delivered", { exact: true })).toHaveCount(3, { timeout: 20_000 });
  // What was delivered is not replayed once more.
  await page.getByRole("button", { name: "Replay", exact: true }).first().click();
  await expect(dialog.getByRole("button", { name: "Replay", exact: true })).toBeDisabled();
  await page.keyboard.press("Escape");
  // The same delivery, under the same id.
  const ids = receiver.bodies.map(({ headers }) => headers["webhook-id"]);
  for (const { id } of failed) expect(ids.filter((one) => one === id).length).toBe(2);
});

test("an endpoint that fails says so, one delivery is replayed, and it is paused and gets a new secret", async ({ page, waypost }) => {
  const tag = unique("orders");
  const endpoint = await waypost.webhookEndpoints.create({ url, events: ["BOUNCED"], tags: [tag] });
  receiver.status = 500;
  await send(waypost, 1, tag);
  await page.goto(`/webhooks/${endpoint.id}`);
  const row = page.getByRole("table", { name: "Deliveries" }).getByRole("row").nth(1);
  await expect(row).toContainText("500 after", { timeout: 30_000 });
  await expect(page.getByText("All deliveries have failed since")).toBeVisible({ timeout: 20_000 });
  await row.click();
  const dialog = page.getByRole("dialog");
  await expect(dialog).toContainText("The event waits for the next try.");
  await expect(dialog.getByRole("listitem").first()).toContainText("the shop is closed");
  await look(page, "webhooks-delivery-failing");
  receiver.status = 204;
  await dialog.getByRole("button", { name: "Replay" }).click();
  await expect(dialog).toContainText("Your server accepted the event.", { timeout: 20_000 });
  await page.keyboard.press("Escape");
  await expect(page.getByText("All deliveries have failed since")).toHaveCount(0, { timeout: 20_000 });

  await page.getByRole("button", { name: "More actions" }).click();
  await page.getByRole("menuitem", { name: "Pause" }).click();
  await expect(page.getByText("This endpoint is off and gets no new events.")).toBeVisible();
  expect((await waypost.webhookEndpoints.get(endpoint.id)).isActive).toBe(false);
  await page.getByRole("button", { name: "Replay", exact: true }).first().click();
  await expect(dialog).toContainText("The endpoint is off, so nothing can be posted to it.");
  await dialog.getByRole("button", { name: "Switch it on" }).click();
  await expect(dialog.getByLabel("Which")).toBeVisible();
  await dialog.getByRole("button", { name: "Cancel" }).click();

  await page.getByRole("button", { name: "More actions" }).click();
  await page.getByRole("menuitem", { name: "Rotate the secret" }).click();
  await dialog.getByRole("button", { name: "Rotate the secret" }).click();
  const secret = await page.getByTestId("secret").innerText();
  await dialog.getByRole("button", { name: "I have kept the secret" }).click();
  await waypost.webhookEndpoints.test(endpoint.id);
  const last = receiver.bodies.at(-1);
  await webhooks.verify(last?.body ?? "", last?.headers ?? {}, secret);
});
