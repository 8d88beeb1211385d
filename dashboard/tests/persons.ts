/** People of the tests: each is invited by the API, and signs in with a browser of its own. */

import { execFileSync } from "node:child_process";
import { createHmac } from "node:crypto";
import type { Browser, BrowserContext, Page } from "@playwright/test";
import type { Waypost } from "waypost";
import { expect, unique } from "./fixtures";

export type Role = "OWNER" | "ADMIN" | "DEVELOPER" | "VIEWER";

export interface Person {
  email: string;
  name: string;
  password: string;
  context: BrowserContext;
  page: Page;
}

export const PASSWORD = "four lazy words apart";

/** A browser in which nobody is signed in. */
export async function stranger(browser: Browser): Promise<BrowserContext> {
  return await browser.newContext({ storageState: { cookies: [], origins: [] } });
}

/** Runs a command of the operator, and gives what it prints. */
export function operator(...command: string[]): string {
  const program = process.env.WAYPOST_API_BIN;
  if (!program) throw new Error("The test needs WAYPOST_API_BIN, as scripts/test-dashboard.sh sets it.");
  return execFileSync(program, command, { encoding: "utf8" }).trim();
}

/** The path of a link, with its token. */
export function pathOf(link: string): string {
  const { pathname, hash } = new URL(link);
  return pathname + hash;
}

/** Invites a person and gives the path of the link, with its token. */
export async function invite(waypost: Waypost, role: Role, email = `${unique("person")}@example.com`): Promise<{ email: string; path: string }> {
  const { url } = await waypost.invitations.create({ email, role });
  return { email, path: pathOf(url) };
}

/** A new person of the organization, who is signed in. */
export async function newPerson(browser: Browser, waypost: Waypost, role: Role, name = "Grace Hopper"): Promise<Person> {
  const { email, path } = await invite(waypost, role);
  const context = await stranger(browser);
  const page = await context.newPage();
  await page.goto(path);
  await page.getByLabel("Your name").fill(name);
  await page.getByLabel("Password", { exact: true }).fill(PASSWORD);
  await page.getByRole("button", { name: /^Join / }).click();
  await expect(page.getByRole("navigation", { name: "Pages" })).toBeVisible();
  return { email, name, password: PASSWORD, context, page };
}

/** Signs in by the form. */
export async function signIn(page: Page, email: string, password: string): Promise<void> {
  await page.getByLabel("Email address").fill(email);
  await page.getByLabel("Password", { exact: true }).fill(password);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
}

const BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/** The code of an authenticator app (RFC 6238), `steps` of 30 seconds from now. */
export function totp(secret: string, steps = 0): string {
  const bits = [...secret.replaceAll(/[\s=]/g, "").toUpperCase()].map((letter) => BASE32.indexOf(letter).toString(2).padStart(5, "0")).join("");
  const key = Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)));
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30_000) + steps));
  const digest = createHmac("sha1", key).update(counter).digest();
  const offset = digest[19]! & 15;
  return String((digest.readUInt32BE(offset) & 0x7fffffff) % 1_000_000).padStart(6, "0");
}
