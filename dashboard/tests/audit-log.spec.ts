import type { Page } from "@playwright/test";
import { expect, look, test, unique } from "./fixtures";

/** The list of the log: the menu has lists too. */
const changes = (page: Page) => page.getByRole("list", { name: "Changes" });

test("a change stands in the log in plain words, with its details folded", async ({ page, waypost }) => {
  test.slow();
  const name = unique("Key");
  const { id } = await waypost.apiKeys.create({ name, permissions: ["SEND"] });
  await waypost.apiKeys.revoke(id);
  await page.goto("/audit-log");
  const revoked = changes(page).getByRole("listitem").filter({ hasText: `revoked the API key ${name}` });
  await expect(revoked).toBeVisible();
  await expect(revoked.getByText("api_key.revoked")).toHaveCount(0);
  await look(page, "audit-log");
  await revoked.getByRole("button", { name: "Details" }).click();
  await expect(revoked.getByText("api_key.revoked")).toBeVisible();
  await expect(revoked.getByText(id)).toBeVisible();
  await expect(page).toHaveURL(/entry=/);
  await page.reload();
  await expect(revoked.getByText("api_key.revoked")).toBeVisible();
  await look(page, "audit-log-details");
  await revoked.getByRole("link", { name: "All changes of this API key" }).click();
  await expect(changes(page).getByRole("listitem")).toHaveCount(2);
  await expect(page).toHaveURL(new RegExp(`targetId=${id}`));
});

test("the log is filtered by kind, action and days, and the filters are in the address", async ({ page, waypost }) => {
  const name = unique("Group");
  await waypost.unsubscribeGroups.create({ name });
  await page.goto("/audit-log");
  await page.getByLabel("Kind of record").selectOption("Unsubscribe groups");
  await page.getByLabel("What was done").selectOption("Created");
  await expect(changes(page).getByRole("listitem").filter({ hasText: `created the unsubscribe group ${name}` })).toBeVisible();
  await expect(changes(page).getByRole("listitem").filter({ hasText: "API key" }).getByText("created the API key")).toHaveCount(0);
  await expect(page).toHaveURL(/targetType=unsubscribe_group.*action=unsubscribe_group.created/);
  await page.getByLabel("To", { exact: true }).fill("2020-01-01");
  await expect(page.getByRole("heading", { name: "No change matches" })).toBeVisible();
  await page.reload();
  await expect(page.getByRole("heading", { name: "No change matches" })).toBeVisible();
  await look(page, "audit-log-none");
  await page.getByRole("button", { name: "Clear the filters" }).last().click();
  await expect(changes(page).getByRole("listitem").first()).toBeVisible();
  await expect(page).toHaveURL(/audit-log$/);
});

test("a long log is drawn only where it is seen, and goes on to its end", async ({ page, waypost }) => {
  const groups = await Promise.all(Array.from({ length: 30 }, () => waypost.unsubscribeGroups.create({ name: unique("Many") })));
  await Promise.all(groups.map((group) => waypost.unsubscribeGroups.update(group.id, { description: "changed" })));
  await page.goto("/audit-log?targetType=unsubscribe_group");
  await expect(changes(page).getByRole("listitem").first()).toBeVisible();
  await page.keyboard.press("End");
  await expect(changes(page).getByRole("listitem").filter({ hasText: "created the unsubscribe group" }).first()).toBeVisible();
  expect(await changes(page).getByRole("listitem").count()).toBeLessThan(60);
  await Promise.all(groups.map((group) => waypost.unsubscribeGroups.delete(group.id)));
});
