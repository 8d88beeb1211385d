/** The types of events that an endpoint can receive, in groups, with what each means. */

import type { WebhookEventType } from "waypost";
import { words } from "@/format";

export interface EventMeaning {
  type: WebhookEventType;
  label: string;
  when: string;
}

export interface EventGroup {
  name: string;
  events: readonly EventMeaning[];
}

export const EVENT_GROUPS: readonly EventGroup[] = [
  {
    name: "Sending",
    events: [
      { type: "QUEUED", label: "Queued", when: "Waypost accepted a message." },
      { type: "SENT", label: "Sent", when: "A provider accepted it." },
      { type: "DELIVERED", label: "Delivered", when: "The recipient's mailbox accepted it." },
      { type: "DEFERRED", label: "Deferred", when: "It is delayed, and tried again." },
      { type: "BOUNCED", label: "Bounced", when: "The receiving server refused it." },
      { type: "DROPPED", label: "Dropped", when: "It was not sent to this recipient." },
    ],
  },
  {
    name: "Recipients",
    events: [
      { type: "OPENED", label: "Opened", when: "The message was opened." },
      { type: "CLICKED", label: "Clicked", when: "A link of it was followed." },
      { type: "COMPLAINED", label: "Reported as spam", when: "The recipient reported it as spam." },
      { type: "UNSUBSCRIBED", label: "Unsubscribed", when: "The recipient unsubscribed." },
    ],
  },
  {
    name: "Suppressions",
    events: [
      { type: "SUPPRESSION_CREATED", label: "Address suppressed", when: "An address gets no mail from now on." },
      { type: "SUPPRESSION_REMOVED", label: "Suppression removed", when: "An address can get mail again." },
    ],
  },
  {
    name: "Your organization",
    events: [
      { type: "DOMAIN_VERIFIED", label: "Domain verified", when: "A sender domain became verified." },
      { type: "DOMAIN_BROKEN", label: "Domain broken", when: "A verified domain no longer is." },
      { type: "PROVIDER_FAILING", label: "Provider failing", when: "An account cannot send, or too many calls fail." },
      { type: "PROVIDER_RECOVERED", label: "Provider recovered", when: "A failure of an account ended." },
      { type: "WEBHOOK_ENDPOINT_DISABLED", label: "Webhook endpoint disabled", when: "Waypost switched off another endpoint." },
    ],
  },
];

export const EVENTS: readonly EventMeaning[] = EVENT_GROUPS.flatMap((group) => group.events);

export const eventLabel = (type: string): string => EVENTS.find((one) => one.type === type)?.label ?? words(type);

/** Types in the order of the groups; those that this page does not know come last. */
export function inOrder(types: readonly string[]): string[] {
  const known = EVENTS.map((event): string => event.type);
  return [...known.filter((type) => types.includes(type)), ...types.filter((type) => !known.includes(type))];
}

/** The types of an endpoint in a few words: "Delivered, Bounced and 3 more". */
export function eventsText(types: readonly string[]): string {
  if (types.length >= EVENTS.length) return "All events";
  const labels = inOrder(types).map(eventLabel);
  if (labels.length <= 3) return labels.join(", ");
  return `${labels.slice(0, 2).join(", ")} and ${labels.length - 2} more`;
}
