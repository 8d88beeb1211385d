import { useQuery } from "@tanstack/react-query";
import { clsx } from "clsx";
import { lazy, Suspense, useState } from "react";
import type { MetricsBucket } from "waypost";
import { count, percent, shortCount } from "@/format";
import { Button } from "@/ui/button";
import type { ChartRow, ChartSeries } from "@/ui/chart";
import { Card, LoadError, Skeleton } from "@/ui/page";
import { SimpleTable } from "@/ui/table";
import { hasTooManyFilters } from "./controls";
import { seriesQuery } from "./data";
import type { MetricsProps } from "./metrics";
import { type MetricsSearch, period, type Step, stepOf } from "./search";

const Chart = lazy(() => import("@/ui/chart"));

const COUNTS = [
  { key: "sent", label: "Sent", color: "var(--line-strong)" },
  { key: "delivered", label: "Delivered", color: "var(--chart-1)" },
  { key: "opened", label: "Opened", color: "var(--chart-5)" },
  { key: "clicked", label: "Clicked", color: "var(--chart-6)" },
  { key: "bounced", label: "Bounced", color: "var(--chart-3)" },
  { key: "complained", label: "Complained", color: "var(--chart-4)" },
  { key: "unsubscribed", label: "Unsubscribed", color: "var(--chart-2)" },
] as const satisfies readonly ChartSeries[];

const RATES: readonly (ChartSeries & { of(bucket: MetricsBucket): number })[] = [
  { key: "deliveryRate", label: "Delivered, of sent", color: "var(--chart-1)", of: (bucket) => share(bucket.delivered, bucket.sent) },
  { key: "openRate", label: "Opened, of delivered", color: "var(--chart-5)", of: (bucket) => share(bucket.opened, bucket.delivered) },
  { key: "clickRate", label: "Clicked, of opened", color: "var(--chart-6)", of: (bucket) => share(bucket.clicked, bucket.opened) },
  { key: "bounceRate", label: "Bounced, of sent", color: "var(--chart-3)", of: (bucket) => share(bucket.bounced, bucket.sent) },
  { key: "complaintRate", label: "Complained, of delivered", color: "var(--chart-4)", of: (bucket) => share(bucket.complained, bucket.delivered) },
];

const share = (part: number, whole: number): number => (whole === 0 ? 0 : Math.min(1, part / whole));

/** The numbers over time: as counts, or as rates. */
export function Series({ search, onSearch }: MetricsProps) {
  const { data, error, refetch } = useQuery({ ...seriesQuery(search), enabled: !hasTooManyFilters(search) });
  const asRates = search.show === "rates";
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const toggle = (key: string) => setHidden((before) => (before.has(key) ? new Set([...before].filter((one) => one !== key)) : new Set([...before, key])));
  const series: readonly ChartSeries[] = asRates ? RATES : COUNTS;
  return (
    <Card
      title="Over time"
      actions={
        <>
          <Button small kind={asRates ? "quiet" : "secondary"} aria-pressed={!asRates} onClick={() => onSearch({ show: undefined })}>
            Counts
          </Button>
          <Button small kind={asRates ? "secondary" : "quiet"} aria-pressed={asRates} onClick={() => onSearch({ show: "rates" })}>
            Rates
          </Button>
        </>
      }
    >
      {!data && error ? (
        <LoadError error={error} retry={() => void refetch()} />
      ) : (
        <>
          <Legend series={series} hidden={hidden} onToggle={toggle} />
          {data ? (
            <Suspense fallback={<Skeleton className="h-70 w-full" />}>
              <Chart
                rows={data.map((bucket) => rowOf(bucket, stepOf(search), search))}
                series={series.filter((one) => !hidden.has(one.key))}
                format={(value, short) => (asRates ? percent(value, short ? 0 : 2) : short ? shortCount(value) : count(value))}
              />
            </Suspense>
          ) : (
            <Skeleton className="h-70 w-full" />
          )}
          {data && <Numbers buckets={data} search={search} />}
        </>
      )}
    </Card>
  );
}

function Legend({ series, hidden, onToggle }: { series: readonly ChartSeries[]; hidden: ReadonlySet<string>; onToggle(key: string): void }) {
  return (
    <div role="group" aria-label="Lines of the chart" className="mb-3 flex flex-wrap gap-1.5">
      {series.map((one) => (
        <button
          key={one.key}
          type="button"
          aria-pressed={!hidden.has(one.key)}
          onClick={() => onToggle(one.key)}
          className={clsx(
            "inline-flex items-center gap-1.5 rounded-full border border-line px-2.5 py-0.5 text-xs hover:bg-hover",
            hidden.has(one.key) ? "text-text-3 line-through" : "text-text-2",
          )}
        >
          <svg viewBox="0 0 8 8" className="size-2" aria-hidden>
            <rect width="8" height="8" rx="2" fill={hidden.has(one.key) ? "var(--line)" : one.color} />
          </svg>
          {one.label}
        </button>
      ))}
    </div>
  );
}

function rowOf(bucket: MetricsBucket, step: Step, search: MetricsSearch): ChartRow {
  const rates = Object.fromEntries(RATES.map((rate) => [rate.key, rate.of(bucket)]));
  const counts = Object.fromEntries(COUNTS.map(({ key }) => [key, bucket[key]]));
  return { label: bucketLabel(bucket, step, search), ...counts, ...rates };
}

/** The begin of a bucket as its zone's clocks show it. */
function bucketLabel({ timestamp }: MetricsBucket, step: Step, search: MetricsSearch): string {
  const local = new Date(`${timestamp.replace(" ", "T")}Z`);
  return new Intl.DateTimeFormat("en-GB", { timeZone: "UTC", ...parts(step, isLong(search)) }).format(local);
}

function parts(step: Step, withYear: boolean): Intl.DateTimeFormatOptions {
  if (step === "month") return { month: "short", year: "numeric" };
  if (step === "hour") return { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" };
  return { day: "numeric", month: "short", ...(withYear ? { year: "numeric" } : {}) };
}

const isLong = (search: MetricsSearch): boolean => Date.now() - new Date(period(search).from).getTime() > 300 * 86_400_000;

/** The numbers of the chart as a table. */
function Numbers({ buckets, search }: { buckets: readonly MetricsBucket[]; search: MetricsSearch }) {
  const step = stepOf(search);
  return (
    <details className="mt-3">
      <summary className="w-fit text-[13px] text-text-2 hover:text-text">Show the numbers</summary>
      <div className="mt-2 max-h-96 overflow-y-auto rounded-md border border-line">
        <SimpleTable head={["Begin", ...COUNTS.map(({ label }) => label)]} label="The numbers of the chart">
          {buckets.toReversed().map((bucket) => (
            <tr key={bucket.start ?? bucket.timestamp}>
              <td className="whitespace-nowrap">{bucketLabel(bucket, step, search)}</td>
              {COUNTS.map(({ key }) => (
                <td key={key} className="tabular">
                  {count(bucket[key])}
                </td>
              ))}
            </tr>
          ))}
        </SimpleTable>
      </div>
    </details>
  );
}
