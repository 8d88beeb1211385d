/** The states of API keys, and the times at which they expire. */

import type { ApiKey } from "waypost";
import { queries } from "@/api";
import { relativeTime } from "@/format";
import type { Tone } from "@/ui/badge";

export const KEYS = "api-keys";

export const keysChanged = () => queries.invalidateQueries({ queryKey: [KEYS] });

export interface KeyState {
  label: string;
  tone: Tone;
  works: boolean;
}

export function keyState({ revokedAt, expiresAt }: ApiKey, now = Date.now()): KeyState {
  if (revokedAt) return { label: "Revoked", tone: "gray", works: false };
  if (expiresAt && new Date(expiresAt).getTime() <= now) return { label: "Expired", tone: "amber", works: false };
  return { label: "Active", tone: "green", works: true };
}

/** A replaced secret that still works: until when. */
export function oldSecretText({ oldSecretValidUntil, revokedAt }: ApiKey, now = Date.now()): string | undefined {
  if (revokedAt || !oldSecretValidUntil || new Date(oldSecretValidUntil).getTime() <= now) return undefined;
  return `The old secret ends ${relativeTime(oldSecretValidUntil, now)}`;
}

const DAY_MS = 86_400_000;

export const EXPIRIES = [
  ["never", "Never"],
  ["7", "In 7 days"],
  ["30", "In 30 days"],
  ["90", "In 90 days"],
  ["365", "In a year"],
  ["own", "At a time of my own"],
] as const;

/** The choice and its time as the API takes it: null is never. */
export function expiryOf(choice: string, own: string): Date | null | undefined {
  if (choice === "never") return null;
  if (choice === "own") return own && !Number.isNaN(Date.parse(own)) ? new Date(own) : undefined;
  return new Date(Date.now() + Number(choice) * DAY_MS);
}

/** A time as `<input type="datetime-local">` has it. */
export function localTime(value: string | null): string {
  if (!value) return "";
  const time = new Date(value);
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
