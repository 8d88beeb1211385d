/** Numbers, times and names as people read them. */

const integer = new Intl.NumberFormat("en");
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const count = (value: number): string => integer.format(value);
export const shortCount = (value: number): string => (value < 10_000 ? integer.format(value) : compact.format(value));

/** A share as per cent: `0.0123` is "1.23 %". */
export function percent(share: number | null | undefined, digits = 2): string {
  if (share === null || share === undefined || Number.isNaN(share)) return "–";
  return `${(share * 100).toFixed(digits)} %`;
}

const dateTime = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });
const shortTime = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });

export const exactTime = (value: string | Date): string => dateTime.format(new Date(value));
export const timeOfDay = (value: string | Date): string => shortTime.format(new Date(value));
export const date = (value: string | Date): string => day.format(new Date(value));

const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];
const relative = new Intl.RelativeTimeFormat("en", { numeric: "always", style: "short" });

/** "3 min. ago", "in 2 hr."; a date if it is more than a month away. */
export function relativeTime(value: string | Date, now = Date.now()): string {
  const seconds = (new Date(value).getTime() - now) / 1_000;
  if (Math.abs(seconds) < 10) return "just now";
  if (Math.abs(seconds) > 30 * 86_400) return date(value);
  for (const [unit, length] of UNITS) {
    if (Math.abs(seconds) >= length) return relative.format(Math.round(seconds / length), unit);
  }
  return relative.format(Math.round(seconds), "second");
}

/** A duration in milliseconds: "840 ms", "3.2 s", "4 min". */
export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return "–";
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  if (ms < 3_600_000) return `${Math.round(ms / 60_000)} min`;
  return `${(ms / 3_600_000).toFixed(1)} h`;
}

/** Bytes: "1.4 MB". */
export function bytes(value: number): string {
  if (value < 1_000) return `${value} B`;
  if (value < 1_000_000) return `${(value / 1_000).toFixed(1)} KB`;
  return `${(value / 1_000_000).toFixed(1)} MB`;
}

/** `HARD_BOUNCE` is "Hard bounce". */
export function words(name: string): string {
  const text = name.replaceAll("_", " ").toLowerCase();
  return text.charAt(0).toUpperCase() + text.slice(1);
}

const PROVIDERS: Record<string, string> = {
  SENDGRID: "SendGrid",
  POSTMARK: "Postmark",
  MAILGUN: "Mailgun",
  SES: "Amazon SES",
  SMTP: "SMTP",
};

export const providerName = (type: string): string => PROVIDERS[type] ?? words(type);

export const plural = (number: number, one: string, many = `${one}s`): string =>
  `${count(number)} ${number === 1 ? one : many}`;
