import type { Page } from "@playwright/test";
import { expect, look, test, unique } from "./fixtures";
import { setUp } from "./routing-accounts";

// Each look draws the page four times.
test.describe.configure({ timeout: 180_000 });

const account = (page: Page, number: number) => page.getByRole("group", { name: `Account ${number}`, exact: true });
const row = (page: Page, name: string) => page.getByRole("listitem").filter({ has: page.getByRole("link", { name, exact: true }) }).first();

test("several accounts share the mail of a rule, each with its weight and its caps", async ({ page, waypost }) => {
  const { domain, first, second, tearDown } = await setUp(waypost);
  const name = unique("Shared");
  await page.goto("/routing/new");
  await page.getByLabel("Name").fill(name);
  await page.getByLabel("Sender's domain").fill(domain);
  await page.getByLabel("Account", { exact: true }).selectOption(first.id);
  await page.getByRole("radio", { name: "Several share the mail" }).click();
  await expect(account(page, 1).getByLabel("Account 1", { exact: true })).toHaveValue(first.id);
  await expect(account(page, 1)).toContainText("gets 50 %");
  await account(page, 2).getByLabel("Account 2", { exact: true }).selectOption(second.id);
  await account(page, 1).getByLabel("Weight").fill("70");
  await account(page, 2).getByLabel("Weight").fill("0");
  await account(page, 2).getByLabel("Daily cap", { exact: true }).fill("50,000");
  await account(page, 2).getByLabel("Hourly cap").fill("many");
  await page.getByLabel("When an account has reached its cap").selectOption("wait");
  await page.getByLabel("How the mail is spread").selectOption("recipientDomain");

  // The API's issues are at their fields.
  await page.getByRole("button", { name: "Add the rule" }).click();
  await expect(account(page, 2).getByLabel("Weight")).toHaveAttribute("aria-invalid", "true");
  await expect(account(page, 2).getByLabel("Hourly cap")).toHaveAttribute("aria-invalid", "true");
  await expect(account(page, 1).getByLabel("Weight")).not.toHaveAttribute("aria-invalid", "true");
  await look(page, "routing-shares-issues");
  await account(page, 2).getByLabel("Weight").fill("30");
  await expect(account(page, 1)).toContainText("gets 70 %");
  await expect(account(page, 2)).toContainText("gets 30 %");
  await account(page, 2).getByLabel("Hourly cap").fill("5000");

  // An account that shares the mail is no fallback; one that is added leaves the fallbacks.
  await expect(page.getByRole("list", { name: "Accounts that share the mail" }).getByRole("link")).toHaveCount(2);
  await look(page, "routing-shares");
  await page.getByRole("button", { name: "Add the rule" }).click();
  await expect(page).toHaveURL(/\/routing$/);
  const rule = (await waypost.routingRules.list()).data.find((one) => one.name === name)!;
  expect(rule).toMatchObject({
    targets: [
      { providerAccountId: first.id, weight: 70, dailyCap: null, hourlyCap: null },
      { providerAccountId: second.id, weight: 30, dailyCap: 50_000, hourlyCap: 5_000 },
    ],
    sticky: "recipientDomain",
    overCap: "wait",
  });
  await expect(row(page, name).getByRole("link", { name: first.displayName })).toContainText("70 %");
  await expect(row(page, name)).toContainText(`At most: ${second.displayName} 50,000 a day, 5,000 an hour. Over a cap, mail waits.`);
  await expect(row(page, name)).toContainText("All mail to a domain by one account");
  await look(page, "routing-shares-list");

  // An account that is paused gets nothing, and the rule is not passed over.
  await waypost.providers.update(first.id, { isActive: false });
  await page.reload();
  await expect(row(page, name)).toContainText(`${first.displayName} is paused: the other accounts send its mail.`);
  await waypost.providers.update(first.id, { isActive: true });

  // One of the accounts sends all mail again.
  await page.reload();
  await page.getByRole("link", { name, exact: true }).click();
  await page.getByRole("button", { name: "Remove account 1" }).click();
  await expect(account(page, 1).getByLabel("Account 1", { exact: true })).toHaveValue(second.id);
  await expect(page.getByRole("button", { name: "Remove account 1" })).toBeDisabled();
  await page.getByRole("radio", { name: "One account" }).click();
  await expect(page.getByLabel("Account", { exact: true })).toHaveValue(second.id);
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page).toHaveURL(/\/routing$/);
  expect(await waypost.routingRules.get(rule.id)).toMatchObject({ providerAccountId: second.id, targets: [] });
  await tearDown();
});

test("a rule that is saved keeps what the form did not change", async ({ page, waypost }) => {
  const { domain, first, second, tearDown } = await setUp(waypost);
  const rule = await waypost.routingRules.create({
    name: unique("Kept"),
    senderDomain: domain,
    recipientDomains: ["example.net", "*.example.com"],
    messageClass: "bulk",
    minSizeBytes: 1_234_567,
    maxSizeBytes: 25_000_000,
    test: false,
    targets: [
      { providerAccountId: second.id, weight: 1_000, hourlyCap: 7 },
      { providerAccountId: first.id, weight: 1, dailyCap: 100_000_000 },
    ],
    sticky: "sender",
    overCap: "wait",
    onUnknown: "fail",
  });
  await page.goto(`/routing/${rule.id}`);
  await page.getByLabel("Name").fill(`${rule.name} still`);
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page).toHaveURL(/\/routing$/);
  const saved = await waypost.routingRules.get(rule.id);
  expect(saved).toEqual({ ...rule, name: `${rule.name} still`, updatedAt: saved.updatedAt });
  await tearDown();
});

test("a rule is for recipients, a kind of mail, sizes and tests", async ({ page, waypost }) => {
  const { domain, first, tearDown } = await setUp(waypost);
  const [name, after] = [unique("Conditions"), unique("After")];
  await waypost.routingRules.create({ name: after, providerAccountId: first.id, priority: 0, senderDomain: domain });
  await page.goto("/routing/new");
  await page.getByLabel("Name").fill(name);
  await page.getByLabel("Account", { exact: true }).selectOption(first.id);
  await page.getByText("More conditions").click();
  await page.getByLabel("Recipients' domains").fill(`nobody.${domain}, *.${domain}`);
  await page.getByLabel("Kind of mail").selectOption("bulk");
  await page.getByLabel("Tests", { exact: true }).selectOption("live");
  await page.getByLabel("At least this large").fill("5 MB");
  await page.getByLabel("At most this large").fill("200 KB");
  await page.getByLabel("Priority").fill("900");
  await page.getByRole("button", { name: "Add the rule" }).click();
  await expect(page.getByLabel("At most this large")).toHaveAttribute("aria-invalid", "true");
  await page.getByLabel("At most this large").fill("6.5 MB");
  const words = `Live bulk mail to recipients at nobody.${domain} or any subdomain of ${domain} only, of 5.0 MB to 6.5 MB`;
  await expect(page.getByText(words)).toBeVisible();
  await look(page, "routing-conditions");
  await page.getByRole("button", { name: "Add the rule" }).click();
  await expect(page).toHaveURL(/\/routing$/);
  await expect(row(page, name)).toContainText(words);
  // It does not take all mail, so the rule below is reached.
  await expect(row(page, after)).not.toContainText("Never reached");
  const rule = (await waypost.routingRules.list()).data.find((one) => one.name === name)!;
  expect(rule).toMatchObject({
    senderDomain: null,
    recipientDomains: [`nobody.${domain}`, `*.${domain}`],
    messageClass: "bulk",
    minSizeBytes: 5_000_000,
    maxSizeBytes: 6_500_000,
    test: false,
  });

  // What is set is seen when the rule is opened again, and can be taken away.
  await page.getByRole("link", { name, exact: true }).click();
  await expect(page.getByLabel("At least this large")).toHaveValue("5 MB");
  await page.getByLabel("At least this large").fill("");
  await page.getByLabel("At most this large").fill("");
  await page.getByLabel("Kind of mail").selectOption("");
  await page.getByLabel("Tests", { exact: true }).selectOption("");
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page).toHaveURL(/\/routing$/);
  expect(await waypost.routingRules.get(rule.id)).toMatchObject({ messageClass: null, minSizeBytes: null, maxSizeBytes: null, test: null });
  await tearDown();
});

test("where would this mail go: by recipients, kind, size and test, to accounts that share it", async ({ page, waypost }) => {
  const { domain, first, second, tearDown } = await setUp(waypost);
  const base = { senderDomain: domain, providerAccountId: first.id, priority: 900 };
  const [toNet, bulk, large, tests, shared] = ["Net", "Bulk", "Large", "Tests", "Shared"].map(unique) as [string, string, string, string, string];
  await waypost.routingRules.create({ ...base, name: toNet, recipientDomains: ["example.net"] });
  await waypost.routingRules.create({ ...base, name: bulk, messageClass: "bulk" });
  await waypost.routingRules.create({ ...base, name: large, minSizeBytes: 5_000_000 });
  await waypost.routingRules.create({ ...base, name: tests, test: true });
  await waypost.routingRules.create({
    name: shared,
    senderDomain: domain,
    priority: 900,
    targets: [
      { providerAccountId: first.id, weight: 75, dailyCap: 1 },
      { providerAccountId: second.id, weight: 25, dailyCap: 1_000, hourlyCap: 100 },
    ],
  });
  await page.goto("/routing?tab=where");
  await page.getByLabel("From").fill(domain);
  await page.getByRole("button", { name: "Show the way" }).click();
  const way = page.getByRole("region", { name: "The way of the mail" });
  const stop = (text: string) => way.getByRole("listitem").filter({ hasText: text });
  await expect(way.getByText(`${first.displayName} and ${second.displayName} share such mail. No account would stand in for them.`)).toBeVisible();
  await expect(stop(toNet)).toContainText("enter recipients to see whether it matches");
  await expect(stop(bulk)).toContainText("It is for bulk mail; this mail is transactional.");
  await expect(stop(large)).toContainText("It is for mail of 5.0 MB or more; this mail has 0 B.");
  await expect(stop(tests)).toContainText("It is for tests only; this mail is live.");
  await expect(stop(first.displayName).filter({ hasText: "verified here" })).toContainText("gets 75 %");
  await expect(stop(second.displayName).filter({ hasText: "verified here" })).toContainText("This hour: 0 of 100 recipients");

  // The caps count what is sent.
  await waypost.messages.send({ from: `shop@${domain}`, to: "ada@example.org", subject: "One", text: "One" });
  await waypost.messages.send({ from: `shop@${domain}`, to: "ada@example.org", subject: "Two", text: "Two" });
  await waypost.messages.send({ from: `shop@${domain}`, to: "ada@example.org", subject: "Three", text: "Three" });
  await expect(async () => {
    const { targets } = await waypost.routingRules.resolve({ from: `shop@${domain}`, to: ["ada@example.org"] });
    expect(targets[0]!.usedToday).toBe(1);
    expect(targets[1]!.usedToday).toBeGreaterThanOrEqual(2);
  }).toPass({ timeout: 30_000 });
  await page.getByLabel("To", { exact: true }).fill("example.com, ada@example.org");
  await page.getByRole("button", { name: "Show the way" }).click();
  await expect(stop(toNet)).toContainText("It is for recipients at example.net only; this mail goes to example.com and example.org.");
  await expect(stop(first.displayName).filter({ hasText: "verified here" })).toContainText("Today: 1 of 1 recipients; the next account sends");
  await look(page, "routing-where-shares");

  await page.getByLabel("To", { exact: true }).fill("example.net");
  await page.getByRole("button", { name: "Show the way" }).click();
  await expect(stop(toNet)).toContainText("matches");
  await page.getByLabel("To", { exact: true }).fill("");
  await page.getByText("Kind, size, test").click();
  await page.getByLabel("Kind of mail").selectOption("bulk");
  await page.getByRole("button", { name: "Show the way" }).click();
  await expect(stop(bulk)).toContainText("matches");
  await page.getByLabel("Kind of mail").selectOption("transactional");
  await page.getByLabel("Size").fill("large");
  await page.getByRole("button", { name: "Show the way" }).click();
  await expect(page.getByLabel("Size")).toHaveAttribute("aria-invalid", "true");
  await page.getByLabel("Size").fill("5 MB");
  await page.getByRole("button", { name: "Show the way" }).click();
  await expect(stop(large)).toContainText("matches");
  await page.getByLabel("Size").fill("");
  await page.getByLabel("It is a test").check();
  await page.getByRole("button", { name: "Show the way" }).click();
  await expect(stop(tests)).toContainText("matches");

  // The question is in the URL: a reload asks it again.
  await page.reload();
  await expect(page.getByLabel("It is a test")).toBeChecked();
  await expect(stop(tests)).toContainText("matches");
  await tearDown();
});
