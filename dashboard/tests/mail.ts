/** Mail for tests of the pages that show it: an account of the simulator, and messages through it. */

import { expect } from "@playwright/test";
import type { MessageDetail, SendMessageRequest, Waypost } from "waypost";
import { unique } from "./fixtures";

/** Connects an account of the simulated SendGrid, which reports its events to Waypost. */
export async function connect(waypost: Waypost, displayName: string): Promise<string> {
  const account = await waypost.providers.create({
    providerType: "SENDGRID",
    displayName,
    credentials: { apiKey: unique("SG.simulated") },
  });
  return account.id;
}

type Mail = Partial<SendMessageRequest> & { subject: string };

/** Sends a message. The simulator does what the local parts of the addresses say. */
export async function send(waypost: Waypost, to: readonly string[], mail: Mail): Promise<string> {
  const { messageId } = await waypost.messages.send({ from: "shop@example.com", to: [...to], text: "Thank you.", ...mail });
  expect(messageId).toBeTruthy();
  return messageId!;
}

/** Waits until a message is as a test wants it. */
export async function until(waypost: Waypost, id: string, wanted: (message: MessageDetail) => boolean): Promise<MessageDetail> {
  let message = await waypost.messages.get(id);
  await expect(async () => {
    message = await waypost.messages.get(id);
    expect(wanted(message), `message is ${message.status}`).toBe(true);
  }).toPass({ timeout: 30_000 });
  return message;
}

/** Sends a message, and waits until each recipient's mail has ended: delivered, bounced or failed. */
export async function sendTo(waypost: Waypost, to: readonly string[], mail: Mail): Promise<string> {
  const id = await send(waypost, to, mail);
  await expect(async () => {
    const { data } = await waypost.messages.recipients.list(id);
    expect(data.filter((one) => ["DELIVERED", "BOUNCED", "FAILED"].includes(one.status))).toHaveLength(to.length);
  }).toPass({ timeout: 30_000 });
  return id;
}

/** An address of which nobody else knows, which does what its name says. */
export const address = (behaviour: string): string => `${behaviour}+${unique("t").slice(2)}@example.org`;
