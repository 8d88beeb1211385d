import type { Page } from "@playwright/test";
import { expect, look, test, unique } from "./fixtures";
import { setUp } from "./routing-accounts";

// Each look draws the page four times.
test.describe.configure({ timeout: 180_000 });

const account = (page: Page, number: number) => page.getByRole("group", { name: `Account ${number}`, exact: true });

test("an account is warmed up, and the rule's page shows how far it is", async ({ page, waypost }) => {
  const { domain, first, second, tearDown } = await setUp(waypost);
  const name = unique("Warm-up");
  await page.goto("/routing/new");
  await page.getByLabel("Name").fill(name);
  await page.getByLabel("Sender's domain").fill(domain);
  await page.getByLabel("Account", { exact: true }).selectOption(first.id);
  await page.getByRole("radio", { name: "Several share the mail" }).click();
  await account(page, 2).getByLabel("Account 2", { exact: true }).selectOption(second.id);
  await account(page, 2).getByLabel("Daily cap", { exact: true }).fill("50000");
  await account(page, 2).getByText("Warm-up").click();
  await account(page, 2).getByLabel("Raise the daily cap step by step").check();
  await account(page, 2).getByLabel("First day's cap").fill("500");
  await account(page, 2).getByLabel("Factor of a step").fill("0.5");
  await account(page, 2).getByLabel("Days of a step").fill("2");
  await account(page, 2).getByLabel("First day", { exact: true }).fill("2099-01-01");
  await page.getByLabel("Bounces at most (%)").fill("3");
  await page.getByRole("button", { name: "Add the rule" }).click();
  await expect(account(page, 2).getByLabel("Factor of a step")).toHaveAttribute("aria-invalid", "true");
  await account(page, 2).getByLabel("Factor of a step").fill("10");
  await expect(account(page, 2)).toContainText("500 recipients on 1 Jan 2099, the daily cap of 50,000 from 5 Jan 2099 on, if no step is held.");
  await look(page, "routing-warm-up");
  await page.getByRole("button", { name: "Add the rule" }).click();
  await expect(page).toHaveURL(/\/routing$/);
  const rule = (await waypost.routingRules.list()).data.find((one) => one.name === name)!;
  expect(rule.targets[1]).toMatchObject({ ramp: { start: 500, factor: 10, everyDays: 2, from: "2099-01-01" } });
  expect(rule).toMatchObject({ rampBounds: { bounceRate: 0.03, complaintRate: 0.001 } });

  await page.getByRole("link", { name, exact: true }).click();
  await expect(page.getByText("Warm-up not begun")).toBeVisible();
  await look(page, "routing-progress");
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page).toHaveURL(/\/routing$/);
  const saved = await waypost.routingRules.get(rule.id);
  expect(saved).toEqual({ ...rule, updatedAt: saved.updatedAt });
  await tearDown();
});

test("a rule keeps to a region, looks at mailbox providers, and minds the health of accounts", async ({ page, waypost }) => {
  const { domain, first, second, tearDown } = await setUp(waypost);
  const name = unique("Bounds");
  await page.goto("/routing/new");
  await page.getByLabel("Name").fill(name);
  await page.getByLabel("Sender's domain").fill(domain);
  await page.getByLabel("Account", { exact: true }).selectOption(first.id);
  await page.getByRole("radio", { name: "Several share the mail" }).click();
  await account(page, 2).getByLabel("Account 2", { exact: true }).selectOption(second.id);
  await page.getByLabel("What decides the shares").selectOption("health");
  await page.getByText("More conditions").click();
  await page.getByRole("checkbox", { name: "Google" }).check();
  await page.getByRole("checkbox", { name: "Yahoo" }).check();
  await expect(page.getByText(`Mail from ${domain}, to mailboxes at Google or Yahoo only`)).toBeVisible();
  // An account of SendGrid is in the US, unless it says otherwise.
  await page.getByLabel("Region").selectOption("eu");
  await page.getByRole("button", { name: "Add the rule" }).click();
  await expect(account(page, 1).getByLabel("Account 1", { exact: true })).toHaveAttribute("aria-invalid", "true");
  await page.getByLabel("Region").selectOption("us");
  await page.getByRole("button", { name: "Add the rule" }).click();
  await expect(page).toHaveURL(/\/routing$/);
  const rule = (await waypost.routingRules.list()).data.find((one) => one.name === name)!;
  expect(rule).toMatchObject({ region: "us", prefer: "health", recipientMailboxProviders: ["google", "yahoo"] });
  await page.getByRole("link", { name, exact: true }).click();
  await page.getByLabel("Region").selectOption("");
  await page.getByRole("checkbox", { name: "Google" }).uncheck();
  await page.getByRole("checkbox", { name: "Yahoo" }).uncheck();
  await page.getByLabel("What decides the shares").selectOption("weight");
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page).toHaveURL(/\/routing$/);
  expect(await waypost.routingRules.get(rule.id)).toMatchObject({ region: null, prefer: "weight", recipientMailboxProviders: [] });
  await tearDown();
});

test("a rule is tried on the last day's mail before it is saved", async ({ page, waypost }) => {
  const { domain, first, second, tearDown } = await setUp(waypost);
  const name = unique("Tried");
  const rule = await waypost.routingRules.create({ name, senderDomain: domain, providerAccountId: first.id, priority: 900 });
  const { messageId } = await waypost.messages.send({ from: `shop@${domain}`, to: "ada@example.org", subject: "One", text: "One" });
  await expect.poll(async () => (await waypost.messages.get(messageId!)).status, { timeout: 30_000 }).toMatch(/SENT|DELIVERED/);
  await page.goto(`/routing/${rule.id}`);
  await page.getByLabel("Account", { exact: true }).selectOption(second.id);
  await page.getByRole("button", { name: "Try on the last day's mail" }).click();
  await expect(page.getByText(/^This rule would have taken 1 message of /)).toBeVisible();
  const row = (id: string) => page.getByRole("row").filter({ has: page.locator(`a[href$="${id}"]`) }).getByRole("cell");
  await expect(row(first.id).nth(1)).toHaveText("1");
  await expect(row(first.id).nth(2)).toHaveText("0");
  await expect(row(second.id).nth(2)).toHaveText("1");
  await look(page, "routing-tried");
  // Nothing was saved, and what was found of another draft is not shown.
  await page.getByLabel("Name").fill("");
  await expect(page.getByText(/^This rule would have taken/)).toHaveCount(0);
  // Tests that run beside this one may move the rule.
  const { priority, updatedAt, ...saved } = await waypost.routingRules.get(rule.id);
  expect({ ...saved, priority: rule.priority, updatedAt: rule.updatedAt }).toEqual(rule);
  await tearDown();
});
