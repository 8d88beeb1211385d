import { defineConfig } from "@playwright/test";

/** Where the dashboard is: Waypost itself, or the server of `npm run dev`. */
const baseURL = process.env.DASHBOARD_URL ?? process.env.WAYPOST_URL ?? "http://127.0.0.1:8080";

export default defineConfig({
  testDir: "tests",
  outputDir: "test-results",
  timeout: 60_000,
  expect: { timeout: 10_000 },
  fullyParallel: false,
  workers: Number(process.env.WORKERS ?? 2),
  forbidOnly: !!process.env.CI,
  // A busy machine may miss a time limit once. Such a test is listed as flaky.
  retries: process.env.CI ? 1 : 0,
  reporter: [["list"]],
  use: {
    baseURL,
    locale: "en-GB",
    timezoneId: "Europe/Berlin",
    // Recording every first run takes a good part of the processor.
    trace: "on-first-retry",
    launchOptions: {
      executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
      // Chromium's own sandbox does not start as root.
      args: process.getuid?.() === 0 ? ["--no-sandbox"] : [],
    },
  },
});
