import { expect, look, test, unique } from "./fixtures";
import { address, connect, sendTo } from "./mail";

// Each look takes four screenshots and four runs of axe.
test.slow();

test("metrics are shown over time and compared, and follow the filters in the URL", async ({ page, waypost }) => {
  const name = unique("Metrics");
  const account = await connect(waypost, name);
  const tag = unique("tag");
  await sendTo(waypost, [address("click"), address("open"), address("hard-bounce"), address("ada")], { subject: unique("Counted"), tags: [tag], html: '<a href="https://example.com/">x</a>', providerAccountId: account });
  // Counts follow events within seconds.
  await expect(async () => {
    const { data } = await waypost.metrics.getSummary({ tag });
    expect(data.totalSent).toBe(4);
    expect(data.totalClicked).toBe(1);
  }).toPass({ timeout: 40_000 });

  await page.goto(`/metrics?span=24h&tag=${tag}`);
  await expect(page.getByRole("heading", { name: "Over time" })).toBeVisible();
  const sent = page.locator("dl > div", { hasText: "Sent" }).locator("dd > span").first();
  await expect(sent).toHaveText("4");
  await expect(page.locator(".recharts-surface").first()).toBeVisible();
  await expect(page.getByRole("region", { name: "By account" }).getByRole("row", { name: new RegExp(name) })).toContainText("25.00 %");
  await look(page, "metrics");

  for (const [tab, region, text] of [
    ["Providers", "By provider", "SendGrid"],
    ["Sender domains", "By sender domain", "example.com"],
    ["Tags", "By tag", tag],
  ] as const) {
    await page.getByRole("tab", { name: tab }).click();
    await expect(page.getByRole("region", { name: region })).toContainText(text);
  }
  await page.getByRole("tab", { name: "Recipients' domains" }).click();
  await expect(page.getByText("Waypost counts with a filter for the account only.")).toBeVisible();
  await look(page, "metrics-no-breakdown");
  await page.getByRole("button", { name: "Leave out tag and template" }).click();
  await page.getByLabel("Account", { exact: true }).selectOption({ label: name });
  await expect(page.getByRole("region", { name: "By recipient's domain" })).toContainText("example.org");
  await expect(sent).toHaveText("4");
});

test("rates and the time zone are in the URL", async ({ page }) => {
  await page.goto("/metrics");
  await page.getByRole("button", { name: "Rates" }).click();
  await page.getByLabel("Time zone").selectOption("America/New_York");
  await page.reload();
  await expect(page.getByRole("button", { name: "Rates" })).toHaveAttribute("aria-pressed", "true");
  await expect(page.getByLabel("Time zone")).toHaveValue("America/New_York");
  await expect(page.locator(".recharts-surface").first()).toBeVisible();
  await look(page, "metrics-rates");
});
