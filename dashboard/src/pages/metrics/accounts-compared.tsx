import { lazy, Suspense } from "react";
import type { MetricsGroup, MetricsPercentiles } from "waypost";
import { duration } from "@/format";
import type { ChartSeries } from "@/ui/chart";
import { Skeleton } from "@/ui/page";
import { SimpleTable } from "@/ui/table";

const Chart = lazy(() => import("@/ui/chart"));

const SERIES: readonly ChartSeries[] = [
  { key: "accept", label: "Accepted to sent, 95 % within", color: "var(--chart-5)" },
  { key: "deliver", label: "Sent to delivered, 95 % within", color: "var(--chart-1)" },
];

/** How long mail takes by each account. */
export function AccountsCompared({ groups }: { groups: readonly MetricsGroup[] }) {
  const timed = groups.filter((group) => group.acceptToSent || group.sentToDelivered);
  if (timed.length === 0) return null;
  const rows = timed.map((group) => ({ label: group.name, accept: group.acceptToSent?.p95 ?? 0, deliver: group.sentToDelivered?.p95 ?? 0 }));
  return (
    <section aria-label="How long mail takes">
      <h3 className="text-[13px] font-medium">How long mail takes</h3>
      <p className="mb-3 text-[13px] text-text-3">From its acceptance, or its scheduled time, until the provider took it; and from there to the delivery.</p>
      {timed.length > 1 && (
        <Suspense fallback={<Skeleton className="h-44 w-full" />}>
          <ul className="mb-2 flex flex-wrap gap-x-4 gap-y-1 text-xs text-text-2">
            {SERIES.map((one) => (
              <li key={one.key} className="inline-flex items-center gap-1.5">
                <svg viewBox="0 0 8 8" className="size-2" aria-hidden>
                  <rect width="8" height="8" rx="2" fill={one.color} />
                </svg>
                {one.label}
              </li>
            ))}
          </ul>
          <Chart rows={rows} series={SERIES} kind="bar" height={180} format={duration} />
        </Suspense>
      )}
      <SimpleTable label="Times by account" head={["Account", "Accepted to sent: half", "95 %", "99 %", "Sent to delivered: half", "95 %", "99 %"]}>
        {timed.map((group) => (
          <tr key={group.id ?? group.name}>
            <td className="min-w-36 break-words">{group.name}</td>
            <Percentiles times={group.acceptToSent} />
            <Percentiles times={group.sentToDelivered} />
          </tr>
        ))}
      </SimpleTable>
    </section>
  );
}

function Percentiles({ times }: { times: MetricsPercentiles | undefined }) {
  return [times?.p50, times?.p95, times?.p99].map((time, at) => (
    <td key={at} className="tabular whitespace-nowrap">
      {duration(time)}
    </td>
  ));
}
