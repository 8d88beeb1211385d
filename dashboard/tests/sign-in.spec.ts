import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, look, test, unique } from "./fixtures";
import { invite, newPerson, operator, PASSWORD, pathOf, signIn, stranger } from "./persons";

test("an invited person chooses a password, is in, and signs in again at the page that was asked for", async ({ browser, waypost }) => {
  const { email, path } = await invite(waypost, "DEVELOPER");
  const context = await stranger(browser);
  const page = await context.newPage();
  await page.goto(path);
  await expect(page.getByRole("heading", { name: /^Join / })).toBeVisible();
  await look(page, "invitation");
  await page.getByLabel("Your name").fill("Grace Hopper");
  await page.getByLabel("Password", { exact: true }).fill("short");
  await page.getByRole("button", { name: /^Join / }).click();
  await expect(page.getByLabel("Password", { exact: true })).toHaveAttribute("aria-invalid", "true");
  await page.getByLabel("Password", { exact: true }).fill(PASSWORD);
  await page.getByRole("button", { name: /^Join / }).click();
  await expect(page.getByRole("navigation", { name: "Pages" })).toBeVisible();
  expect(page.url()).not.toContain("#");

  await page.getByRole("button", { name: /Grace Hopper/ }).click();
  await page.getByRole("menuitem", { name: "Sign out" }).click();
  await expect(page.getByRole("heading", { name: "Sign in to Waypost" })).toBeVisible();
  await page.goto("/account?x=1");
  await expect(page).toHaveURL(/\/sign-in\?next=/);
  await look(page, "sign-in");
  await signIn(page, email, "a wrong password");
  await expect(page.getByText("The email address or the password is wrong.")).toBeVisible();
  await look(page, "sign-in-wrong");
  await signIn(page, email, PASSWORD);
  await expect(page.getByRole("heading", { name: "Your account" })).toBeVisible();
  await expect(page).toHaveURL(/\/account/);

  await page.goto(path);
  await expect(page.getByRole("heading", { name: "This link is no longer valid" })).toBeVisible();
  await look(page, "link-ended");
  await context.close();
});

test("a person who has a user joins with the present password", async ({ browser, waypost }) => {
  const person = await newPerson(browser, waypost, "VIEWER");
  const me = (await waypost.members.list()).data.find((member) => member.email === person.email);
  await waypost.members.delete(me!.id);
  const { path } = await invite(waypost, "DEVELOPER", person.email);
  await person.page.goto(path);
  await expect(person.page.getByLabel("Your name")).toHaveCount(0);
  await person.page.getByLabel("Password", { exact: true }).fill("not this one at all");
  await person.page.getByRole("button", { name: /^Join / }).click();
  await expect(person.page.getByText("The password is wrong.")).toBeVisible();
  await person.page.getByLabel("Password", { exact: true }).fill(PASSWORD);
  await person.page.getByRole("button", { name: /^Join / }).click();
  await expect(person.page.getByRole("navigation", { name: "Pages" })).toBeVisible();
  await person.context.close();
});

test("whoever forgot the password sets a new one by the operator's link, once", async ({ browser, waypost }) => {
  const { email, page, context } = await newPerson(browser, waypost, "DEVELOPER");
  const path = pathOf(operator("reset-password", "--email", email));
  const other = await stranger(browser);
  const reset = await other.newPage();
  await reset.goto(path);
  await expect(reset.getByLabel("Email address")).toHaveValue(email);
  await look(reset, "reset");
  await reset.getByLabel("New password", { exact: true }).fill("short");
  await reset.getByRole("button", { name: "Set the password" }).click();
  await expect(reset.getByLabel("New password", { exact: true })).toHaveAttribute("aria-invalid", "true");
  const changed = "five lazy words stand apart";
  await reset.getByLabel("New password", { exact: true }).fill(changed);
  await reset.getByRole("button", { name: "Set the password" }).click();
  await expect(reset.getByRole("heading", { name: "Sign in to Waypost" })).toBeVisible();
  await signIn(reset, email, PASSWORD);
  await expect(reset.getByText("The email address or the password is wrong.")).toBeVisible();
  await signIn(reset, email, changed);
  await expect(reset.getByRole("navigation", { name: "Pages" })).toBeVisible();

  // The session from before has ended.
  await page.goto("/account");
  await expect(page.getByRole("heading", { name: "Sign in to Waypost" })).toBeVisible({ timeout: 20_000 });
  await reset.goto(path);
  await expect(reset.getByRole("heading", { name: "This link is no longer valid" })).toBeVisible();
  await other.close();
  await context.close();
});

test("a person of two organizations switches, and sees the first steps of the new one", async ({ browser, waypost }) => {
  const { email, page, context } = await newPerson(browser, waypost, "DEVELOPER");
  const name = unique("Beta");
  const organization = operator("create-organization", "--name", name);
  operator("create-user", "--organization", organization, "--email", email, "--role", "OWNER");
  await page.reload();
  await page.getByRole("button", { name: /^Organization: .* Switch$/ }).click();
  await page.getByRole("menuitem", { name }).click();
  await expect(page.getByRole("button", { name: `Organization: ${name}. Switch` })).toBeVisible();
  await expect(page.getByRole("heading", { name: "Deliver your first mail" })).toBeVisible();
  await expect(page.getByText("0 of 4 steps are done.")).toBeVisible();
  await look(page, "first-steps");
  // What belongs to the other organization is not shown here.
  await page.goto("/messages");
  await expect(page.getByRole("table").getByRole("row")).toHaveCount(0);
  await context.close();
});

test("after too many attempts the page says how long to wait", async ({ browser }) => {
  const context = await stranger(browser);
  const page = await context.newPage();
  const email = `${unique("nobody")}@example.com`;
  await page.goto("/sign-in");
  for (let attempt = 0; attempt < 10; attempt += 1) {
    await signIn(page, email, `guess number ${attempt}`);
    await expect(page.getByText("The email address or the password is wrong.")).toBeVisible();
    await page.getByLabel("Password", { exact: true }).fill("");
  }
  await signIn(page, email, "guess number 11");
  await expect(page.getByText(/Too many attempts. Try again in \d+ minutes?\./)).toBeVisible();
  await expect(page.getByRole("button", { name: "Sign in", exact: true })).toBeDisabled();
  await look(page, "sign-in-too-many");
  await context.close();
});

test("a link to the sign-in page leads nowhere else", async ({ browser, waypost }) => {
  const person = await newPerson(browser, waypost, "VIEWER");
  const { page, context } = person;
  const origin = new URL(page.url()).origin;
  for (const next of ["https://evil.example/", "//evil.example/x", "/\\evil.example", "javascript:alert(1)"]) {
    await context.clearCookies();
    await page.goto(`/sign-in?next=${encodeURIComponent(next)}`);
    await signIn(page, person.email, PASSWORD);
    await expect(page.getByRole("navigation", { name: "Pages" })).toBeVisible();
    expect(new URL(page.url()).origin).toBe(origin);
    // Somebody who is signed in already is not led away either.
    await page.goto(`/sign-in?next=${encodeURIComponent(next)}`);
    await expect(page.getByRole("navigation", { name: "Pages" })).toBeVisible();
    expect(new URL(page.url()).origin).toBe(origin);
  }
  await context.close();
});

test("a stolen cookie ends with a sign-out everywhere, and a page that was open says so", async ({ browser, waypost }) => {
  const person = await newPerson(browser, waypost, "DEVELOPER");
  const thief = await stranger(browser);
  await thief.addCookies(await person.context.cookies());
  const stolen = await thief.newPage();
  await stolen.goto("/account");
  await expect(stolen.getByRole("heading", { name: "Your account" })).toBeVisible();

  await person.page.goto("/account");
  await person.page.getByRole("button", { name: "Sign out everywhere" }).click();
  await person.page.getByRole("dialog").getByRole("button", { name: "Sign out everywhere" }).click();
  await expect(person.page.getByRole("heading", { name: "Sign in to Waypost" })).toBeVisible();

  // The page that the thief has open still shows what it loaded; its next request ends it.
  await stolen.getByLabel("Name", { exact: true }).fill("Mallory");
  await stolen.getByRole("button", { name: "Save" }).click();
  await expect(stolen.getByText("Your session has ended.")).toBeVisible();
  await expect(stolen).toHaveURL(/next=%2Faccount/);
  await look(stolen, "sign-in-ended");
  const answer = await stolen.evaluate(async () => (await fetch("/v1/session")).status);
  expect(answer).toBe(401);

  // The person, too, comes back to the page that was left.
  await signIn(stolen, person.email, PASSWORD);
  await expect(stolen.getByRole("heading", { name: "Your account" })).toBeVisible();
  await expect(stolen.getByLabel("Name", { exact: true })).toHaveValue("Grace Hopper");
  await thief.close();
  await person.context.close();
});

test("the cookie of a session is out of reach of scripts and of other sites", async ({ browser, waypost }) => {
  const person = await newPerson(browser, waypost, "VIEWER");
  const cookies = await person.context.cookies();
  const cookie = cookies.find((one) => one.name === "__Host-waypost_session");
  expect(cookie).toMatchObject({ httpOnly: true, secure: true, sameSite: "Lax", path: "/" });
  expect(await person.page.evaluate(() => document.cookie)).not.toContain("waypost_session");
  const stored = await person.page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]));
  expect(stored).not.toContain(cookie!.value);
  await person.context.close();
});

test("a page on another origin changes nothing with the cookie of a session", async ({ browser, waypost, baseURL }) => {
  const person = await newPerson(browser, waypost, "OWNER");
  // The same host on another port is another origin, but the same site: the browser sends the cookie.
  const evil = createServer((_request, response) => {
    response.setHeader("content-type", "text/html");
    response.end(`<form method="post" action="${baseURL}/v1/api-keys" enctype="text/plain"><input name='{"name":"stolen","permissions":["SEND"],"x":"' value='"}'></form>`);
  });
  await new Promise<void>((ready) => evil.listen(0, "127.0.0.1", ready));
  const page = await person.context.newPage();
  await page.goto(`http://127.0.0.1:${(evil.address() as AddressInfo).port}/`);
  const before = (await waypost.apiKeys.list({ limit: 100 })).data.length;

  const answers = await page.evaluate(async (target) => {
    const body = JSON.stringify({ name: "stolen", permissions: ["SEND"] });
    const tries: RequestInit[] = [
      // A request that needs no preflight.
      { method: "POST", mode: "no-cors", credentials: "include", headers: { "content-type": "text/plain" }, body },
      // Requests that ask first, by the header that Waypost wants.
      { method: "POST", credentials: "include", headers: { "content-type": "application/json", "x-waypost-csrf": "1" }, body },
      { method: "DELETE", credentials: "include", headers: { "x-waypost-csrf": "1" } },
      // Reading.
      { credentials: "include" },
    ];
    return await Promise.all(
      tries.map(async (init) => {
        try {
          const answer = await fetch(`${target}/v1/api-keys`, init);
          return answer.type === "opaque" ? "not readable" : `${answer.status} ${await answer.text()}`;
        } catch {
          return "refused by the browser";
        }
      }),
    );
  }, baseURL);
  expect(answers).toEqual(["not readable", "refused by the browser", "refused by the browser", "refused by the browser"]);
  // A plain form, which the browser sends without asking.
  const [submitted] = await Promise.all([page.waitForResponse(/\/v1\/api-keys/), page.evaluate(() => document.forms[0]?.submit())]);
  expect(submitted.status()).toBe(403);
  expect((await waypost.apiKeys.list({ limit: 100 })).data.length).toBe(before);
  expect((await waypost.apiKeys.list({ limit: 100 })).data.map((key) => key.name)).not.toContain("stolen");

  // The session lives, and was not changed.
  await person.page.goto("/account");
  await expect(person.page.getByRole("heading", { name: "Your account" })).toBeVisible();
  evil.close();
  await person.context.close();
});

test("the dashboard is not shown in a frame of another page", async ({ browser, waypost, baseURL }) => {
  test.skip(!!process.env.DASHBOARD_URL, "the headers are those of Waypost, not of the development server");
  const person = await newPerson(browser, waypost, "OWNER");
  const evil = createServer((_request, response) => {
    response.setHeader("content-type", "text/html");
    response.end(`<iframe src="${baseURL}/account" width="800" height="600"></iframe>`);
  });
  await new Promise<void>((ready) => evil.listen(0, "127.0.0.1", ready));
  const page = await person.context.newPage();
  await page.goto(`http://127.0.0.1:${(evil.address() as AddressInfo).port}/`);
  await page.waitForTimeout(1_000);
  await expect(page.frameLocator("iframe").getByRole("heading", { name: "Your account" })).toHaveCount(0);
  evil.close();
  await person.context.close();
});
