/** The download of all suppressions. */

import { waypost } from "@/api";
import { save } from "@/ui/save";
import { type Source } from "./meaning";

export interface ExportFilter {
  source?: Source | undefined;
  groupId?: string | undefined;
}

export async function exportNdjson(filter: ExportFilter): Promise<void> {
  const answer = await waypost.suppressions.export(filter);
  save(await answer.blob(), "suppressions.ndjson");
}

const COLUMNS = ["emailHash", "source", "createdAt", "unsubscribeGroupId"] as const;

/** A CSV file of the export. It can be imported again: hashes stand for the addresses. */
export async function exportCsv(filter: ExportFilter): Promise<void> {
  const answer = await waypost.suppressions.export(filter);
  const parts = [`${COLUMNS.join(",")}\n`];
  const decoder = new TextDecoder();
  let rest = "";
  const take = (text: string) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    parts.push(lines.filter(Boolean).map(csvLine).join(""));
  };
  const reader = answer.body?.getReader();
  for (let chunk = await reader?.read(); chunk && !chunk.done; chunk = await reader?.read()) {
    take(decoder.decode(chunk.value, { stream: true }));
  }
  take("\n");
  save(new Blob(parts, { type: "text/csv" }), "suppressions.csv");
}

function csvLine(json: string): string {
  const row = JSON.parse(json) as Record<string, string | null>;
  // Hashes, words, times and ids: none of them needs quotes.
  return `${COLUMNS.map((column) => row[column] ?? "").join(",")}\n`;
}
