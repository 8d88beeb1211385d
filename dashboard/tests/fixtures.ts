/** What all tests of the dashboard use: a browser that is signed in, the API's client, and a look at a page. */

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test as base, type BrowserContext, expect, type Page } from "@playwright/test";
import type { AxeResults } from "axe-core";
import { Waypost } from "waypost";

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

type State = Awaited<ReturnType<BrowserContext["storageState"]>>;

interface Fixtures {
  /** The API, with a key that may do everything, of the organization that the browser is signed in to. */
  waypost: Waypost;
  /** What the console may report in this test: `test.use({ mayReport: "…" })`. */
  mayReport: string | undefined;
}

interface WorkerFixtures {
  /** The session of WAYPOST_EMAIL, begun once by each worker. */
  session: State;
}

export const test = base.extend<Fixtures, WorkerFixtures>({
  session: [
    async ({ browser }, use, worker) => {
      const { WAYPOST_EMAIL: email, WAYPOST_PASSWORD: password } = process.env;
      if (!email || !password) throw new Error("The tests need WAYPOST_EMAIL and WAYPOST_PASSWORD, as scripts/test-dashboard.sh sets them.");
      const page = await browser.newPage({ baseURL: worker.project.use.baseURL });
      await page.goto("/sign-in");
      await page.getByLabel("Email address").fill(email);
      await page.getByLabel("Password", { exact: true }).fill(password);
      await page.getByRole("button", { name: "Sign in", exact: true }).click();
      await expect(page.getByRole("navigation", { name: "Pages" })).toBeVisible();
      const state = await page.context().storageState();
      await page.context().close();
      await use(state);
    },
    { scope: "worker", timeout: 120_000 },
  ],
  storageState: async ({ session }, use) => await use(session),
  // Playwright wants the braces.
  waypost: async ({}, use) => {
    await use(new Waypost());
  },
  mayReport: [undefined, { option: true }],
  page: async ({ page, mayReport }, use) => {
    const errors: string[] = [];
    const foreign: string[] = [];
    page.on("pageerror", (error) => errors.push(String(error)));
    page.on("console", (message) => {
      // A refused call is also logged by the browser; what the page makes of it is tested there.
      // The frames of mails forbid scripts, and say so of Playwright's own.
      const expected = ["Failed to load resource", "Blocked script execution in 'about:srcdoc'"];
      const text = message.text();
      const isExpected = expected.some((start) => text.startsWith(start)) || (mayReport && text.includes(mayReport));
      if (message.type() === "error" && !isExpected) errors.push(text);
    });
    page.on("request", (request) => {
      const url = new URL(request.url());
      if (url.protocol.startsWith("http") && url.hostname !== "127.0.0.1") foreign.push(request.url());
    });
    await use(page);
    expect(errors, "errors in the console").toEqual([]);
    expect(foreign, "requests to other hosts").toEqual([]);
  },
});

export { expect };

/** axe takes most of the time of a test: two of the four have each colour scheme and each width. */
const LOOKS = [
  { scheme: "light", width: 1280, height: 900, axe: true },
  { scheme: "dark", width: 1280, height: 900, axe: false },
  { scheme: "light", width: 390, height: 844, axe: false },
  { scheme: "dark", width: 390, height: 844, axe: true },
] as const;

/**
 * Looks at the page as it is now, in light and dark, wide and narrow: nothing is wider than the window, axe finds nothing, and
 * a screenshot of each is kept in test-results/screens.
 */
export async function look(page: Page, name: string): Promise<void> {
  for (const { scheme, width, height, axe } of LOOKS) {
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
    await page.setViewportSize({ width, height });
    await page.waitForTimeout(150);
    await page.screenshot({ path: `test-results/screens/${name}-${scheme}-${width}.png`, fullPage: true });
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    expect(overflow, `${name} is wider than ${width} px`).toBeLessThanOrEqual(0);
    if (!axe) continue;
    await page.evaluate(axeSource);
    const results = await page.evaluate(() => (window as unknown as { axe: { run(): Promise<AxeResults> } }).axe.run());
    const found = results.violations.map((one) => `${one.id}: ${one.help}: ${one.nodes.map((node) => node.target.join(" ")).join(", ")}`);
    expect(found, `axe: ${name}, ${scheme}, ${width} px`).toEqual([]);
  }
  await page.setViewportSize({ width: 1280, height: 900 });
}

/** A name that no other test has. */
export const unique = (name: string): string => `${name}-${Math.random().toString(36).slice(2, 8)}`;
