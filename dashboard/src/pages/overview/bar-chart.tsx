/** The bars of the overview: plain SVG, because the library of the metrics page would double the first load. */

import { type PointerEvent, useState } from "react";
import type { MetricsBucket } from "waypost";
import { count, shortCount } from "@/format";

const HEIGHT = 150;

interface Part {
  label: string;
  color: string;
  value(bucket: MetricsBucket): number;
}

/** From the bottom of a bar to its top. What was sent without a report is under way, or its account reports nothing. */
const PARTS: readonly Part[] = [
  { label: "Delivered", color: "var(--chart-1)", value: (bucket) => bucket.delivered },
  { label: "Bounced", color: "var(--chart-4)", value: (bucket) => bucket.bounced },
  { label: "Not reported", color: "var(--line-strong)", value: (bucket) => Math.max(0, bucket.sent - bucket.delivered - bucket.bounced) },
];

const top = (bucket: MetricsBucket) => PARTS.reduce((sum, part) => sum + part.value(bucket), 0);

export function BarChart({ buckets, hourly }: { buckets: readonly MetricsBucket[]; hourly: boolean }) {
  const [at, setAt] = useState<number>();
  const most = niceTop(Math.max(1, ...buckets.map(top)));
  const width = buckets.length <= 10 ? 0.5 : 0.75;
  const shown = at === undefined ? undefined : buckets[at];
  const move = (event: PointerEvent<SVGSVGElement>) => {
    const box = event.currentTarget.getBoundingClientRect();
    const place = Math.floor(((event.clientX - box.left) / box.width) * buckets.length);
    setAt(Math.max(0, Math.min(buckets.length - 1, place)));
  };
  return (
    <figure>
      <figcaption className="mb-3 flex min-h-5 flex-wrap items-center gap-x-4 gap-y-1 text-xs text-text-2">
        {PARTS.map((part) => (
          <span key={part.label} className="inline-flex items-center gap-1.5">
            <svg viewBox="0 0 8 8" className="size-2" aria-hidden>
              <rect width="8" height="8" rx="2" fill={part.color} />
            </svg>
            {part.label}
            {shown && <span className="tabular font-medium text-text">{count(part.value(shown))}</span>}
          </span>
        ))}
        {shown && <span className="tabular text-text-3 sm:ml-auto">{bucketName(shown, hourly)}</span>}
      </figcaption>
      <div className="flex gap-2">
        <div className="tabular flex w-9 shrink-0 flex-col justify-between text-right text-[11px] leading-none text-text-3" style={{ height: HEIGHT }} aria-hidden>
          <span>{shortCount(most)}</span>
          <span>{shortCount(most / 2)}</span>
          <span>0</span>
        </div>
        <svg
          viewBox={`0 0 ${buckets.length} ${HEIGHT}`}
          preserveAspectRatio="none"
          height={HEIGHT}
          className="min-w-0 flex-1"
          aria-hidden
          onPointerMove={move}
          onPointerLeave={() => setAt(undefined)}
        >
          {[0.5, HEIGHT / 2, HEIGHT - 0.5].map((y) => (
            <line key={y} x1="0" x2={buckets.length} y1={y} y2={y} stroke="var(--line)" vectorEffect="non-scaling-stroke" />
          ))}
          {buckets.map((bucket, index) => (
            <Bar key={bucket.start ?? bucket.timestamp} bucket={bucket} index={index} most={most} width={width} faded={at !== undefined && at !== index} />
          ))}
        </svg>
      </div>
      <div className="mt-1.5 flex justify-between pl-11 text-[11px] text-text-3" aria-hidden>
        <span>{buckets[0] && bucketName(buckets[0], hourly)}</span>
        <span>{buckets.length > 1 && bucketName(buckets.at(-1)!, hourly)}</span>
      </div>
      <ReadAloud buckets={buckets} hourly={hourly} />
    </figure>
  );
}

interface BarProps {
  bucket: MetricsBucket;
  index: number;
  /** The value at the top of the chart. */
  most: number;
  /** As a share of the place of a bar. */
  width: number;
  faded: boolean;
}

function Bar({ bucket, index, most, width, faded }: BarProps) {
  let y = HEIGHT;
  const x = index + (1 - width) / 2;
  return (
    <g opacity={faded ? 0.45 : 1}>
      {PARTS.map((part) => {
        const height = (part.value(bucket) / most) * HEIGHT;
        y -= height;
        return height > 0 && <rect key={part.label} x={x} width={width} y={y} height={height} fill={part.color} />;
      })}
    </g>
  );
}

/** The same numbers for those who do not see the bars. */
function ReadAloud({ buckets, hourly }: { buckets: readonly MetricsBucket[]; hourly: boolean }) {
  return (
    <table className="sr-only">
      <caption>Mail by {hourly ? "hour" : "day"}</caption>
      <thead>
        <tr>
          <th scope="col">{hourly ? "Hour" : "Day"}</th>
          <th scope="col">Sent</th>
          <th scope="col">Delivered</th>
          <th scope="col">Bounced</th>
        </tr>
      </thead>
      <tbody>
        {buckets.map((bucket) => (
          <tr key={bucket.start ?? bucket.timestamp}>
            <th scope="row">{bucketName(bucket, hourly)}</th>
            <td>{bucket.sent}</td>
            <td>{bucket.delivered}</td>
            <td>{bucket.bounced}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const dayName = new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric", month: "short" });
const hourName = new Intl.DateTimeFormat("en-GB", { weekday: "short", hour: "2-digit", minute: "2-digit" });

const bucketName = (bucket: MetricsBucket, hourly: boolean): string =>
  (hourly ? hourName : dayName).format(new Date(bucket.start ?? `${bucket.timestamp.replace(" ", "T")}Z`));

/** The next 1, 2, 4, 5 or 10 times a power of ten, so that the half is a round number too. */
function niceTop(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  const factor = [1, 2, 4, 5, 10].find((one) => one * power >= value) ?? 10;
  return Math.max(2, factor * power);
}
