/** What the state of a delivery and the answer of an endpoint mean, in words. */

import type { WebhookAttempt, WebhookDelivery } from "waypost";
import { duration, words } from "@/format";
import type { Tone } from "@/ui/badge";

interface DeliveryState {
  label: string;
  tone: Tone;
  text: string;
}

export function deliveryState({ status, attemptCount, attempts }: Pick<WebhookDelivery, "status" | "attemptCount" | "attempts">): DeliveryState {
  switch (status) {
    case "DELIVERED":
      return { label: "Delivered", tone: "green", text: "Your server accepted the event." };
    case "FAILED":
      return { label: "Failed", tone: "red", text: "Your server did not accept the event, and it is not tried again by itself. You can replay it." };
    case "PENDING":
      return attemptCount > 0 || attempts.length > 0
        ? { label: "Waiting", tone: "amber", text: "The event waits for the next try." }
        : { label: "Waiting", tone: "blue", text: "The event waits for the first try." };
    default:
      return { label: words(status), tone: "gray", text: "" };
  }
}

export const isSuccess = ({ statusCode }: WebhookAttempt): boolean => statusCode !== null && statusCode >= 200 && statusCode < 300;

/** "500 after 120 ms", or the error of the call. */
export function answerText(attempt: WebhookAttempt | undefined): string {
  if (!attempt) return "–";
  if (attempt.statusCode === null) return attempt.answer ?? "No answer";
  return `${attempt.statusCode} after ${duration(attempt.durationMs)}`;
}
