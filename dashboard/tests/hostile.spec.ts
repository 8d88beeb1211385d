/** Mail is foreign code: what a message contains must not act on the dashboard of who reads it. */

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test, unique } from "./fixtures";

// The browser reports each attempt that the policy stops.
test.use({ mayReport: "Content Security Policy" });

test("the content of a message runs no script, and loads nothing before the reader asks for it", async ({ page, waypost }) => {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url ?? "");
    response.setHeader("access-control-allow-origin", "*");
    response.end();
  });
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  const remote = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const subject = unique("hostile");
  const html = `<!doctype html><html><head>
    <meta http-equiv="refresh" content="0;url=${remote}/refresh">
    <link rel="stylesheet" href="${remote}/style.css"><link rel="preload" as="image" href="${remote}/preload.png">
    <base href="${remote}/base/"><style>@import "${remote}/import.css"; body { background: url(${remote}/background.png) }</style></head>
    <body onload="parent.document.title = 'taken'"><script>parent.document.title = 'taken'; fetch("${remote}/fetch")</script>
    <img src="${remote}/pixel.png" onerror="top.location = '${remote}/top'"><img srcset="${remote}/srcset.png 2x">
    <svg onload="parent.document.title = 'taken'"></svg><iframe src="${remote}/frame"></iframe>
    <object data="${remote}/object"></object><video poster="${remote}/poster.png" src="${remote}/video"></video>
    <form action="${remote}/form"><button>Send</button></form><a href="javascript:parent.document.title='taken'">Link</a>
    <p>The visible text</p></body></html>`;
  const { messageId } = await waypost.messages.send({
    from: "shop@example.com",
    to: `${unique("reader")}@example.org`,
    subject,
    html,
    tracking: { opens: false, clicks: false },
  });
  await page.goto(`/messages/${messageId}?tab=content`);
  const frame = page.frameLocator("iframe[sandbox]");
  await expect(frame.getByText("The visible text")).toBeVisible();
  await page.waitForTimeout(1_000);
  expect(asked).toEqual([]);
  expect(await page.title()).not.toBe("taken");
  expect(await page.locator("iframe[sandbox]").getAttribute("sandbox")).toBe("");
  await page.getByRole("button", { name: "Load images" }).click();
  await expect.poll(() => asked).toContain("/pixel.png");
  const others = asked.filter((path) => !/\.png$/.test(path));
  expect(others, "only images are loaded").toEqual([]);
  expect(await page.title()).not.toBe("taken");
  server.close();
});
