import type { ProviderAccount, Waypost } from "waypost";
import { expect, look, test, unique } from "./fixtures";

// Each look draws the page four times.
test.describe.configure({ timeout: 180_000 });

/** Connects an account at the simulator, by the API. */
const connect = (waypost: Waypost, displayName: string, apiKey: string): Promise<ProviderAccount> =>
  waypost.providers.create({ providerType: "SENDGRID", displayName, credentials: { apiKey } });

test("the wizard leads from credentials to a delivered mail", async ({ page, waypost }) => {
  const name = unique("Postmark");
  await page.goto("/providers");
  await page.getByRole("link", { name: "Connect an account" }).first().click();
  await expect(page.getByRole("link", { name: /Postmark/ })).toBeVisible();
  await look(page, "providers-connect");
  await page.getByRole("link", { name: /^Postmark/ }).click();
  await expect(page.getByRole("heading", { name: "At Postmark" })).toBeVisible();
  await look(page, "providers-connect-credentials");

  // What the API refuses stands at its field, and what the provider refuses is said too.
  await page.getByLabel("Name").fill(name);
  await page.getByRole("button", { name: "Check and connect" }).click();
  await expect(page.getByRole("textbox", { name: "Server API token" })).toHaveAttribute("aria-invalid", "true");
  await expect(page.getByText("is required")).toBeVisible();
  await page.getByRole("textbox", { name: "Server API token" }).fill("an-invalid-token");
  await page.getByRole("button", { name: "Check and connect" }).click();
  await expect(page.getByText(/rejected the credentials/)).toBeVisible();

  await page.getByRole("textbox", { name: "Server API token" }).fill(unique("server"));
  await page.getByRole("textbox", { name: "Account API token" }).fill(unique("account"));
  await page.getByRole("button", { name: "Check and connect" }).click();
  await expect(page).toHaveURL(/step=events/);
  await expect(page.getByText(/Waypost has told Postmark where to post events/)).toBeVisible();
  await look(page, "providers-connect-events");
  await page.getByRole("button", { name: "Continue with domains" }).click();
  await expect(page.getByText("You can send from these domains now.")).toBeVisible();
  await look(page, "providers-connect-domains");
  await page.getByRole("button", { name: "Continue with a first mail" }).click();

  const form = page.getByRole("form", { name: "Send a first mail" });
  await expect(form.getByLabel("From")).toHaveValue("hello@example.com");
  await form.getByLabel("To").fill(`${unique("first")}@example.org`);
  await form.getByText("The same as curl or SDK code").click();
  await expect(form.getByText(/curl .*\/v1\/send/)).toBeVisible();
  await form.getByRole("button", { name: "Send", exact: true }).click();
  await expect(page.getByText("Delivered. The account works from end to end.")).toBeVisible({ timeout: 30_000 });
  await look(page, "providers-connect-mail");
  await page.getByRole("link", { name: "Finish", exact: true }).click();
  await expect(page.getByRole("heading", { name: new RegExp(name) })).toBeVisible();

  const account = (await waypost.providers.list()).data.find((one) => one.displayName === name);
  expect(account?.eventsVerified).toBe(true);
  await waypost.providers.delete(account!.id);
});

test("a key that may not register events is told what to do by hand", async ({ page, waypost }) => {
  const account = await connect(waypost, unique("Restricted"), `SG.restricted-${unique("key")}`);
  await page.goto(`/providers/connect?account=${account.id}&step=events`);
  await page.getByRole("button", { name: "Register with SendGrid" }).click();
  await expect(page.getByRole("alert")).toContainText("user.webhooks.event.settings.create");
  await expect(page.getByText("Signed Event Webhook")).toBeVisible();
  await page.getByRole("textbox", { name: "Verification key" }).fill("no key");
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByText(/must be a P-256 key/)).toBeVisible();
  await look(page, "providers-connect-events-by-hand");
  await waypost.providers.delete(account.id);
});

for (const [type, heading, text] of [
  ["SENDGRID", "At SendGrid", "Create & View"],
  ["MAILGUN", "At Mailgun", "API Security"],
  ["SES", "At Amazon SES", "Create access key"],
  ["SMTP", "At your mail server", "WAYPOST_SMTP_ALLOW"],
] as const) {
  test(`the wizard says what to do for ${type}`, async ({ page }) => {
    await page.goto(`/providers/connect?type=${type}`);
    await expect(page.getByRole("heading", { name: heading })).toBeVisible();
    await expect(page.getByText(text)).toBeVisible();
    await look(page, `providers-connect-${type.toLowerCase()}`);
  });
}

test("an account of Amazon SES is told to make its topic", async ({ page, waypost }) => {
  const account = await waypost.providers.create({
    providerType: "SES",
    displayName: unique("SES"),
    credentials: { accessKeyId: unique("AKIA"), secretAccessKey: "secret", region: "eu-central-1" },
  });
  await page.goto(`/providers/connect?account=${account.id}&step=events`);
  await expect(page.getByText("Create subscription")).toBeVisible();
  await page.getByRole("textbox", { name: "ARN of the SNS topic" }).fill("arn:aws:sns:us-east-1:123456789012:other");
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByRole("textbox", { name: "ARN of the SNS topic" })).toHaveAttribute("aria-invalid", "true");
  await page.getByRole("textbox", { name: "ARN of the SNS topic" }).fill("arn:aws:sns:eu-central-1:123456789012:waypost");
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByText("ARN of the SNS topic saved")).toBeVisible();
  await look(page, "providers-connect-events-ses");
  await waypost.providers.delete(account.id);
});

test("an account is paused, activated, limited, renamed, given new credentials, and removed", async ({ page, waypost }) => {
  const name = unique("Account");
  const account = await connect(waypost, name, `SG.${name}`);
  await page.goto("/providers");
  await expect(page.getByRole("table", { name: "Provider accounts" })).toBeVisible();
  await look(page, "providers");
  await page.getByRole("link", { name: new RegExp(name) }).click();
  await expect(page.getByText("Last 24 hours")).toBeVisible();
  await page.getByRole("radio", { name: "Week" }).click();
  await expect(page.getByRole("table", { name: "Mail by recipient domain" }).or(page.getByText("The account sent no mail in this time."))).toBeVisible();
  await look(page, "providers-account");

  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByRole("button", { name: "Pause the account" }).click();
  await expect(page.getByText("This account is paused")).toBeVisible();
  expect((await waypost.providers.get(account.id)).isActive).toBe(false);
  await page.getByRole("button", { name: "Activate" }).click();
  await expect(page.getByRole("button", { name: "Pause" })).toBeVisible();
  await page.getByRole("button", { name: "Check credentials" }).click();
  await expect(page.getByText("SendGrid accepts the credentials")).toBeVisible();

  await page.getByRole("tab", { name: "Settings" }).click();
  await expect(page).toHaveURL(/tab=settings/);
  await page.getByLabel("Calls per second").fill("0");
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByText("must be a whole number from 1 to 100000")).toBeVisible();
  await page.getByLabel("Calls per second").fill("25");
  await page.getByLabel("Name", { exact: true }).fill(`${name} renamed`);
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByRole("heading", { name: `${name} renamed` })).toBeVisible();
  expect((await waypost.providers.get(account.id)).maxRatePerSecond).toBe(25);

  await page.getByRole("button", { name: "Replace credentials" }).click();
  await page.getByRole("textbox", { name: "API key" }).fill("SG.invalid");
  await page.getByRole("button", { name: "Check and replace" }).click();
  await expect(page.getByText(/rejected the credentials/)).toBeVisible();
  await look(page, "providers-account-settings");
  await page.getByRole("textbox", { name: "API key" }).fill(`SG.${unique("new")}`);
  await page.getByRole("button", { name: "Check and replace" }).click();
  await expect(page.getByText("SendGrid accepts the new credentials")).toBeVisible();

  await page.getByRole("button", { name: "Remove", exact: true }).click();
  await expect(page.getByText("Messages that wait for it are sent by another active account.")).toBeVisible();
  await page.getByRole("button", { name: "Remove the account" }).click();
  await expect(page).toHaveURL(/\/providers$/);
  await expect(page.getByRole("link", { name: new RegExp(name) })).toHaveCount(0);
});

test("an account's events tab registers the webhook and copies its URL", async ({ page, waypost, context }) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const account = await connect(waypost, unique("Events"), `SG.${unique("events")}`);
  await page.goto(`/providers/${account.id}?tab=events`);
  await page.getByRole("button", { name: "Copy the webhook URL" }).click();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(account.webhookUrl);
  await page.getByRole("button", { name: "Register with SendGrid" }).click();
  await expect(page.getByText(/^Registered\./)).toBeVisible();
  await look(page, "providers-account-events");
  await waypost.providers.delete(account.id);
});

test("the lists of a provider are imported, with a report", async ({ page, waypost, request }) => {
  const key = `SG.${unique("lists")}`;
  const account = await connect(waypost, unique("Lists"), key);
  const addresses = ["bounce", "complaint", "unsubscribe"].map((kind) => ({ address: `${unique(kind)}@example.org`, kind }));
  await request.post(`${process.env.SIMULATOR_URL}/suppression-lists`, { data: { provider: "SENDGRID", credential: key, addresses } });
  await page.goto(`/providers/${account.id}?tab=suppressions`);
  await page.getByRole("button", { name: "Import now" }).click();
  const report = page.getByRole("region", { name: "Report of the import" });
  await expect(report.getByText("All lists were read.")).toBeVisible();
  await expect(report.getByText("3", { exact: true })).toBeVisible();
  await page.getByRole("button", { name: "Import again" }).click();
  await expect(report.getByText("0", { exact: true }).first()).toBeVisible();
  await look(page, "providers-account-suppressions");
  await waypost.providers.delete(account.id);
});

test("an account that its provider refuses says why", async ({ page, waypost }) => {
  const name = unique("No credit");
  const account = await connect(waypost, name, `SG.nocredit-${unique("key")}`);
  await waypost.messages.send({
    from: "shop@example.com",
    to: `${unique("x")}@example.org`,
    subject: "Refused",
    text: "Refused",
    providerAccountId: account.id,
  });
  await expect.poll(async () => (await waypost.providers.get(account.id)).sendingPausedReason, { timeout: 20_000 }).not.toBeNull();
  await page.goto(`/providers/${account.id}`);
  await expect(page.getByRole("alert")).toContainText("Maximum credits exceeded");
  await look(page, "providers-account-refused");
  await page.getByRole("alert").getByRole("button", { name: "Replace credentials" }).click();
  await expect(page).toHaveURL(/tab=settings/);
  await waypost.providers.delete(account.id);
});
