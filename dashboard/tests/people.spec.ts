import { expect, look, test, unique } from "./fixtures";
import { invite, newPerson, stranger } from "./persons";

test("an owner invites a person, who sees what the role shows, gets another role, and is removed", async ({ page, browser, waypost }) => {
  test.slow();
  const email = `${unique("dev")}@example.com`;
  await page.goto("/people");
  await expect(page.getByRole("heading", { name: "People" })).toBeVisible();
  await page.getByRole("button", { name: "Invite" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Email address").fill("nobody");
  await dialog.getByRole("button", { name: "Invite" }).click();
  await expect(dialog.getByLabel("Email address")).toHaveAttribute("aria-invalid", "true");
  await look(page, "people-invite");
  await dialog.getByLabel("Email address").fill(email);
  await dialog.getByRole("radio", { name: "Viewer" }).click();
  await dialog.getByRole("button", { name: "Invite" }).click();
  await expect(page.getByRole("dialog", { name: `${email} is invited` })).toBeVisible();
  const link = new URL(await dialog.getByTestId("secret").innerText());
  await look(page, "people-invited");
  await dialog.getByRole("button", { name: "Done" }).click();
  await expect(page.getByRole("table", { name: "Open invitations" }).getByText(email)).toBeVisible();

  const context = await stranger(browser);
  const theirs = await context.newPage();
  await theirs.goto(link.pathname + link.hash);
  await expect(theirs.getByText("You are invited as Viewer.")).toBeVisible();
  await theirs.getByLabel("Your name").fill(unique("Margaret Hamilton"));
  await theirs.getByLabel("Password", { exact: true }).fill("four lazy words apart");
  await theirs.getByRole("button", { name: /^Join / }).click();
  const menu = theirs.getByRole("navigation", { name: "Pages" });
  await expect(menu.getByRole("link", { name: "Messages" })).toBeVisible();
  await expect(menu.getByRole("link", { name: "People" })).toHaveCount(0);
  await expect(menu.getByRole("link", { name: "API keys" })).toHaveCount(0);
  for (const path of ["/people", "/settings", "/audit-log", "/operator"]) {
    await theirs.goto(path);
    await expect(theirs.getByText(/^You may not see/)).toBeVisible();
  }
  await look(theirs, "not-allowed");

  await page.reload();
  const row = page.getByRole("table", { name: "Members" }).getByRole("row").filter({ hasText: email });
  await expect(row.getByText("Viewer")).toBeVisible();
  await look(page, "people");
  await row.getByRole("button", { name: /^Actions for/ }).click();
  await page.getByRole("menuitem", { name: "Change the role" }).click();
  await dialog.getByRole("radio", { name: "Developer" }).click();
  await look(page, "people-role");
  await dialog.getByRole("button", { name: "Save" }).click();
  await expect(row.getByText("Developer")).toBeVisible();
  await expect(async () => {
    await theirs.goto("/account");
    await expect(menu.getByRole("link", { name: "Send" })).toBeVisible({ timeout: 1_000 });
  }).toPass();

  await row.getByRole("button", { name: /^Actions for/ }).click();
  await page.getByRole("menuitem", { name: "Remove" }).click();
  await dialog.getByRole("button", { name: "Remove" }).click();
  await expect(row).toHaveCount(0);
  await theirs.goto("/account");
  await expect(theirs.getByRole("heading", { name: "Sign in to Waypost" })).toBeVisible();
  await context.close();
  expect((await waypost.members.list()).data.map((member) => member.email)).not.toContain(email);
});

test("an invitation is withdrawn, and its link is over", async ({ page, browser, waypost }) => {
  const { email, path } = await invite(waypost, "DEVELOPER");
  await page.goto("/people");
  await page.getByRole("button", { name: `Actions for the invitation of ${email}` }).click();
  await page.getByRole("menuitem", { name: "Withdraw" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Withdraw" }).click();
  await expect(page.getByText("Invitation withdrawn")).toBeVisible();
  const context = await stranger(browser);
  const theirs = await context.newPage();
  await theirs.goto(path);
  await expect(theirs.getByRole("heading", { name: "This link is no longer valid" })).toBeVisible();
  await context.close();
});

test("an admin does not see the people, and cannot reach them by the API either", async ({ browser, waypost }) => {
  const admin = await newPerson(browser, waypost, "ADMIN");
  await admin.page.goto("/people");
  await expect(admin.page.getByRole("heading", { name: "You may not see the people" })).toBeVisible();
  const status = await admin.page.evaluate(
    async () =>
      (
        await fetch("/v1/members", {
          method: "POST",
          headers: { "content-type": "application/json", "x-waypost-csrf": "1" },
          body: JSON.stringify({ email: "somebody@example.com", role: "OWNER" }),
        })
      ).status,
  );
  expect(status).toBe(403);
  await admin.context.close();
});
