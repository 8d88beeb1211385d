// What the README's examples take as given.

import type { SendMessageRequest, Waypost as Client, webhooks as Webhooks } from "waypost";

declare global {
  const waypost: Client;
  const webhooks: typeof Webhooks;
  const message: SendMessageRequest;
  const receipt: SendMessageRequest;
  const order: { id: string };
  const newSecret: string;
  const oldSecret: string;
  const markAsBounced: (address: string, type: string | undefined) => Promise<void>;
  const process: { env: Record<string, string | undefined> };
  const express: { raw(options: { type: string }): unknown };
  const app: { post(path: string, parse: unknown, handle: (request: ExpressRequest, response: ExpressResponse) => void): void };
  interface ExpressRequest {
    body: Uint8Array;
    headers: Record<string, string | string[] | undefined>;
  }
  interface ExpressResponse {
    sendStatus(status: number): void;
  }
}
