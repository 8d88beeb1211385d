/** What a suppression's source means, in words. */

import type { Suppression } from "waypost";
import { words } from "@/format";
import type { Tone } from "@/ui/badge";

export const SOURCES = ["BOUNCE", "COMPLAINT", "UNSUBSCRIBE", "MANUAL", "IMPORT"] as const;
export type Source = (typeof SOURCES)[number];

interface Meaning {
  label: string;
  tone: Tone;
  /** Continues "ada@example.org gets no mail: …". */
  why: string;
}

const MEANINGS: Record<Source, Meaning> = {
  BOUNCE: { label: "Bounced", tone: "red", why: "mail to it bounced" },
  COMPLAINT: { label: "Reported as spam", tone: "red", why: "the recipient reported a message as spam" },
  UNSUBSCRIBE: { label: "Unsubscribed", tone: "amber", why: "the recipient unsubscribed" },
  MANUAL: { label: "Added by hand", tone: "gray", why: "it was added by hand or by a program" },
  IMPORT: { label: "Imported", tone: "gray", why: "it was in an imported list" },
};

export function meaning(source: string): Meaning {
  const known = SOURCES.find((one) => one === source);
  return known ? MEANINGS[known] : { label: words(source), tone: "gray", why: words(source).toLowerCase() };
}

/** A suppression with the message that caused it. */
export type SuppressionRow = Suppression & { messageId?: string | null };
