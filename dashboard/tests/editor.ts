/** What the tests of the pages with an editor use. */

import type { Page } from "@playwright/test";
import { Waypost } from "waypost";

export const editor = (page: Page, name: string) => page.getByRole("textbox", { name, exact: true });

/** Writes a text into an editor, in place of what is there. */
export async function write(page: Page, name: string, text: string): Promise<void> {
  await editor(page, name).click();
  await page.keyboard.press("Control+a");
  await page.keyboard.insertText(text);
}

/** Makes sure that there is an account that sends, and that it takes every domain. */
export async function letSend(): Promise<void> {
  const waypost = new Waypost();
  await waypost.settings.update({ unverifiedDomains: "accept" });
  const accounts = await waypost.providers.list();
  if (accounts.data.some((account) => account.isActive)) return;
  await waypost.providers.create({ providerType: "SENDGRID", displayName: "SendGrid", credentials: { apiKey: "SG.simulated.0123456789abcdefghij" } });
}
