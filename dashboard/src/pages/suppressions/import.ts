/** The import of a list of any length: in parts that the API takes, with the lines of the list in its mistakes. */

import { ValidationError } from "waypost";
import { waypost } from "@/api";
import type { AddressList, Row } from "./addresses";

/** What one request takes: 10,000 rows and 5 MiB. */
const PART_ROWS = 10_000;
const PART_CHARS = 1_000_000;

export interface WrongRow extends Row {
  problem: string;
}

export interface ImportReport {
  added: number;
  skipped: number;
  /** The rows that cannot be imported. */
  wrong: WrongRow[];
  /** What is still to import: the import stopped at a wrong row. */
  rest: Row[];
}

/** The next part: as many rows as one request takes. */
function takePart(rows: readonly Row[]): Row[] {
  let chars = 0;
  const end = rows.findIndex((row, at) => at === PART_ROWS || (chars += row.text.length + 1) > PART_CHARS);
  return rows.slice(0, end === -1 ? undefined : Math.max(end, 1));
}

/** The rows of a refused part that the API names; throws the error if it is about anything else. */
function wrongRows(error: unknown, header: string, part: readonly Row[]): WrongRow[] {
  if (!(error instanceof ValidationError) || error.issues.length === 0) throw error;
  const lines = new Map<number, Row>();
  let line = 1 + header.split("\n").length;
  for (const row of part) {
    lines.set(line, row);
    line += row.text.split("\n").length;
  }
  return error.issues.map((issue) => {
    const [, number, column] = /^lines\.(\d+)(?:\.(.+))?$/.exec(issue.path ?? "") ?? [];
    const row = lines.get(Number(number));
    if (!row) throw error;
    return { ...row, problem: column ? `${column} ${issue.message}` : issue.message };
  });
}

interface ImportOptions {
  groupId: string | undefined;
  /** Leaves wrong rows out. Otherwise the import stops at the first part that has one. */
  leaveOut: boolean;
  onProgress(done: number): void;
}

export async function importList({ header, rows }: AddressList, options: ImportOptions): Promise<ImportReport> {
  const report: ImportReport = { added: 0, skipped: 0, wrong: [], rest: [...rows] };
  while (report.rest.length > 0) {
    const part = takePart(report.rest);
    const body = [header, ...part.map((row) => row.text)].join("\n");
    try {
      const result = await waypost.suppressions.import(body, options.groupId ? { unsubscribeGroupId: options.groupId } : undefined);
      report.added += result.imported;
      report.skipped += result.skipped;
      report.rest = report.rest.slice(part.length);
      options.onProgress(rows.length - report.rest.length);
    } catch (error) {
      const wrong = wrongRows(error, header, part);
      report.wrong.push(...wrong);
      const lines = new Set(wrong.map((row) => `${row.line} ${row.text}`));
      report.rest = report.rest.filter((row) => !lines.has(`${row.line} ${row.text}`));
      if (!options.leaveOut) return report;
    }
  }
  return report;
}

/** Two reports of one list, the second of what the first left. */
export const joined = (first: ImportReport, second: ImportReport): ImportReport => ({
  added: first.added + second.added,
  skipped: first.skipped + second.skipped,
  wrong: [...first.wrong, ...second.wrong],
  rest: second.rest,
});
