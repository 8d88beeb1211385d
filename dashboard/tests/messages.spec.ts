import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, look, test, unique } from "./fixtures";
import { address, connect, send, sendTo, until } from "./mail";

// Each look takes four screenshots and four runs of axe.
test.slow();

test("a message is found by its recipient, and its page says why it bounced", async ({ page, waypost }) => {
  const account = await connect(waypost, unique("Messages"));
  const [ada, gone] = [address("click"), address("hard-bounce")];
  const subject = unique("Your receipt");
  await sendTo(waypost, [ada, gone, address("open")], { subject, tags: ["receipts"], providerAccountId: account, html: '<p>Thank you. <a href="https://shop.example.com/">Shop</a></p>' });

  await page.goto("/messages");
  await page.getByRole("searchbox", { name: /Find by recipient/ }).fill(gone);
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(/recipient=/);
  await expect(page.getByText("1 message", { exact: true })).toBeVisible();
  await look(page, "messages-filtered");

  await page.getByRole("link", { name: subject }).click();
  await expect(page.getByRole("heading", { level: 1, name: subject })).toBeVisible();
  await expect(page.getByText("3 recipients: 2 delivered, 1 bounced.")).toBeVisible();
  await expect(page.getByText(`Only what happened to ${gone}`)).toBeVisible();
  await expect(page.getByRole("heading", { name: /^Bounced for good/ })).toBeVisible();
  await expect(page.getByText("Waypost suppresses the address from now on.")).toBeVisible();
  await look(page, "message-one-recipient");

  await page.getByRole("button", { name: "Show all recipients" }).click();
  await expect(page.getByRole("heading", { name: /^Clicked/ })).toBeVisible();
  await look(page, "message-timeline");
  await page.getByRole("textbox", { name: "Address of a recipient" }).fill(ada);
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { name: /^Clicked/ })).toBeVisible();
  await expect(page.getByRole("heading", { name: /^Bounced/ })).toBeHidden();
  await page.getByRole("tab", { name: /^Recipients/ }).click();
  await expect(page.getByRole("table", { name: "Recipients" }).getByRole("row")).toHaveCount(4);
  await look(page, "message-recipients");
});

test("filters combine, are in the URL, and are taken off one by one", async ({ page, waypost }) => {
  const account = await connect(waypost, unique("Filters"));
  const tag = unique("tag");
  const subject = unique("Filtered");
  await sendTo(waypost, [address("ada")], { subject, tags: [tag], providerAccountId: account });
  await sendTo(waypost, [address("block")], { subject: `${subject} blocked`, tags: [tag], providerAccountId: account });

  await page.goto("/messages");
  await page.getByRole("button", { name: "Filter" }).click();
  await page.getByLabel("Tag", { exact: true }).fill(tag);
  await page.getByLabel("Bounced").click();
  await look(page, "messages-filter-panel");
  await page.getByRole("button", { name: "Show messages" }).click();
  await expect(page.getByRole("link", { name: `${subject} blocked` })).toBeVisible();
  await expect(page.getByRole("link", { name: subject, exact: true })).toBeHidden();
  await page.reload();
  await expect(page.getByText("1 message", { exact: true })).toBeVisible();
  await page.getByRole("button", { name: "Remove the filter Status Bounced" }).click();
  await expect(page.getByText("2 messages", { exact: true })).toBeVisible();

  await page.getByRole("searchbox", { name: /Find by recipient/ }).fill("nobody@example.org");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { name: "No message matches" })).toBeVisible();
  await look(page, "messages-none-matches");
  await page.getByRole("button", { name: "Clear the filters" }).click();
  await expect(page.getByRole("link", { name: subject, exact: true })).toBeVisible();
  await look(page, "messages");
});

test("attempts tell how the mail went from one account to the other", async ({ page, waypost }) => {
  const id = await send(waypost, [address("ada")], { subject: unique("Fail-over"), test: true, testOutcome: "failover" });
  await until(waypost, id, (message) => message.status === "DELIVERED");
  await page.goto(`/messages/${id}?tab=attempts`);
  await expect(page.getByText("Failed", { exact: true })).toBeVisible();
  await expect(page.getByText(/The same account was tried again|The mail was passed on to/)).toBeVisible();
  await expect(page.getByText("Accepted", { exact: true }).first()).toBeVisible();
  await expect(page.getByText("Test", { exact: true })).toBeVisible();
  await look(page, "message-attempts");
});

test("content is shown in a frame that can do nothing, with its files", async ({ page, waypost }) => {
  const account = await connect(waypost, unique("Content"));
  const html = '<h1>Your parcel</h1><img src="https://shop.example.com/logo.png" alt="Logo"><img src="cid:dot" alt="A dot"><script>document.title = "taken"</script>';
  const id = await send(waypost, [address("ada")], {
    subject: unique("Parcel"),
    html,
    text: "Your parcel is on its way.",
    headers: { "X-Campaign": "autumn" },
    attachments: [
      { filename: "receipt.txt", content: "VGhhbmsgeW91Lg==" },
      { filename: "dot.gif", contentType: "image/gif", contentId: "dot", content: "R0lGODlhAQABAIAAAAAAAAAAACwAAAAAAQABAAACAUQAOw==" },
    ],
    providerAccountId: account,
  });
  await page.goto(`/messages/${id}?tab=content`);
  const frame = page.frameLocator("iframe");
  await expect(frame.getByRole("heading", { name: "Your parcel" })).toBeVisible();
  await expect(page.locator("iframe")).toHaveAttribute("sandbox", "");
  await expect(page).toHaveTitle(/^Parcel-/);
  await expect(frame.getByAltText("A dot")).toHaveAttribute("src", /^data:image\/gif;base64,/);
  await expect(frame.getByAltText("Logo")).not.toHaveAttribute("src");
  await expect(page.getByRole("button", { name: "Load images" })).toBeVisible();
  await look(page, "message-content");
  await page.getByRole("tab", { name: "Text", exact: true }).click();
  await expect(page.getByText("Your parcel is on its way.")).toBeVisible();
  await page.getByRole("tab", { name: /^Headers/ }).click();
  await expect(page.getByText("autumn")).toBeVisible();
  await page.getByRole("tab", { name: /^Attachments/ }).click();
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download receipt.txt" }).click();
  expect((await download).suggestedFilename()).toBe("receipt.txt");
  await look(page, "message-attachments");
});

test("a scheduled message is moved and cancelled, a failed one is retried", async ({ page, waypost }) => {
  const account = await connect(waypost, unique("Changes"));
  const later = new Date(Date.now() + 86_400_000);
  const subject = unique("Good morning");
  const id = await send(waypost, [address("ada")], { subject, scheduledAt: later, providerAccountId: account });
  await page.goto(`/messages/${id}`);
  await expect(page.getByText("It is scheduled. Nothing is sent before its time.")).toBeVisible();
  await look(page, "message-scheduled");
  await page.getByRole("button", { name: "Move" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Goes at").fill("2001-01-01T10:00");
  await dialog.getByRole("button", { name: "Move" }).click();
  await expect(dialog.getByLabel("Goes at")).toHaveAttribute("aria-invalid", "true");
  const moved = new Date(later.getTime() + 3_600_000);
  await dialog.getByLabel("Goes at").fill(berlin(moved));
  await dialog.getByRole("button", { name: "Move" }).click();
  await expect(dialog).toBeHidden();
  expect((await waypost.messages.get(id)).scheduledAt?.slice(0, 16)).toBe(moved.toISOString().slice(0, 16));

  await page.getByRole("button", { name: "Cancel sending" }).click();
  await page.getByRole("button", { name: "Cancel the message" }).click();
  await expect(page.getByText("Cancelled for 1 recipient")).toBeVisible();
  await expect(page.getByRole("heading", { name: "Cancelled" })).toBeVisible();

  const refused = await sendTo(waypost, [address("refuse")], { subject: unique("Refused"), providerAccountId: account });
  await page.goto(`/messages/${refused}`);
  await expect(page.getByRole("heading", { name: "Not sent" })).toHaveCount(1);
  await look(page, "message-failed");
  await page.getByRole("button", { name: "Retry" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Retry" }).click();
  await expect(page.getByRole("heading", { name: "Not sent" })).toHaveCount(2, { timeout: 20_000 });
});

test("the webhook deliveries of a message are listed with it", async ({ page, waypost }) => {
  const server = createServer((_request, response) => response.end("thanks"));
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks`;
  const tag = unique("told");
  const endpoint = await waypost.webhookEndpoints.create({ url, events: ["DELIVERED"], tags: [tag] });
  try {
    const account = await connect(waypost, unique("Webhooks"));
    const id = await sendTo(waypost, [address("ada")], { subject: unique("Told"), tags: [tag], providerAccountId: account });
    await page.goto(`/messages/${id}?tab=webhooks`);
    const table = page.getByRole("table", { name: "Webhook deliveries" });
    await expect(table.getByText("Delivered").first()).toBeVisible({ timeout: 20_000 });
    await expect(table.getByText(url.replace("http://", ""))).toBeVisible();
    await expect(table.getByText(/^200 after/)).toBeVisible({ timeout: 20_000 });
    await look(page, "message-webhooks");
  } finally {
    await waypost.webhookEndpoints.delete(endpoint.id);
    server.close();
  }
});

/** A time as the browser of the tests shows it in a field: it lives in Berlin. */
const berlin = (time: Date): string => time.toLocaleString("sv-SE", { timeZone: "Europe/Berlin" }).slice(0, 16).replace(" ", "T");

test("a part of an address is told to be one", async ({ page }) => {
  await page.goto("/messages");
  await page.getByPlaceholder("A recipient's address").fill("hard-bounce+");
  await page.keyboard.press("Enter");
  await expect(page.getByText(/is not a whole address/)).toBeVisible();
});
