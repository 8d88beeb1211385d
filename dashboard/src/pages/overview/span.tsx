import { ToggleGroup } from "radix-ui";
import { SPAN_WORDS, type Span } from "./data";

export const SPAN_NAMES: Record<Span, string> = {
  "24h": "the last 24 hours",
  "7d": "the last 7 days",
  "30d": "the last 30 days",
  "90d": "the last 90 days",
};

const LABELS: Record<Span, string> = { "24h": "24 hours", "7d": "7 days", "30d": "30 days", "90d": "90 days" };

/** The span that all numbers of the page are about. */
export function SpanChoice({ span, onSpan }: { span: Span; onSpan(span: Span): void }) {
  return (
    <ToggleGroup.Root
      type="single"
      value={span}
      onValueChange={(next) => next && onSpan(next as Span)}
      aria-label="Period"
      className="inline-flex rounded-md border border-line bg-surface p-0.5"
    >
      {SPAN_WORDS.map((one) => (
        <ToggleGroup.Item
          key={one}
          value={one}
          className="rounded px-2.5 py-1 text-[13px] font-medium text-text-2 hover:text-text data-[state=on]:bg-sunken data-[state=on]:text-text"
        >
          {LABELS[one]}
        </ToggleGroup.Item>
      ))}
    </ToggleGroup.Root>
  );
}
