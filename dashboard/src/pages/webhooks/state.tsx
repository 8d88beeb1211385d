import type { WebhookEndpoint } from "waypost";
import { relativeTime, timeOfDay } from "@/format";
import { Badge, type Tone } from "@/ui/badge";

/** After so many days of failures Waypost switches an endpoint off. */
const DISABLE_AFTER_MS = 5 * 86_400_000;

export interface EndpointState {
  name: "active" | "failing" | "off";
  label: string;
  tone: Tone;
  /** One more fact, for lists. */
  detail: string | undefined;
}

export function endpointState({ isActive, failingSince }: WebhookEndpoint): EndpointState {
  // Whether a person or Waypost switched it off is not known here; switching it on forgets the failures.
  if (!isActive) return { name: "off", label: "Off", tone: failingSince ? "red" : "gray", detail: failingSince ? `Failing since ${timeOfDay(failingSince)}` : undefined };
  if (failingSince) return { name: "failing", label: "Failing", tone: "amber", detail: `Since ${relativeTime(failingSince)}` };
  return { name: "active", label: "Active", tone: "green", detail: undefined };
}

/** When a failing endpoint is switched off, if it goes on failing. */
export const disabledAt = (failingSince: string): Date => new Date(new Date(failingSince).getTime() + DISABLE_AFTER_MS);

export function EndpointBadge({ endpoint }: { endpoint: WebhookEndpoint }) {
  const { label, tone } = endpointState(endpoint);
  return (
    <Badge dot tone={tone}>
      {label}
    </Badge>
  );
}
