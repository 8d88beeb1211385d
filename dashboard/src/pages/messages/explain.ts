/** What happened to a message, in plain words. */

import type { EventType, HistoryEvent, MessageDetail, SendAttempt } from "waypost";
import { words } from "@/format";
import { type Tone, statusTone } from "@/ui/badge";

export interface Explanation {
  title: string;
  /** What it means. */
  text?: string | undefined;
  /** What to do. */
  advice?: string | undefined;
  /** The words of the server or of the provider. */
  quote?: string | undefined;
  tone: Tone;
}

/** Explains an event. `account` is the name of the account that it belongs to. */
export function explainEvent(event: HistoryEvent, account: string): Explanation {
  const tone = event.isBot ? "gray" : statusTone(event.eventType);
  return { tone, ...explain(event, account) };
}

function explain(event: HistoryEvent, account: string): Omit<Explanation, "tone"> {
  switch (event.eventType) {
    case "QUEUED":
      return { title: "Accepted", text: "Waypost stored the message. It waits to be sent." };
    case "SENT":
      return { title: `Taken by ${account}`, text: "The provider has the mail and now hands it to the recipient's mail server." };
    case "DELIVERED":
      return {
        title: "Delivered",
        text: "The recipient's mail server took the mail, be it for the inbox or for the spam folder.",
      };
    case "OPENED":
      return event.isBot
        ? { title: "Opened by a program", text: "A mail server or a scanner loaded the images. It says nothing about the person." }
        : { title: "Opened", text: "The images of the mail were loaded." };
    case "CLICKED":
      return event.isBot
        ? { title: "A program followed a link", text: "A scanner checked the link. It says nothing about the person.", quote: event.url }
        : { title: "Clicked", text: "The recipient followed a link.", quote: event.url };
    case "BOUNCED":
      return explainBounce(event);
    case "COMPLAINED":
      return {
        title: "Reported as spam",
        text: "The recipient marked the mail as spam. Waypost suppresses the address from now on.",
        quote: event.reason,
      };
    case "UNSUBSCRIBED":
      return { title: "Unsubscribed", text: "The recipient used the unsubscribe link.", quote: event.reason };
    case "DROPPED":
      return explainDrop(event.reason);
    case "DEFERRED":
      return explainDeferral(event, account);
    default:
      return { title: words(event.eventType), quote: event.reason };
  }
}

function explainBounce({ bounceType, reason }: HistoryEvent): Omit<Explanation, "tone"> {
  const known = explainReply(reason);
  switch (bounceType) {
    case "hard":
      return {
        title: "Bounced for good",
        text: known ?? "The address does not exist, or its server takes no mail for it.",
        advice: "Waypost suppresses the address from now on. If the address is right after all, remove its suppression.",
        quote: reason,
      };
    case "soft":
      return {
        title: "Bounced for now",
        text: known ?? "The mailbox could not take the mail, and the provider gave up.",
        advice: "A later mail may arrive. Waypost suppresses an address that bounces again and again.",
        quote: reason,
      };
    case "block":
      return {
        title: "Blocked by the receiving server",
        text: known ?? "The server refused the mail because of its content, or because of the reputation of the sender.",
        advice: "Check the records of your domain and what the mail says. The address itself may be fine.",
        quote: reason,
      };
    default:
      return { title: "Bounced", text: known ?? "The recipient's mail server refused the mail.", quote: reason };
  }
}

function explainDrop(reason: string | undefined): Omit<Explanation, "tone"> {
  switch (reason) {
    case "CANCELLED":
      return { title: "Cancelled", text: "Somebody cancelled the message before it was sent to this recipient." };
    case "EXPIRED":
      return { title: "Expired", text: "The message could not be sent before its time was over, so Waypost gave it up." };
    case "suppressed":
      return {
        title: "Not sent: the address is suppressed",
        text: "The address bounced, complained or unsubscribed before, or somebody added it to the suppressions.",
        advice: "Look it up on the page Suppressions.",
      };
    default:
      return {
        title: "Not sent",
        text: explainReply(reason) ?? explainCall(reason) ?? "The mail was refused, and trying again would not help.",
        quote: reason,
      };
  }
}

function explainDeferral({ reason, attemptId }: HistoryEvent, account: string): Omit<Explanation, "tone"> {
  const own = explainWaiting(reason);
  if (own) return { title: "Put off", text: own };
  const text = explainCall(reason);
  if (text) return { title: `${account} did not take it`, text: `${text} Waypost tries again, by a fallback where there is one.`, quote: reason };
  return {
    title: "Put off",
    text: explainReply(reason) ?? (attemptId ? "The recipient's mail server asked to come again later. The provider does." : "It will be tried again later."),
    quote: reason,
  };
}

/** Why Waypost made no call for now. */
const WAITING: readonly (readonly [part: string, text: string])[] = [
  ["circuit of its account is open", "Too many calls to the account fail, so Waypost makes none for the moment."],
  ["asked for a pause", "The provider asked for a pause. Waypost waits that long."],
  ["account throttles", "The provider takes fewer calls than Waypost has. Waypost goes slower."],
  ["calls per second as it may", "The account makes as many calls per second as its limit allows."],
  ["calls under way as it may", "The account has as many calls under way as its limit allows."],
  ["no active provider account", "No active account may send for this sender's domain."],
  ["cannot send", "The provider refuses all mail of the account for now."],
];

const explainWaiting = (reason: string | undefined): string | undefined => WAITING.find(([part]) => reason?.includes(part))?.[1];

/** What a failed call to a provider means. */
function explainCall(reason: string | undefined): string | undefined {
  const status = Number(/^HTTP (\d{3})/.exec(reason ?? "")?.[1]);
  if (status === 401 || status === 403) return "The provider refused the credentials of the account, or the sender.";
  if (status === 429) return "The provider says that there were too many calls.";
  if (status >= 500) return "The provider had an error of its own.";
  if (status >= 400) return "The provider refused the mail.";
  if (/timed? ?out/i.test(reason ?? "")) return "The provider did not answer in time.";
  if (/connect|reset|closed|dns/i.test(reason ?? "")) return "The connection to the provider failed.";
  return undefined;
}

/** The enhanced status codes of RFC 3463 that say more than the type of a bounce. */
const REPLIES: readonly (readonly [code: RegExp, text: string])[] = [
  [/[45]\.1\.1\b/, "The mailbox does not exist at this domain."],
  [/[45]\.1\.2\b/, "The domain of the address does not exist, or takes no mail."],
  [/[45]\.1\.10\b/, "The domain says that it takes no mail."],
  [/[45]\.2\.1\b/, "The mailbox is closed, or gets too much mail at the moment."],
  [/[45]\.2\.2\b/, "The mailbox is full."],
  [/[45]\.(2\.3|3\.4)\b/, "The mail is too large for the receiving server."],
  [/[45]\.4\.[147]\b/, "The receiving server could not be reached in time."],
  [/[45]\.7\.(25|26|27|28|29|30)\b/, "The receiving server did not trust the mail: its SPF, DKIM or DMARC check failed, or too much came at once."],
  [/[45]\.7\.\d+\b/, "The receiving server refused the mail by its rules, for instance as spam."],
];

const explainReply = (reason: string | undefined): string | undefined => (reason ? REPLIES.find(([code]) => code.test(reason))?.[1] : undefined);

interface Outcome {
  word: string;
  tone: Tone;
  text: string;
}

const OUTCOMES: Record<string, Outcome> = {
  ACCEPTED: { word: "Accepted", tone: "green", text: "" },
  REJECTED: { word: "Refused", tone: "red", text: "The provider refused the mail." },
  THROTTLED: { word: "Too many calls", tone: "amber", text: "The provider asked to come again later. This does not count as a try." },
  UNAVAILABLE: { word: "Failed", tone: "amber", text: "The provider could not be reached, or had an error." },
  UNKNOWN: { word: "Answer lost", tone: "amber", text: "The provider may have the mail. Waypost looks for evidence before it sends again." },
  PENDING: { word: "Calling", tone: "blue", text: "The call still runs." },
};

/** What the outcome of a call to a provider means. */
export function outcome(attempt: SendAttempt): Outcome {
  const known = OUTCOMES[attempt.outcome] ?? { word: words(attempt.outcome), tone: "gray", text: "" };
  const isError = attempt.outcome === "UNAVAILABLE" || attempt.outcome === "REJECTED";
  return { ...known, text: (isError && (explainReply(attempt.reason ?? undefined) ?? explainCall(attempt.reason ?? undefined))) || known.text };
}

/** Why a message that ended badly, or still waits, is where it is. Undefined if its history does not tell. */
export function explainStatus({ status, events, attempts }: MessageDetail): string | undefined {
  const latest = (type: EventType) => events.findLast((event) => event.eventType === type);
  const event = status === "BOUNCED" ? latest("BOUNCED") : status === "FAILED" ? latest("DROPPED") : undefined;
  if (event) return explain(event, "").text;
  if (status !== "QUEUED" || attempts.length === 0) return undefined;
  const waiting = explainWaiting(latest("DEFERRED")?.reason);
  return waiting ?? `It was tried ${attempts.length === 1 ? "once" : `${attempts.length} times`}. Waypost tries again by itself.`;
}
