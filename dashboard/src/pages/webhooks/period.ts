/** The periods whose deliveries can be replayed, in the person's own time. */

export const PERIODS = [
  ["24h", "In the last 24 hours"],
  ["today", "Today"],
  ["yesterday", "Yesterday"],
  ["7d", "In the last 7 days"],
  ["30d", "In the last 30 days"],
  ["own", "In a period of my own"],
] as const;

export type Period = (typeof PERIODS)[number][0];

const HOUR_MS = 3_600_000;

function midnight(daysAgo: number): Date {
  const day = new Date();
  day.setHours(0, 0, 0, 0);
  // Not by 24 hours: a day may have 23 or 25.
  day.setDate(day.getDate() - daysAgo);
  return day;
}

/** Cut to the minute, so that the same choice gives the same times for a while. */
const minute = (ms: number): Date => new Date(Math.floor(ms / 60_000) * 60_000);

const iso = (local: string): string => (local && !Number.isNaN(Date.parse(local)) ? new Date(local).toISOString() : "");

/** The beginning and the end; an empty beginning if it is still to be chosen. */
export function periodOf(period: Period, from: string, to: string, now = Date.now()): { since: string; until: string } {
  const end = minute(now + 60_000).toISOString();
  switch (period) {
    case "24h":
      return { since: minute(now - 24 * HOUR_MS).toISOString(), until: end };
    case "today":
      return { since: midnight(0).toISOString(), until: end };
    case "yesterday":
      return { since: midnight(1).toISOString(), until: midnight(0).toISOString() };
    case "7d":
      return { since: minute(now - 168 * HOUR_MS).toISOString(), until: end };
    case "30d":
      // One minute less: the API takes 30 days at most, and the end lies ahead.
      return { since: minute(now - 720 * HOUR_MS + 120_000).toISOString(), until: end };
    case "own":
      return { since: iso(from), until: iso(to) || end };
  }
}
