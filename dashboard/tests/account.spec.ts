import { expect, look, test } from "./fixtures";
import { newPerson, PASSWORD, signIn, totp } from "./persons";

test("a person changes the name, and it is in the menu and in the audit log", async ({ browser, waypost }) => {
  const { page, context } = await newPerson(browser, waypost, "ADMIN");
  await page.goto("/account");
  await expect(page.getByRole("heading", { name: "Your account" })).toBeVisible();
  await look(page, "account");
  const name = page.getByLabel("Name", { exact: true });
  await name.fill("Rear Admiral Hopper");
  await page.getByRole("form", { name: "Profile" }).getByRole("button", { name: "Save" }).click();
  await expect(page.getByText("Name changed")).toBeVisible();
  await expect(page.getByRole("button", { name: /Rear Admiral Hopper/ })).toBeVisible();
  await page.goto("/audit-log?targetType=user");
  await expect(page.getByRole("listitem").filter({ hasText: "changed their account (name)" }).first()).toBeVisible();
  await context.close();
});

test("a new password ends the other sessions, and the old one signs nobody in", async ({ browser, waypost }) => {
  const person = await newPerson(browser, waypost, "VIEWER");
  const other = await browser.newContext({ storageState: await person.context.storageState() });
  const { page, context } = person;
  await page.goto("/account");
  const form = page.getByRole("form", { name: "Password" });
  await form.getByLabel("Present password", { exact: true }).fill("not the present one");
  await form.getByLabel("New password", { exact: true }).fill("quite another secret");
  await form.getByRole("button", { name: "Change the password" }).click();
  await expect(form.getByLabel("Present password", { exact: true })).toHaveAttribute("aria-invalid", "true");
  await look(page, "account-wrong-password");
  await form.getByLabel("Present password", { exact: true }).fill(PASSWORD);
  await form.getByRole("button", { name: "Change the password" }).click();
  await expect(page.getByText("Password changed. Your other sessions have ended.")).toBeVisible();

  // This session is the same person's, signed in by invitation with the very cookie: it lives on here.
  await page.reload();
  await expect(page.getByRole("heading", { name: "Your account" })).toBeVisible();
  await context.clearCookies();
  await page.goto("/sign-in");
  await signIn(page, person.email, PASSWORD);
  await expect(page.getByText("The email address or the password is wrong.")).toBeVisible();
  await signIn(page, person.email, "quite another secret");
  await expect(page.getByRole("navigation", { name: "Pages" })).toBeVisible();
  await other.close();
  await context.close();
});

test("a second factor is turned on with a QR code, asked for at the sign-in, and turned off", async ({ browser, waypost }) => {
  test.slow();
  const person = await newPerson(browser, waypost, "DEVELOPER");
  const { page, context } = person;
  await page.goto("/account");
  await page.getByRole("button", { name: "Turn on" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Password", { exact: true }).fill(PASSWORD);
  await dialog.getByRole("button", { name: "Continue" }).click();
  await expect(dialog.getByRole("img", { name: /QR code/ })).toBeVisible();
  await look(page, "account-second-factor");
  const secret = (await dialog.locator("code").innerText()).trim();
  await dialog.getByLabel("Code", { exact: true }).fill("000000");
  await dialog.getByRole("button", { name: "Turn on" }).click();
  await expect(dialog.getByLabel("Code", { exact: true })).toHaveAttribute("aria-invalid", "true");
  const used = totp(secret);
  await dialog.getByLabel("Code", { exact: true }).fill(used);
  await dialog.getByRole("button", { name: "Turn on" }).click();
  const shown = dialog.getByRole("list", { name: "Recovery codes" }).getByRole("listitem");
  await expect(shown).toHaveCount(10);
  const codes = await shown.allInnerTexts();
  await look(page, "account-recovery-codes");
  // A click beside the dialog does not lose the codes.
  await page.keyboard.press("Escape");
  await expect(dialog).toBeVisible();
  await dialog.getByRole("button", { name: "I have stored them" }).click();
  await expect(page.getByText("Your password alone does not sign anybody in.")).toBeVisible();

  await context.clearCookies();
  await page.goto("/sign-in?next=%2Faccount");
  await signIn(page, person.email, PASSWORD);
  await expect(page.getByRole("heading", { name: "Second factor" })).toBeVisible();
  await look(page, "sign-in-second-factor");
  // The code that turned it on was used: it does not count twice.
  await page.getByLabel("Code", { exact: true }).fill(used);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await expect(page.getByText(/This code is wrong, or was used before/)).toBeVisible();
  await page.getByRole("button", { name: "Use a recovery code" }).click();
  await page.getByLabel("Recovery code").fill(codes[0]!);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await expect(page.getByRole("heading", { name: "Your account" })).toBeVisible();

  await page.getByRole("button", { name: "Turn off" }).click();
  await dialog.getByLabel("Password", { exact: true }).fill(PASSWORD);
  await dialog.getByRole("button", { name: "Use a recovery code" }).click();
  // The first recovery code was used.
  await dialog.getByLabel("Recovery code").fill(codes[0]!);
  await dialog.getByRole("button", { name: "Turn off" }).click();
  await expect(dialog.getByLabel("Recovery code")).toHaveAttribute("aria-invalid", "true");
  await dialog.getByLabel("Recovery code").fill(codes[1]!);
  await dialog.getByRole("button", { name: "Turn off" }).click();
  await expect(page.getByText("Second factor turned off")).toBeVisible();
  await context.clearCookies();
  await page.goto("/sign-in");
  await signIn(page, person.email, PASSWORD);
  await expect(page.getByRole("navigation", { name: "Pages" })).toBeVisible();
  await context.close();
});
