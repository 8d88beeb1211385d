/** What the tests of the pages with an editor use. */

import type { Page } from "@playwright/test";
import { Waypost } from "waypost";
import { unique } from "./fixtures";

export const editor = (page: Page, name: string) => page.getByRole("textbox", { name, exact: true });

/** Writes a text into an editor, in place of what is there. */
export async function write(page: Page, name: string, text: string): Promise<void> {
  await editor(page, name).click();
  await page.keyboard.press("Control+a");
  await page.keyboard.insertText(text);
}

/**
 * Connects an account that sends for example.com, a verified domain of the simulator, whatever accounts other tests have
 * made. It changes no setting: tests of other files run at the same time, in the same organization.
 */
export async function letSend(): Promise<void> {
  const waypost = new Waypost();
  const account = await waypost.providers.create({ providerType: "SENDGRID", displayName: unique("Sends"), credentials: { apiKey: unique("SG.simulated") } });
  await waypost.routingRules.create({ name: unique("Sends"), senderDomain: "example.com", providerAccountId: account.id });
}
