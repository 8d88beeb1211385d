import { keepPreviousData, useQuery } from "@tanstack/react-query";
import type { MetricsTotals } from "waypost";
import { percent, plural } from "@/format";
import { Badge, type Tone } from "@/ui/badge";
import { Card, LoadError, Skeleton } from "@/ui/page";
import { type Span, totalsQuery } from "./data";

interface Bound {
  share: number;
  /** Continues "0.1 %: ". */
  text: string;
}

interface Rate {
  name: string;
  of(totals: MetricsTotals): number;
  basis(totals: MetricsTotals): string;
  bounds: readonly Bound[];
  /** The right end of the scale. */
  end: number;
  hint: string;
}

const RATES: readonly Rate[] = [
  {
    name: "Bounce rate",
    of: (totals) => totals.bounceRate,
    basis: (totals) => `${plural(totals.totalBounced, "bounce")} of ${plural(totals.totalSent, "sent mail")}`,
    bounds: [{ share: 0.05, text: "Amazon SES puts an account under review" }],
    end: 0.08,
    hint: "Send only to addresses that people confirmed. Waypost suppresses an address after a hard bounce.",
  },
  {
    name: "Complaint rate",
    of: (totals) => totals.complaintRate,
    basis: (totals) => `${plural(totals.totalComplained, "complaint")} of ${plural(totals.totalDelivered, "delivered mail")}`,
    bounds: [
      { share: 0.001, text: "Amazon SES puts an account under review" },
      { share: 0.003, text: "Gmail asks every sender to stay below this" },
    ],
    end: 0.0045,
    hint: "Gmail tells senders of no single complaint: see its own rate in Google Postmaster Tools.",
  },
];

/** Fewer mails than this say little about a rate. */
const ENOUGH = 500;

export function Rates({ span }: { span: Span }) {
  const { data, error, refetch } = useQuery({ ...totalsQuery(span), placeholderData: keepPreviousData });
  return (
    <Card title="Bounces and complaints" description="Beside the bounds that Amazon SES and Gmail set">
      {!data && error ? (
        <LoadError error={error} retry={() => void refetch()} />
      ) : (
        <div className="space-y-7">
          {RATES.map((rate) => (
            <RateLine key={rate.name} rate={rate} totals={data} />
          ))}
        </div>
      )}
    </Card>
  );
}

function RateLine({ rate, totals }: { rate: Rate; totals: MetricsTotals | undefined }) {
  const share = totals && rate.of(totals);
  return (
    <section aria-label={rate.name}>
      <div className="flex flex-wrap items-baseline justify-between gap-x-3">
        <h3 className="text-[13px] text-text-2">{rate.name}</h3>
        {totals && share !== undefined && <Judgement rate={rate} share={share} totals={totals} />}
      </div>
      {totals && share !== undefined ? (
        <p className="mt-0.5 flex flex-wrap items-baseline gap-x-2">
          <span className="tabular text-xl font-semibold tracking-tight">{totals.totalSent > 0 ? percent(share) : "–"}</span>
          <span className="tabular text-xs text-text-3">{rate.basis(totals)}</span>
        </p>
      ) : (
        <Skeleton className="mt-1 h-7 w-24" />
      )}
      <Scale rate={rate} share={share ?? 0} />
      <ul className="mt-2 space-y-0.5 text-[13px] text-text-2">
        {rate.bounds.map((bound) => (
          <li key={bound.share}>
            <span className="tabular mr-2 inline-block w-12 font-medium text-text">{percent(bound.share, bound.share < 0.01 ? 1 : 0)}</span>
            {bound.text}
          </li>
        ))}
      </ul>
      <p className="mt-1.5 text-[13px] text-text-3">{rate.hint}</p>
    </section>
  );
}

function Judgement({ rate, share, totals }: { rate: Rate; share: number; totals: MetricsTotals }) {
  if (totals.totalSent === 0) return null;
  const [tone, word] = judge(rate, share);
  return (
    <span className="flex items-center gap-2">
      {totals.totalSent < ENOUGH && <span className="text-xs text-text-3">few mails</span>}
      <Badge tone={tone} dot>
        {word}
      </Badge>
    </span>
  );
}

function judge(rate: Rate, share: number): [Tone, string] {
  const lowest = rate.bounds[0]!.share;
  if (share >= rate.bounds.at(-1)!.share) return ["red", rate.bounds.length > 1 ? "Reaches both bounds" : "Reaches the bound"];
  if (share >= lowest) return ["red", "Reaches the bound of SES"];
  return share >= lowest * 0.6 ? ["amber", "Close to the bound"] : ["green", rate.bounds.length > 1 ? "Below both bounds" : "Below the bound"];
}

/** The rate as a bar, with a mark at each bound. */
function Scale({ rate, share }: { rate: Rate; share: number }) {
  const [tone] = judge(rate, share);
  const color = tone === "red" ? "var(--chart-4)" : tone === "amber" ? "var(--chart-3)" : "var(--chart-2)";
  return (
    <svg viewBox="0 0 100 14" preserveAspectRatio="none" height={14} className="mt-2 w-full" aria-hidden>
      <rect y="4" width="100" height="6" rx="0.6" fill="var(--sunken)" />
      <rect y="4" width={Math.min(100, (share / rate.end) * 100)} height="6" rx="0.6" fill={color} />
      {rate.bounds.map((bound) => {
        const x = (bound.share / rate.end) * 100;
        return <line key={bound.share} x1={x} x2={x} y1="0" y2="14" stroke="var(--text-2)" strokeWidth="2" vectorEffect="non-scaling-stroke" />;
      })}
    </svg>
  );
}
