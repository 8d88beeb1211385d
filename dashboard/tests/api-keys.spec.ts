import { Waypost } from "waypost";
import { expect, look, test, unique } from "./fixtures";

// Each look at a page takes seconds on a busy machine.
test.describe.configure({ timeout: 240_000 });

const secret = (page: import("@playwright/test").Page) => page.getByTestId("secret").innerText();

test("a key that may only send is made, shown once with a first call, and works", async ({ page, waypost }) => {
  const name = unique("Backend");
  await page.goto("/api-keys");
  await look(page, "api-keys");
  await page.getByRole("button", { name: "Make a key" }).click();
  const dialog = page.getByRole("dialog");
  await expect(dialog.getByRole("button", { name: /^Only send/ })).toHaveAttribute("aria-pressed", "true");
  await dialog.getByLabel("Allowed addresses").fill("127.0.0.0/8\nnowhere");
  await dialog.getByRole("button", { name: "Make the key" }).click();
  await expect(dialog.getByLabel("Name")).toHaveAttribute("aria-invalid", "true");
  await expect(dialog.getByLabel("Allowed addresses")).toHaveAttribute("aria-invalid", "true");
  await look(page, "api-keys-add-wrong");
  await dialog.getByLabel("Name").fill(name);
  await dialog.getByLabel("Allowed addresses").fill("127.0.0.0/8");
  await dialog.getByLabel("Expires").selectOption({ label: "In 30 days" });
  await dialog.getByRole("button", { name: "Make the key" }).click();

  await expect(dialog).toContainText("It cannot be shown again");
  const key = await secret(page);
  expect(key).toMatch(/^wp_live_/);
  await expect(dialog).toContainText("/v1/send");
  await look(page, "api-keys-secret");
  // Only its button closes it: a secret is not lost by a slip.
  await page.keyboard.press("Escape");
  await dialog.getByRole("button", { name: "I have kept the key" }).click();
  await expect(dialog).toHaveCount(0);

  const row = page.getByRole("row").filter({ hasText: name });
  await expect(row).toContainText("Only send");
  await expect(row).toContainText("127.0.0.0/8");
  await expect(row).toContainText("Never");
  const made = (await waypost.apiKeys.list({ limit: 100 })).data.find((one) => one.name === name);
  expect(made?.permissions).toEqual(["SEND"]);
  const refused = await new Waypost(key).apiKeys.list().then(
    () => "allowed",
    (error: { status?: number }) => error.status,
  );
  expect(refused).toBe(403);
});

test("a test key is made with single permissions, changed, rotated with grace, and revoked", async ({ page, waypost }) => {
  const name = unique("CI");
  await page.goto("/api-keys?open=add");
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill(name);
  await dialog.getByRole("button", { name: /^Read only/ }).click();
  await dialog.getByRole("checkbox", { name: "Read providers" }).click();
  await expect(dialog.getByRole("button", { name: /^Read only/ })).toHaveAttribute("aria-pressed", "false");
  await dialog.getByRole("switch", { name: "Test key" }).click();
  await dialog.getByRole("button", { name: "Make the key" }).click();
  const old = await secret(page);
  expect(old).toMatch(/^wp_test_/);
  await expect(dialog).toContainText("/v1/messages");
  await dialog.getByRole("button", { name: "I have kept the key" }).click();

  const row = page.getByRole("row").filter({ hasText: name });
  const act = async (item: string) => {
    await row.getByRole("button", { name: `Actions for ${name}` }).click();
    await page.getByRole("menuitem", { name: item }).click();
  };
  await expect(row).toContainText("Test");
  await act("Edit");
  await dialog.getByRole("checkbox", { name: "Read templates" }).click();
  await dialog.getByRole("button", { name: "Save" }).click();
  await expect(row).toContainText("Read messages and metrics");
  await expect(dialog).toHaveCount(0);

  await act("Rotate");
  await dialog.getByLabel("The old secret works").selectOption({ label: "For one hour" });
  await look(page, "api-keys-rotate");
  await dialog.getByRole("button", { name: "Rotate the key" }).click();
  const fresh = await secret(page);
  expect(fresh).not.toBe(old);
  await dialog.getByRole("button", { name: "I have kept the key" }).click();
  await expect(row).toContainText("The old secret ends in");
  for (const key of [old, fresh]) await new Waypost(key).messages.list({ limit: 1 });

  await act("Revoke");
  await expect(dialog).toContainText("stops working within five seconds");
  await look(page, "api-keys-revoke");
  await dialog.getByRole("button", { name: "Revoke the key" }).click();
  await expect(row).toHaveCount(0);
  await page.getByRole("checkbox", { name: "Show revoked keys" }).click();
  await expect(page).toHaveURL(/revoked=true/);
  await expect(row).toContainText("Revoked");
  const kept = (await waypost.apiKeys.list({ limit: 100 })).data.find((one) => one.name === name);
  expect(kept?.revokedAt).not.toBeNull();
});
