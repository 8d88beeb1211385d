import { expect, look, test, unique } from "./fixtures";
import { connect, sendTo } from "./mail";

// Each look takes four screenshots and four runs of axe.
test.slow();

test("the overview counts mail, and shows rates beside their bounds and accounts as they are now", async ({ page, waypost }) => {
  const account = await connect(waypost, unique("Overview"));
  await sendTo(waypost, ["ada@example.org", "hard-bounce@example.org"], { subject: unique("Overview"), providerAccountId: account });
  const { totalSent } = (await waypost.metrics.getSummary({ from: new Date(Date.now() - 3_600_000) })).data;
  expect(totalSent).toBeGreaterThan(0);
  await page.goto("/");
  const totals = page.locator("section", { hasText: "Mail of the last 7 days" });
  await expect(totals.getByText("Delivered", { exact: true }).first()).toBeVisible();
  // What was sent within the last hour is in the last seven days too.
  await expect(async () => {
    const sent = await totals.locator("dl > div", { hasText: "Sent" }).locator("dd span").first().innerText();
    expect(Number(sent.replaceAll(",", ""))).toBeGreaterThanOrEqual(totalSent);
  }).toPass();
  await expect(page.getByRole("heading", { name: "Deliver your first mail" })).toBeHidden();
  const rates = page.locator("section", { hasText: "Bounces and complaints" }).first();
  await expect(rates.getByText("Amazon SES puts an account under review")).toHaveCount(2);
  await expect(rates.getByText("Gmail asks every sender to stay below this")).toBeVisible();
  await expect(page.getByRole("link", { name: /^Overview-/ }).first()).toBeVisible();
  await look(page, "overview");
});

test("the span is in the URL, and all numbers follow it", async ({ page }) => {
  await page.goto("/");
  await page.getByRole("radio", { name: "90 days" }).click();
  await expect(page).toHaveURL(/span=90d/);
  await expect(page.getByRole("heading", { name: "Mail of the last 90 days" })).toBeVisible();
  await page.reload();
  await expect(page.getByRole("radio", { name: "90 days" })).toBeChecked();
  await expect(page.getByRole("row")).toHaveCount(91);
});

test("the first load has no chart library", async ({ page }) => {
  const loaded: string[] = [];
  page.on("request", (request) => loaded.push(request.url()));
  await page.goto("/");
  await expect(page.getByRole("heading", { name: /^Mail of/ })).toBeVisible();
  await page.waitForLoadState("networkidle");
  expect(loaded.filter((url) => /recharts|\/chart-[^/-]{8}\.js/.test(url))).toEqual([]);
});
