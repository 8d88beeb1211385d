import { expect, look, test } from "./fixtures";

test("the menu leads to every page, and the palette finds them by the keyboard", async ({ page }) => {
  await page.goto("/");
  await expect(page.getByRole("heading", { name: "Overview" })).toBeVisible();
  await page.keyboard.press("Control+k");
  await page.getByPlaceholder("A page, an address").fill("dkim");
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(/\/domains/);
  await expect(page.getByRole("heading", { name: "Domains", level: 1 })).toBeVisible();
  await look(page, "shell");
});
