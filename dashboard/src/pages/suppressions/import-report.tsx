import type { ReactNode } from "react";
import { errorText } from "@/api";
import { count, plural } from "@/format";
import { Button } from "@/ui/button";
import { CopyButton } from "@/ui/copy";
import { Notice } from "@/ui/page";
import { Figures } from "@/ui/figures";
import type { ImportReport, WrongRow } from "./import";

interface ReportProps {
  report: ImportReport;
  busy: boolean;
  error: unknown;
  onAgain(): void;
  onClose(): void;
  /** The button that goes on without the wrong rows. */
  children: ReactNode;
}

const SHOWN = 100;

export function ImportReportView({ report, busy, error, onAgain, onClose, children }: ReportProps) {
  const { added, skipped, wrong, rest } = report;
  const stopped = rest.length > 0;
  return (
    <div className="space-y-4">
      <Notice kind={stopped || wrong.length > 0 ? "warning" : "success"}>{sentence(report)}</Notice>
      <Figures
        figures={[
          ["Added", count(added)],
          ["Skipped", count(skipped), "suppressed before, or repeated"],
          ["Wrong", count(wrong.length), stopped ? "found so far" : "left out"],
        ]}
      />
      {wrong.length > 0 && <WrongRows rows={wrong} />}
      {error ? <Notice kind="error">{errorText(error)}</Notice> : null}
      <div className="flex flex-wrap gap-2">
        {stopped ? children : <Button kind="primary" onClick={onClose}>Done</Button>}
        <Button onClick={onAgain} disabled={busy}>
          {stopped ? "Back to the list" : "Import another list"}
        </Button>
      </div>
    </div>
  );
}

function sentence({ added, skipped, wrong, rest }: ImportReport): string {
  const rows = `${plural(wrong.length, "row")} ${wrong.length === 1 ? "is" : "are"} wrong`;
  if (rest.length > 0 && added + skipped === 0) return `Nothing was imported yet: ${rows}.`;
  if (rest.length > 0) return `The import stopped: ${rows}. ${plural(rest.length, "row")} not imported yet.`;
  if (wrong.length > 0) return `The list was imported, without ${plural(wrong.length, "wrong row")}.`;
  return "The whole list was imported.";
}

function WrongRows({ rows }: { rows: readonly WrongRow[] }) {
  return (
    <section aria-label="Wrong rows" className="rounded-md border border-line">
      <div className="flex items-center justify-between border-b border-line py-1 pr-1.5 pl-4 sm:pl-5">
        <h3 className="text-[13px] font-medium">Wrong rows</h3>
        <CopyButton label="Copy the wrong rows" text={rows.map((row) => row.text).join("\n")} />
      </div>
      <ol aria-label="Wrong rows with their lines" tabIndex={0} className="max-h-64 divide-y divide-line overflow-y-auto">
        {rows.slice(0, SHOWN).map((row, at) => (
          <li key={at} className="grid gap-x-4 px-4 py-2 sm:grid-cols-[4.5rem_minmax(0,1fr)_minmax(0,1.2fr)] sm:px-5">
            <span className="tabular text-[13px] text-text-3">Line {row.line}</span>
            <code className="truncate font-mono text-[13px]" title={row.text}>
              {row.text}
            </code>
            <span className="text-[13px] text-red">{row.problem}</span>
          </li>
        ))}
      </ol>
      {rows.length > SHOWN && (
        <p className="border-t border-line px-4 py-2 text-[13px] text-text-3 sm:px-5">
          The first {SHOWN} of {count(rows.length)} are shown. The button above copies all.
        </p>
      )}
    </section>
  );
}
