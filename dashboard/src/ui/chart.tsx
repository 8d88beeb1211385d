/**
 * Charts of recharts, a large library: load this file lazily (`lazy(() => import("@/ui/chart"))`), never from a page
 * that must be there at once. Beside a chart its numbers must stand as a table, for those who do not see it.
 */

import {
  Area,
  AreaChart,
  Bar,
  BarChart,
  CartesianGrid,
  Line,
  LineChart,
  ResponsiveContainer,
  Tooltip,
  type TooltipContentProps,
  XAxis,
  YAxis,
} from "recharts";

/** The colours of charts, in light and dark. */
export type ChartColor = `var(--chart-${1 | 2 | 3 | 4 | 5 | 6})` | "var(--line-strong)";

export interface ChartSeries {
  /** The name of its values in the rows. */
  key: string;
  label: string;
  color: ChartColor;
}

export type ChartRow = { label: string } & Readonly<Record<string, number | string>>;

interface ChartProps {
  rows: readonly ChartRow[];
  series: readonly ChartSeries[];
  kind?: "line" | "area" | "bar";
  height?: number;
  /** A value in words: at the axis shorter than in the tooltip. */
  format(value: number, short: boolean): string;
}

const TICK = { fill: "var(--text-3)", fontSize: 11 } as const;

export default function Chart({ rows, series, kind = "line", height = 280, format }: ChartProps) {
  const data = rows as ChartRow[];
  const margin = { top: 8, right: 8, bottom: 0, left: 0 };
  const shared = [
    <CartesianGrid key="grid" stroke="var(--line)" vertical={false} />,
    <XAxis key="x" dataKey="label" tick={TICK} tickLine={false} axisLine={{ stroke: "var(--line)" }} minTickGap={28} tickMargin={8} />,
    <YAxis key="y" tick={TICK} tickLine={false} axisLine={false} width={52} tickFormatter={(value: number) => format(value, true)} />,
    <Tooltip
      key="tooltip"
      isAnimationActive={false}
      cursor={kind === "bar" ? { fill: "var(--hover)" } : { stroke: "var(--line-strong)" }}
      content={(props: TooltipContentProps) => <TooltipBox {...props} format={format} />}
    />,
  ];
  return (
    <div aria-hidden className="w-full [&_*]:outline-none" style={{ height }}>
      <ResponsiveContainer width="100%" height="100%">
        {kind === "bar" ? (
          <BarChart data={data} margin={margin} accessibilityLayer={false}>
            {shared}
            {series.map((one) => (
              <Bar key={one.key} dataKey={one.key} name={one.label} fill={one.color} radius={[2, 2, 0, 0]} maxBarSize={36} isAnimationActive={false} />
            ))}
          </BarChart>
        ) : kind === "area" ? (
          <AreaChart data={data} margin={margin} accessibilityLayer={false}>
            {shared}
            {series.map((one) => (
              <Area key={one.key} dataKey={one.key} name={one.label} stroke={one.color} fill={one.color} fillOpacity={0.12} strokeWidth={1.75} isAnimationActive={false} />
            ))}
          </AreaChart>
        ) : (
          <LineChart data={data} margin={margin} accessibilityLayer={false}>
            {shared}
            {series.map((one) => (
              <Line key={one.key} dataKey={one.key} name={one.label} stroke={one.color} strokeWidth={1.75} dot={rows.length === 1} isAnimationActive={false} />
            ))}
          </LineChart>
        )}
      </ResponsiveContainer>
    </div>
  );
}

function TooltipBox({ active, payload, label, format }: TooltipContentProps & Pick<ChartProps, "format">) {
  if (!active || payload.length === 0) return null;
  return (
    <div className="rounded-md border border-line bg-raised px-3 py-2 text-xs shadow-lg">
      <p className="mb-1 font-medium text-text">{label}</p>
      <ul className="space-y-0.5">
        {payload.map((item) => (
          <li key={String(item.dataKey)} className="flex items-center gap-2 text-text-2">
            <svg viewBox="0 0 8 8" className="size-2" aria-hidden>
              <rect width="8" height="8" rx="2" fill={item.color} />
            </svg>
            {item.name}
            <span className="tabular ml-auto pl-4 font-medium text-text">{format(Number(item.value), false)}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}
