import { expect, look, test, unique } from "./fixtures";

// Each look draws the page four times.
test.describe.configure({ timeout: 180_000 });

test("a domain is added, its records are copied, and it is found verified without a click", async ({ page, waypost, context }) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const name = unique("Domains");
  const domain = `${unique("shop")}.example.org`;
  const account = await waypost.providers.create({ providerType: "SENDGRID", displayName: name, credentials: { apiKey: `SG.${name}` } });
  // With one account there is nothing to choose.
  await waypost.providers.create({ providerType: "SENDGRID", displayName: unique("Another"), credentials: { apiKey: `SG.another-${name}` } });
  await page.goto("/domains");
  await page.getByRole("button", { name: "Add a domain" }).click();
  await page.getByLabel("Domain", { exact: true }).fill("no domain");
  await page.getByRole("button", { name: "Add the domain" }).click();
  await expect(page.getByText(/must be a domain name/)).toBeVisible();
  await page.getByLabel("Domain", { exact: true }).fill(domain);
  await page.getByLabel("Account", { exact: true }).selectOption(account.id);
  await page.getByRole("button", { name: "Add the domain" }).click();
  await expect(page).toHaveURL(new RegExp(`/domains/${domain}$`));

  const records = page.getByRole("list", { name: `DNS records of ${domain}` });
  await expect(records.getByRole("listitem")).toHaveCount(3);
  await records.getByRole("button", { name: "Copy the name" }).first().click();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toContain(domain);
  // The simulator verifies a domain when it is asked: the page asks by itself.
  await expect(page.getByText("Verified", { exact: true })).toBeVisible({ timeout: 20_000 });
  await expect(records.getByText("Found").first()).toBeVisible();
  await look(page, "domains-verified");

  await page.getByRole("button", { name: `Remove ${domain} from ${name}` }).click();
  await page.getByRole("button", { name: "Remove the domain" }).click();
  await expect(page.getByText("No account has this domain")).toBeVisible();
  await look(page, "domains-removed");
  await waypost.providers.delete(account.id);
});

test("an unverified domain is checked again every ten seconds", async ({ page, waypost }) => {
  const name = unique("Unverified");
  const domain = `unverified-${unique("shop")}.example.org`;
  const account = await waypost.providers.create({ providerType: "SENDGRID", displayName: name, credentials: { apiKey: `SG.${name}` } });
  await waypost.providers.domains.create(account.id, { domain });
  let checks = 0;
  page.on("request", (request) => {
    if (request.method() === "POST" && request.url().endsWith("/verify")) checks += 1;
  });
  await page.goto(`/domains/${domain}`);
  await expect(page.getByText("Not found yet").first()).toBeVisible();
  // Waypost asks DNS too. The domains of tests are in none, so it does not know.
  await page.getByRole("button", { name: "Look up now" }).click();
  await expect(page.getByText("DNS was not asked yet or did not answer")).toBeVisible();
  await expect(page.getByText(/^\d+ of 10$/)).toBeVisible();
  await look(page, "domains-unverified");
  await expect.poll(() => checks, { timeout: 30_000 }).toBeGreaterThanOrEqual(2);
  await waypost.providers.delete(account.id);
});

test("the list groups accounts by domain, and its filters are in the URL", async ({ page, waypost }) => {
  const domain = `${unique("grouped")}.example.org`;
  const accounts = [];
  for (const part of ["One", "Two"]) {
    const name = unique(part);
    const account = await waypost.providers.create({ providerType: "SENDGRID", displayName: name, credentials: { apiKey: `SG.${name}` } });
    await waypost.providers.domains.create(account.id, { domain });
    accounts.push(account);
  }
  await page.goto("/domains");
  await look(page, "domains");
  await page.getByRole("searchbox", { name: "Search domains" }).fill(domain);
  await expect(page).toHaveURL(new RegExp(`search=${domain}`));
  await page.reload();
  const row = page.getByRole("row").filter({ hasText: domain });
  await expect(row).toHaveCount(1);
  for (const account of accounts) await expect(row).toContainText(account.displayName);
  await page.getByLabel("State").selectOption("unknown");
  await expect(page.getByText("No domain matches")).toBeVisible();
  await look(page, "domains-no-match");
  await page.getByRole("button", { name: "Clear the filters" }).click();
  await expect(page).toHaveURL(/\/domains$/);
  for (const account of accounts) await waypost.providers.delete(account.id);
});
