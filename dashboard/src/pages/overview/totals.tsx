import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { MetricsTotals } from "waypost";
import { count, percent } from "@/format";
import { Card, LoadError, Skeleton } from "@/ui/page";
import { seriesQuery, type Span, totalsQuery } from "./data";
import { BarChart } from "./bar-chart";
import { SPAN_NAMES } from "./span";

interface Figure {
  label: string;
  value(totals: MetricsTotals): number;
  /** The share below the number, and of what it is one. */
  share?(totals: MetricsTotals): [share: number, of: string];
}

const FIGURES: readonly Figure[] = [
  { label: "Sent", value: (totals) => totals.totalSent },
  { label: "Delivered", value: (totals) => totals.totalDelivered, share: (totals) => [totals.deliveryRate, "of sent"] },
  { label: "Opened", value: (totals) => totals.totalOpened, share: (totals) => [totals.openRate, "of delivered"] },
  { label: "Clicked", value: (totals) => totals.totalClicked, share: (totals) => [totals.clickRate, "of opened"] },
  { label: "Bounced", value: (totals) => totals.totalBounced, share: (totals) => [totals.bounceRate, "of sent"] },
  { label: "Complained", value: (totals) => totals.totalComplained, share: (totals) => [totals.complaintRate, "of delivered"] },
];

export function Totals({ span }: { span: Span }) {
  const totals = useQuery({ ...totalsQuery(span), placeholderData: keepPreviousData });
  const series = useQuery({ ...seriesQuery(span), placeholderData: keepPreviousData });
  const error = (!totals.data && totals.error) || (!series.data && series.error);
  const retry = () => void Promise.all([totals.refetch(), series.refetch()]);
  return (
    <Card
      title={`Mail of ${SPAN_NAMES[span]}`}
      description="Each recipient counts once. Tests do not count."
      actions={
        <Link to="/metrics" className="text-[13px] font-medium text-accent-text hover:underline">
          All metrics
        </Link>
      }
      flush
    >
      {error ? (
        <LoadError error={error} retry={retry} />
      ) : (
        <>
          <dl className="grid grid-cols-2 gap-px border-b border-line bg-line sm:grid-cols-3 lg:grid-cols-6">
            {FIGURES.map((figure) => (
              <FigureCell key={figure.label} figure={figure} totals={totals.data} />
            ))}
          </dl>
          <div className="p-4 sm:p-5">
            {series.data ? <BarChart buckets={series.data} hourly={span === "24h"} /> : <Skeleton className="h-44 w-full" />}
          </div>
        </>
      )}
    </Card>
  );
}

function FigureCell({ figure, totals }: { figure: Figure; totals: MetricsTotals | undefined }) {
  const share = totals && figure.share?.(totals);
  return (
    <div className="bg-surface px-4 py-3.5 sm:px-5">
      <dt className="text-[13px] text-text-2">{figure.label}</dt>
      <dd className="mt-0.5">
        {totals ? (
          <span className="tabular text-xl font-semibold tracking-tight">{count(figure.value(totals))}</span>
        ) : (
          <Skeleton className="h-7 w-20" />
        )}
        <span className="tabular block h-5 text-xs leading-5 text-text-3">{totals && totals.totalSent > 0 && share && `${percent(share[0])} ${share[1]}`}</span>
      </dd>
    </div>
  );
}
