import { expect, look, test } from "./fixtures";

test("the operator sees the tasks, the workers, the queues and the dead jobs", async ({ page }) => {
  await page.goto("/operator");
  await expect(page.getByRole("heading", { name: "Operator", level: 1 })).toBeVisible();
  const tasks = page.getByRole("region", { name: "Tasks of the scheduler" });
  await expect(tasks.getByRole("row").filter({ hasText: "Add up metrics" }).getByText("On time")).toBeVisible();
  // No task has a name that only programs understand.
  await expect(tasks.getByText(/reap|roll-up|relay/)).toHaveCount(0);
  await expect(page.getByRole("region", { name: "Workers" }).getByText("Alive").first()).toBeVisible();
  await expect(page.getByText("Waiting", { exact: true })).toBeVisible();
  await expect(page.getByRole("heading", { name: "Dead jobs" })).toBeVisible();
  await look(page, "operator");
});
