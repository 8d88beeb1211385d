import type { RoutingRule, Waypost } from "waypost";
import { expect, look, test, unique } from "./fixtures";
import { setUp } from "./routing-accounts";

// Each look draws the page four times.
test.describe.configure({ timeout: 180_000 });

const namesOf = async (waypost: Waypost, names: readonly string[]): Promise<string[]> =>
  (await waypost.routingRules.list()).data.map((rule: RoutingRule) => rule.name).filter((name: string) => names.includes(name));

test("a rule is made with conditions, fallbacks and a place, then changed and removed", async ({ page, waypost }) => {
  const { domain, first, second, tearDown } = await setUp(waypost);
  const name = unique("Receipts");
  await page.goto("/routing");
  await page.getByRole("link", { name: "Add a rule" }).first().click();
  await page.getByRole("button", { name: "Add the rule" }).click();
  await expect(page.getByLabel("Name")).toHaveAttribute("aria-invalid", "true");
  await page.getByLabel("Name").fill(name);
  await page.getByLabel("Sender's domain").fill("not a domain");
  await page.getByRole("button", { name: "Add the rule" }).click();
  await expect(page.getByText(/must be a domain such as/)).toBeVisible();
  await page.getByLabel("Sender's domain").fill(domain);
  await page.getByLabel("Tags").fill("receipts, invoices");
  await page.getByLabel("A message must have").selectOption("all");
  await expect(page.getByText(`Mail from ${domain}, with the tags receipts and invoices`)).toBeVisible();
  await page.getByLabel("Account", { exact: true }).selectOption(first.id);
  await page.getByRole("button", { name: "Add a fallback" }).click();
  await page.getByLabel("Fallback 1", { exact: true }).selectOption(second.id);
  // A fallback that becomes the account changes places with it; and back again.
  await page.getByLabel("Account", { exact: true }).selectOption(second.id);
  await expect(page.getByLabel("Fallback 1", { exact: true })).toHaveValue(first.id);
  await page.getByLabel("Account", { exact: true }).selectOption(first.id);
  await page.getByLabel("Send again at once").check();
  await look(page, "routing-rule");
  await page.getByRole("button", { name: "Add the rule" }).click();
  await expect(page).toHaveURL(/\/routing$/);

  const rule = (await waypost.routingRules.list()).data.find((one) => one.name === name)!;
  expect(rule).toMatchObject({
    senderDomain: domain,
    tags: ["receipts", "invoices"],
    tagMatch: "all",
    providerAccountId: first.id,
    fallbackProviderAccountIds: [second.id],
    onUnknown: "resend",
  });
  const row = page.getByRole("listitem").filter({ has: page.getByRole("link", { name, exact: true }) });
  await expect(row.getByRole("list", { name: "Account and fallbacks" }).getByRole("link")).toHaveCount(2);
  await row.getByRole("button", { name: `Actions of ${name}` }).click();
  await page.getByRole("menuitem", { name: "Switch off" }).click();
  await expect(row.getByText("Off", { exact: true })).toBeVisible();

  await page.getByRole("link", { name, exact: true }).click();
  await page.getByLabel("Tags").fill("receipts");
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page).toHaveURL(/\/routing$/);
  expect((await waypost.routingRules.get(rule.id)).tags).toEqual(["receipts"]);

  await page.getByRole("link", { name, exact: true }).click();
  await page.getByRole("button", { name: "Remove", exact: true }).click();
  await page.getByRole("button", { name: "Remove the rule" }).click();
  await expect(page).toHaveURL(/\/routing$/);
  await expect(page.getByRole("link", { name, exact: true })).toHaveCount(0);
  await tearDown();
});

test("rules are ordered by the keyboard and by dragging", async ({ page, waypost }) => {
  const { domain, first, tearDown } = await setUp(waypost);
  const [a, b, c] = [unique("A"), unique("B"), unique("C")];
  // The same priority: the first move has to spread them.
  for (const name of [a, b, c]) {
    await waypost.routingRules.create({ name, senderDomain: domain, providerAccountId: first.id, priority: 1_000 });
  }
  await page.goto("/routing");
  const handle = (name: string) => page.getByRole("button", { name: new RegExp(`^Move ${name}`) });
  await handle(c).focus();
  await page.keyboard.press("ArrowUp");
  await expect.poll(() => namesOf(waypost, [a, b, c])).toEqual([a, c, b]);
  await expect(handle(c)).toBeFocused();
  await page.keyboard.press("ArrowUp");
  await expect.poll(() => namesOf(waypost, [a, b, c])).toEqual([c, a, b]);
  await look(page, "routing");

  const from = (await handle(b).boundingBox())!;
  const to = (await handle(c).boundingBox())!;
  await page.mouse.move(from.x + from.width / 2, from.y + from.height / 2);
  await page.mouse.down();
  await page.mouse.move(to.x + to.width / 2, to.y - 30, { steps: 8 });
  await page.mouse.up();
  await expect.poll(() => namesOf(waypost, [a, b, c])).toEqual([b, c, a]);

  const row = page.getByRole("listitem").filter({ has: page.getByRole("link", { name: b, exact: true }) });
  await row.getByRole("button", { name: `Actions of ${b}` }).click();
  await page.getByRole("menuitem", { name: "Move down" }).click();
  await expect.poll(() => namesOf(waypost, [a, b, c])).toEqual([c, b, a]);
  await tearDown();
});

test("where would this mail go: each rule passed over, the account, and its fallbacks", async ({ page, waypost }) => {
  const { domain, first, second, tearDown } = await setUp(waypost);
  const [off, tagged, chosen] = [unique("Off"), unique("Tagged"), unique("Chosen")];
  const base = { senderDomain: domain, providerAccountId: first.id, priority: 900 };
  await waypost.routingRules.create({ ...base, name: off, isActive: false });
  await waypost.routingRules.create({ ...base, name: tagged, tags: ["eu", "gdpr"], tagMatch: "all" });
  await waypost.routingRules.create({ ...base, name: chosen, fallbackProviderAccountIds: [second.id] });
  await page.goto("/routing");
  await page.getByRole("tab", { name: "Where would this mail go?" }).click();
  await page.getByLabel("From").fill("nobody");
  await page.getByRole("button", { name: "Show the way" }).click();
  await expect(page.getByLabel("From")).toHaveAttribute("aria-invalid", "true");
  await page.getByLabel("From").fill(`shop@${domain}`);
  await page.getByLabel("Tags").fill("eu");
  await page.getByRole("button", { name: "Show the way" }).click();

  const way = page.getByRole("region", { name: "The way of the mail" });
  await expect(way.getByText(`${first.displayName} sends the mail; one account can stand in for it.`)).toBeVisible();
  await expect(way.getByRole("listitem").filter({ hasText: off })).toContainText("The rule is switched off.");
  await expect(way.getByRole("listitem").filter({ hasText: tagged })).toContainText("The mail lacks the tag gdpr.");
  await expect(way.getByRole("listitem").filter({ hasText: chosen })).toContainText("matches");
  await expect(way.getByRole("listitem").filter({ hasText: second.displayName })).toContainText("Takes the mail if the accounts before it cannot.");
  await look(page, "routing-where");

  // The question is in the URL: a reload asks it again.
  await waypost.providers.update(second.id, { isActive: false });
  await page.reload();
  await expect(way.getByRole("listitem").filter({ hasText: second.displayName })).toContainText("Passed over: the account is paused.");

  await page.getByLabel("From").fill("shop@unverified.example.net");
  await waypost.routingRules.create({ ...base, name: unique("Unverified"), senderDomain: "unverified.example.net" });
  await page.getByRole("button", { name: "Show the way" }).click();
  await expect(page.getByRole("alert")).toContainText("unverified.example.net is not verified");
  await look(page, "routing-where-refused");

  // The domain alone says as much; and who comes back from a rule finds the question again.
  await page.getByLabel("From").fill(domain);
  await page.getByRole("button", { name: "Show the way" }).click();
  await expect(way.getByText(`${first.displayName} sends the mail`)).toBeVisible();
  await way.getByRole("link", { name: chosen }).click();
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("tab", { name: "Where would this mail go?" }).click();
  await expect(page.getByLabel("From")).toHaveValue(domain);
  await expect(way.getByText(`${first.displayName} sends the mail`)).toBeVisible();
  await tearDown();
});
