import { useEffect, useState } from "react";
import { exactTime, relativeTime } from "@/format";

/** A time as "3 min. ago", with the exact one on hover. */
export function Time({ at }: { at: string | Date | null | undefined }) {
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => tick((count) => count + 1), 30_000);
    return () => clearInterval(timer);
  }, []);
  if (!at) return <span className="text-text-3">–</span>;
  const iso = typeof at === "string" ? at : at.toISOString();
  return (
    <time dateTime={iso} title={exactTime(at)} className="tabular whitespace-nowrap">
      {relativeTime(at)}
    </time>
  );
}
