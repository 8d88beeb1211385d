import type { Page } from "@playwright/test";
import { expect, look, test, unique } from "./fixtures";

// Each look at a page takes seconds on a busy machine.
test.describe.configure({ timeout: 240_000 });

const address = (name: string): string => `${unique(name)}@example.org`;

async function openMenu(page: Page, item: string): Promise<void> {
  await page.getByRole("button", { name: "More actions" }).click();
  await page.getByRole("menuitem", { name: item }).click();
}

test("an address is looked up, suppressed, and freed again", async ({ page, waypost }) => {
  const email = address("ada");
  await page.goto("/suppressions");
  await page.getByRole("searchbox").fill(email);
  await page.getByRole("button", { name: "Search", exact: true }).click();
  await expect(page).toHaveURL(new RegExp(`email=${encodeURIComponent(email).replaceAll(".", "\\.")}`));
  await expect(page.getByText(`${email} is not suppressed. Messages to it are sent.`)).toBeVisible();

  await page.getByRole("button", { name: "Suppress it" }).click();
  const dialog = page.getByRole("dialog");
  await expect(dialog.getByLabel("Address")).toHaveValue(email);
  await dialog.getByLabel("Source").selectOption({ label: "Reported as spam" });
  await dialog.getByRole("button", { name: "Suppress the address" }).click();
  await expect(page.getByText("It gets no messages at all: the recipient reported a message as spam")).toBeVisible();
  const { data } = await waypost.suppressions.list({ email });
  expect(data.map((row) => row.source)).toEqual(["COMPLAINT"]);

  // A reload shows the same.
  await page.reload();
  await expect(page.getByText(`${email} is suppressed.`)).toBeVisible();
  await look(page, "suppressions-found");

  await page.getByRole("button", { name: "Remove", exact: true }).click();
  await expect(page.getByRole("dialog")).toContainText(`Messages can be sent to ${email} again.`);
  await page.getByRole("button", { name: "Remove the suppression" }).click();
  await expect(page.getByText(`${email} is not suppressed.`)).toBeVisible();
  expect((await waypost.suppressions.list({ email })).data).toEqual([]);
});

test("a wrong address is named at its field", async ({ page }) => {
  await page.goto("/suppressions?open=add");
  const field = page.getByRole("dialog").getByLabel("Address");
  await field.fill("no-address");
  await page.getByRole("button", { name: "Suppress the address" }).click();
  await expect(field).toHaveAttribute("aria-invalid", "true");
  await expect(field).toBeFocused();
  await look(page, "suppressions-add-wrong");
});

test("a bounce is listed with the message that caused it", async ({ page, waypost }) => {
  // An account of its own, which reports its events.
  const account = await waypost.providers.create({ providerType: "SENDGRID", displayName: unique("Bounces"), credentials: { apiKey: `SG.${unique("key")}` } });
  const tag = unique("bounces");
  const rule = await waypost.routingRules.create({ name: tag, tags: [tag], providerAccountId: account.id, priority: 900 });
  const email = address("hard-bounce+dash");
  const sent = await waypost.messages.send({ from: "shop@example.com", to: email, subject: "Your receipt", text: "Thank you.", tags: [tag] });
  await expect(async () => {
    expect((await waypost.suppressions.list({ email })).data.length).toBe(1);
  }).toPass({ timeout: 30_000 });
  await waypost.routingRules.delete(rule.id);
  await page.goto(`/suppressions?email=${encodeURIComponent(email)}&source=BOUNCE&since=24h`);
  const row = page.getByRole("row").filter({ hasText: email });
  await expect(row).toContainText("Bounced");
  await expect(row.getByRole("link", { name: "Show" })).toHaveAttribute("href", new RegExp(`/messages/${sent.messageId}$`));
  await page.getByLabel("Source").selectOption({ label: "Unsubscribed" });
  await expect(page.getByText("No suppression matches")).toBeVisible();
  await look(page, "suppressions-none-match");
  await page.getByRole("button", { name: "Clear the filters" }).click();
  await expect(page).not.toHaveURL(/source=/);
  await expect(page.getByRole("table", { name: "Suppressions" })).toBeVisible();
  await look(page, "suppressions");
});

test("a CSV file is imported, and its wrong rows are named by their lines", async ({ page, waypost }) => {
  const [one, two, three] = [address("one"), address("two"), address("three")];
  await waypost.suppressions.create({ email: two });
  const file = `email,source,createdAt\n${one},BOUNCE,2026-02-01T10:00:00Z\nno-address,,\n${two},,\n"${three}",NONSENSE,\n${one},,\n`;
  await page.goto("/suppressions");
  await page.getByRole("button", { name: "Import", exact: true }).click();
  const dialog = page.getByRole("dialog");
  await look(page, "suppressions-import");
  await dialog.getByLabel("File", { exact: true }).setInputFiles({ name: "list.csv", mimeType: "text/csv", buffer: Buffer.from(file) });
  await expect(dialog).toContainText("list.csv");
  await dialog.getByRole("button", { name: "Import 5 rows" }).click();

  await expect(dialog).toContainText("Nothing was imported yet: 2 rows are wrong.");
  const rows = dialog.getByRole("list", { name: "Wrong rows with their lines" }).getByRole("listitem");
  await expect(rows.nth(0)).toContainText("Line 3no-address,,email must be an email address");
  await expect(rows.nth(1)).toContainText(`Line 5"${three}",NONSENSE,source must be one of`);
  await look(page, "suppressions-import-wrong");
  expect((await waypost.suppressions.list({ email: one })).data).toEqual([]);

  await dialog.getByRole("button", { name: "Leave these rows out and import 3 rows" }).click();
  await expect(dialog).toContainText("The list was imported, without 2 wrong rows.");
  await expect(dialog.getByText("Added").locator("..")).toContainText("1");
  await expect(dialog.getByText("Skipped").locator("..")).toContainText("2");
  const { data } = await waypost.suppressions.list({ email: one });
  expect(data.map((row) => [row.source, row.createdAt])).toEqual([["BOUNCE", "2026-02-01T10:00:00.000Z"]]);
  await look(page, "suppressions-import-report");
});

test("a pasted list without a first row is imported for a group, and a list is removed", async ({ page, waypost }) => {
  const group = await waypost.unsubscribeGroups.create({ name: unique("Newsletter") });
  const emails = [address("a"), address("b"), address("c")];
  await page.goto("/suppressions?open=import");
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("CSV file or list of addresses").fill(`${emails[0]}, ${emails[1]}\n${emails[2]}`);
  await dialog.getByLabel("Applies to").selectOption(group.id);
  await dialog.getByRole("button", { name: "Import 3 rows" }).click();
  await expect(dialog).toContainText("The whole list was imported.");
  await dialog.getByRole("button", { name: "Done" }).click();
  expect((await waypost.suppressions.list({ groupId: group.id })).data.length).toBe(3);

  await page.goto(`/suppressions?group=${group.id}`);
  await expect(page.getByRole("row")).toHaveCount(4);
  await openMenu(page, "Remove a list");
  await dialog.getByLabel("Addresses").fill(`email\n${emails[0]}\n${emails[1]}\n${address("unknown")}`);
  await dialog.getByLabel("Which suppressions").selectOption(group.id);
  await look(page, "suppressions-remove");
  await dialog.getByRole("button", { name: "Remove the suppressions of 3 addresses" }).click();
  await expect(dialog).toContainText("2 suppressions were removed.");
  await expect(dialog.getByText("Not found").locator("..")).toContainText("1");
  await dialog.getByRole("button", { name: "Done" }).click();
  await expect(page.getByRole("row")).toHaveCount(2);
});

test("the lists of a provider account are imported", async ({ page, waypost }) => {
  const apiKey = `SG.${unique("lists")}`;
  const account = await waypost.providers.create({ providerType: "SENDGRID", displayName: unique("Lists"), credentials: { apiKey } });
  const [bounced, complained] = [address("bounced"), address("complained")];
  await fetch(`${process.env.SIMULATOR_URL}/suppression-lists`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      provider: "SENDGRID",
      credential: apiKey,
      addresses: [
        { address: bounced, kind: "bounce" },
        { address: complained, kind: "complaint" },
      ],
    }),
  }).then((answer) => expect(answer.status).toBe(204));
  await page.goto("/suppressions");
  await openMenu(page, "Import from a provider account");
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Provider account").selectOption(account.id);
  await look(page, "suppressions-provider");
  await dialog.getByRole("button", { name: "Import" }).click();
  await expect(dialog).toContainText("All lists of the account were read.");
  await expect(dialog.getByText("Added").locator("..")).toContainText("2");
  expect((await waypost.suppressions.list({ email: complained })).data.map((row) => row.source)).toEqual(["COMPLAINT"]);
});

test("suppressions are exported as CSV, and the file can be imported again", async ({ page, waypost }) => {
  const group = await waypost.unsubscribeGroups.create({ name: unique("Offers") });
  const email = address("exported");
  const made = await waypost.suppressions.create({ email, unsubscribeGroupId: group.id, source: "UNSUBSCRIBE" });
  await page.goto(`/suppressions?group=${group.id}`);
  await openMenu(page, "Export");
  const dialog = page.getByRole("dialog");
  await expect(dialog.getByLabel("Unsubscribe group")).toHaveValue(group.id);
  await look(page, "suppressions-export");
  const started = page.waitForEvent("download");
  await dialog.getByRole("button", { name: "Download" }).click();
  const download = await started;
  expect(download.suggestedFilename()).toBe("suppressions.csv");
  const chunks: Buffer[] = [];
  for await (const chunk of await download.createReadStream()) chunks.push(chunk as Buffer);
  const file = Buffer.concat(chunks).toString();
  expect(file).toBe(`emailHash,source,createdAt,unsubscribeGroupId\n${made.emailHash},UNSUBSCRIBE,${made.createdAt},${group.id}\n`);
  await waypost.suppressions.delete(made.id);
  const again = await waypost.suppressions.import(file, { unsubscribeGroupId: group.id });
  expect(again.imported).toBe(1);
});
