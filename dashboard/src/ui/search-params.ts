/** Reads the values of a page's URL: what is not as it should be counts as absent. */

/** A text. The router reads a text of digits as a number. */
export const textParam = (value: unknown): string | undefined =>
  typeof value === "string" || typeof value === "number" ? String(value).trim() || undefined : undefined;

/** One of some words. */
export const wordParam = <T extends string>(value: unknown, words: readonly T[]): T | undefined =>
  words.find((word) => word === value);

/** The spans that lists offer, with their length in hours. */
export const SPANS = { "24h": 24, "7d": 168, "30d": 720, "90d": 2_160 } as const;
export type Span = keyof typeof SPANS;
export const SPAN_WORDS = Object.keys(SPANS) as Span[];

/** The beginning of a span that ends now, to the hour, so that a list keeps its place in the cache. */
export function spanStart(span: Span, now = Date.now()): string {
  const hour = 3_600_000;
  return new Date(Math.floor(now / hour) * hour - SPANS[span] * hour).toISOString();
}

/** The options of a `<Select>` of a span. */
export const SPAN_OPTIONS: readonly (readonly [string, string])[] = [
  ["", "Any time"],
  ["24h", "Last 24 hours"],
  ["7d", "Last 7 days"],
  ["30d", "Last 30 days"],
  ["90d", "Last 90 days"],
];
