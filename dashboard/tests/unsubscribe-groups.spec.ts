import { expect, look, test, unique } from "./fixtures";

// Each look at a page takes seconds on a busy machine.
test.describe.configure({ timeout: 240_000 });

test("a group is made, shown as recipients see it, changed and deleted", async ({ page, waypost }) => {
  const name = unique("Newsletter");
  await page.goto("/unsubscribe-groups");
  await page.getByRole("button", { name: "Make a group" }).first().click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: "Make the group" }).click();
  await expect(dialog.getByLabel("Name")).toHaveAttribute("aria-invalid", "true");
  await look(page, "unsubscribe-groups-add-wrong");
  await dialog.getByLabel("Name").fill(name);
  await dialog.getByLabel("Description").fill("The monthly letter");
  await dialog.getByRole("button", { name: "Make the group" }).click();
  const row = page.getByRole("main").getByRole("listitem").filter({ hasText: name });
  await expect(row).toContainText("The monthly letter");
  await look(page, "unsubscribe-groups");

  await row.getByRole("button", { name: "Recipients' page" }).click();
  await expect(page).toHaveURL(/preview=/);
  const frame = page.frameLocator(`iframe[title="The unsubscribe page of ${name}"]`);
  await expect(frame.getByRole("heading")).toContainText("unsubscribed");
  await expect(frame.locator("body")).toContainText(name);
  await dialog.getByLabel("Language").selectOption({ label: "German" });
  await expect(frame.locator("html")).toHaveAttribute("lang", "de");
  const ground = () => frame.locator("main").evaluate((main) => getComputedStyle(main).backgroundColor);
  const light = await ground();
  await dialog.getByRole("radio", { name: "Dark" }).click();
  await expect.poll(ground).not.toBe(light);
  await dialog.getByRole("radio", { name: "Phone" }).click();
  await look(page, "unsubscribe-groups-preview");
  await page.keyboard.press("Escape");

  await row.getByRole("button", { name: `Actions for ${name}` }).click();
  await page.getByRole("menuitem", { name: "Edit" }).click();
  await dialog.getByLabel("Name").fill(`${name} 2`);
  await dialog.getByRole("switch", { name: "Default group" }).click();
  await dialog.getByRole("button", { name: "Save" }).click();
  const renamed = page.getByRole("main").getByRole("listitem").filter({ hasText: `${name} 2` });
  await expect(renamed).toContainText("Default");
  const groups = (await waypost.unsubscribeGroups.list()).data;
  expect(groups.filter((group) => group.isDefault).map((group) => group.name)).toEqual([`${name} 2`]);

  await renamed.getByRole("button", { name: `Actions for ${name} 2` }).click();
  await page.getByRole("menuitem", { name: "Delete" }).click();
  await expect(dialog).toContainText("Its suppressions are deleted too");
  await dialog.getByRole("button", { name: "Delete the group" }).click();
  await expect(renamed).toHaveCount(0);
});

test("the suppressions of a group are one click away", async ({ page, waypost }) => {
  const group = await waypost.unsubscribeGroups.create({ name: unique("Offers") });
  await waypost.suppressions.create({ email: `${unique("ada")}@example.org`, unsubscribeGroupId: group.id, source: "UNSUBSCRIBE" });
  await page.goto("/unsubscribe-groups");
  await page.getByRole("main").getByRole("listitem").filter({ hasText: group.name }).getByRole("link", { name: "Who unsubscribed" }).click();
  await expect(page).toHaveURL(new RegExp(`/suppressions\\?group=${group.id}`));
  await expect(page.getByRole("row").filter({ hasText: group.name })).toContainText("Unsubscribed");
});
