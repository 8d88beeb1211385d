import { useQuery } from "@tanstack/react-query";
import type { MetricsTotals } from "waypost";
import { count, percent } from "@/format";
import { LoadError, Skeleton } from "@/ui/page";
import { hasTooManyFilters } from "./controls";
import { summaryQuery } from "./data";
import type { MetricsSearch } from "./search";

const FIGURES: readonly (readonly [label: string, value: (totals: MetricsTotals) => number, share?: (totals: MetricsTotals) => [percent: string, of: string]])[] = [
  ["Sent", (totals) => totals.totalSent],
  ["Delivered", (totals) => totals.totalDelivered, (totals) => [percent(totals.deliveryRate), "of sent"]],
  ["Opened", (totals) => totals.totalOpened, (totals) => [percent(totals.openRate), "of delivered"]],
  ["Clicked", (totals) => totals.totalClicked, (totals) => [percent(totals.clickRate), "of opened"]],
  ["Bounced", (totals) => totals.totalBounced, (totals) => [percent(totals.bounceRate), "of sent"]],
  ["Complained", (totals) => totals.totalComplained, (totals) => [percent(totals.complaintRate), "of delivered"]],
  ["Unsubscribed", (totals) => totals.totalUnsubscribed],
];

/** The totals of the period. */
export function Summary({ search }: { search: MetricsSearch }) {
  const { data, error, refetch } = useQuery({ ...summaryQuery(search), enabled: !hasTooManyFilters(search) });
  if (!data && error) return <LoadError error={error} retry={() => void refetch()} />;
  return (
    <dl className="grid grid-cols-2 gap-px overflow-hidden rounded-lg border border-line bg-line sm:grid-cols-4 xl:grid-cols-7">
      {FIGURES.map(([label, value, share]) => (
        <div key={label} className="bg-surface px-4 py-3 last:col-span-2 sm:last:col-span-2 xl:last:col-span-1">
          <dt className="text-[13px] text-text-2">{label}</dt>
          <dd>
            {data ? <span className="tabular text-lg font-semibold tracking-tight">{count(value(data))}</span> : <Skeleton className="h-6 w-16" />}
            <span className="tabular block min-h-4 text-xs text-text-3">{data && share && (
                <>
                  {share(data)[0]}
                  <span className="xl:sr-only"> {share(data)[1]}</span>
                </>
              )}</span>
          </dd>
        </div>
      ))}
    </dl>
  );
}
