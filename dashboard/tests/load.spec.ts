/** What a first visit costs, and what the service allows the pages to do. */

import { expect, test } from "./fixtures";

const FIRST_LOAD_BYTES_MAX = 250 * 1024;

test("the first load of the overview is at most 250 KB", async ({ page }) => {
  test.skip(!!process.env.DASHBOARD_URL, "the development server sends other files");
  let bytes = 0;
  const files: string[] = [];
  page.on("response", async (response) => {
    if (!response.url().includes("/v1/")) {
      const { responseBodySize } = await response.request().sizes();
      bytes += responseBodySize;
      files.push(`${responseBodySize} ${new URL(response.url()).pathname}`);
    }
  });
  await page.goto("/");
  await expect(page.getByRole("heading", { name: "Overview" })).toBeVisible();
  await page.waitForLoadState("networkidle");
  expect(files.length).toBeGreaterThan(3);
  expect(bytes, files.join("\n")).toBeLessThanOrEqual(FIRST_LOAD_BYTES_MAX);
});

test("scripts come from the service alone, and every page has its own address", async ({ request }) => {
  test.skip(!!process.env.DASHBOARD_URL, "the development server sends other headers");
  for (const path of ["/", "/messages", "/templates/no-such-template", "/no/such/page"]) {
    const answer = await request.get(path, { headers: { accept: "text/html" } });
    expect(answer.status(), path).toBe(200);
    const policy = answer.headers()["content-security-policy"] ?? "";
    const scripts = policy.split(";").find((one) => one.trim().startsWith("script-src"));
    expect(scripts?.trim(), path).toBe("script-src 'self'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(answer.headers()["cache-control"]).toBe("no-cache");
  }
  const unknown = await request.get("/no/such/page", { headers: { accept: "application/json" } });
  expect(unknown.status()).toBe(404);
  expect((await unknown.json()).error.code).toBe("NOT_FOUND");
});

test("files are cached for good, since their names carry their content's hash", async ({ request }) => {
  test.skip(!!process.env.DASHBOARD_URL, "the development server sends other files");
  const page = await (await request.get("/")).text();
  const script = /src="\.\/(assets\/[^"]+\.js)"/.exec(page)?.[1];
  const answer = await request.get(`/${script}`);
  expect(answer.headers()["content-type"]).toContain("text/javascript");
  expect(answer.headers()["cache-control"]).toContain("immutable");
  expect((await request.get("/assets/no-such-file.js")).status()).toBe(404);
});
