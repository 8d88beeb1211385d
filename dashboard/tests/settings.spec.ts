import { expect, look, test, unique } from "./fixtures";

test("settings are saved section by section, and a mistake stands at its field", async ({ page, waypost }) => {
  test.slow();
  const before = await waypost.settings.get();
  await page.goto("/settings");
  await expect(page.getByRole("heading", { name: "Settings" })).toBeVisible();

  const bounces = page.getByRole("form", { name: "Soft bounces" });
  const limit = bounces.getByLabel("Soft bounces until an address is suppressed");
  await expect(bounces.getByRole("button", { name: "Save" })).toBeDisabled();
  await limit.fill("101");
  await bounces.getByRole("button", { name: "Save" }).click();
  await expect(limit).toHaveAttribute("aria-invalid", "true");
  await expect(limit).toBeFocused();
  await limit.fill("many");
  await bounces.getByRole("button", { name: "Save" }).click();
  await expect(bounces.getByText("must be a whole number")).toBeVisible();
  await look(page, "settings-mistake");
  const wanted = before.softBounceLimit === 7 ? 8 : 7;
  await limit.fill(String(wanted));
  await bounces.getByRole("button", { name: "Save" }).click();
  await expect(page.getByText("Settings saved")).toBeVisible();
  expect((await waypost.settings.get()).softBounceLimit).toBe(wanted);

  const tracking = page.getByRole("form", { name: "Tracking" });
  await tracking.getByRole("switch", { name: "Track opens" }).click();
  await tracking.getByRole("button", { name: "Save" }).click();
  await expect(tracking.getByRole("button", { name: "Save" })).toBeDisabled();
  expect((await waypost.settings.get()).trackOpens).toBe(!before.trackOpens);
  await waypost.settings.update({ softBounceLimit: before.softBounceLimit, trackOpens: before.trackOpens });
});

test("a rate limit above the operator's is refused at its field", async ({ page, waypost }) => {
  await page.goto("/settings");
  const limits = page.getByRole("form", { name: "Rate limits" });
  await limits.getByLabel("Sends per second").fill("999999");
  await limits.getByRole("button", { name: "Save" }).click();
  await expect(limits.getByText("the operator's limit", { exact: false }).first()).toBeVisible();
  await expect(limits.getByLabel("Sends per second")).toHaveAttribute("aria-invalid", "true");
  expect((await waypost.settings.get()).rateLimits.sendPerSecond).not.toBe(999_999);
});

test("a shorter retention asks first, also when Enter saves it", async ({ page, waypost }) => {
  const before = await waypost.settings.get();
  await waypost.settings.update({ retentionDays: null });
  await page.goto("/settings");
  const retention = page.getByRole("form", { name: "Retention" });
  await retention.getByRole("switch").click();
  await retention.getByLabel("Days").fill("36000");
  await retention.getByLabel("Days").press("Enter");
  const question = page.getByRole("dialog", { name: "Delete messages after 36,000 days?" });
  await expect(question).toBeVisible();
  expect((await waypost.settings.get()).retentionDays).toBeNull();
  await question.getByRole("button", { name: "Save and delete older messages" }).click();
  await expect(page.getByText("Settings saved")).toBeVisible();
  expect((await waypost.settings.get()).retentionDays).toBe(36_000);
  await waypost.settings.update({ retentionDays: before.retentionDays });
});

test("a person is erased after a question, and the page says what was erased", async ({ page, waypost }) => {
  const email = `${unique("erased")}@example.com`;
  const suppression = await waypost.suppressions.create({ email, source: "MANUAL" });
  await page.goto("/settings");
  const form = page.getByRole("form", { name: "Erase a person" });
  await form.getByLabel("Email address").fill("not an address");
  await form.getByRole("button", { name: "Erase" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Erase for good" }).click();
  await expect(form.getByLabel("Email address")).toHaveAttribute("aria-invalid", "true");
  await form.getByLabel("Email address").fill(email);
  await form.getByRole("button", { name: "Erase" }).click();
  const question = page.getByRole("dialog", { name: `Erase ${email}?` });
  await look(page, "settings-erase");
  await question.getByRole("button", { name: "Erase for good" }).click();
  await expect(form.getByText(`Nothing more is stored of ${email}.`)).toBeVisible();
  // Its suppression stays.
  expect((await waypost.suppressions.list({ email })).data.map((one) => one.id)).toContain(suppression.id);
});

test("the name and the colour of the organization are on the pages that recipients see", async ({ page, waypost }) => {
  test.slow();
  const before = await waypost.settings.get();
  const group = await waypost.unsubscribeGroups.create({ name: unique("Offers") });
  await page.goto("/settings");
  const form = page.getByRole("form", { name: "Organization" });
  await form.getByLabel("Brand colour", { exact: true }).fill("red");
  await form.getByRole("button", { name: "Save" }).click();
  await expect(form.getByLabel("Brand colour", { exact: true })).toHaveAttribute("aria-invalid", "true");
  await form.getByLabel("Brand colour", { exact: true }).fill("#0f766e");
  await form.getByRole("button", { name: "Save" }).click();
  await expect(page.getByText("Settings saved")).toBeVisible();
  await look(page, "settings-organization");
  expect((await waypost.settings.get()).brandColor).toBe("#0f766e");
  const { html } = await waypost.unsubscribeGroups.previewPage(group.id);
  expect(html).toContain(before.name);
  await form.getByRole("button", { name: "No colour" }).click();
  await form.getByRole("button", { name: "Save" }).click();
  await expect(form.getByRole("button", { name: "Save" })).toBeDisabled();
  expect((await waypost.settings.get()).brandColor).toBeNull();
  await waypost.settings.update({ brandColor: before.brandColor });
  await waypost.unsubscribeGroups.delete(group.id);
});
