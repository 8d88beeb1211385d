/** What differs between two versions. Loaded when two are compared. */

import { useQuery } from "@tanstack/react-query";
import type { TemplateDetail, TemplateVersion } from "waypost";
import { prettyJson } from "@/ui/editor/json";
import { LoadError, Notice, Skeleton } from "@/ui/page";
import { SimpleTable } from "@/ui/table";
import { DiffView } from "./diff-view";
import { versionQuery } from "./queries";
import { localeName } from "./words";

interface ComparisonProps {
  template: TemplateDetail;
  from: string;
  to: string;
}

export default function Comparison({ template, from, to }: ComparisonProps) {
  const [before, after] = [useQuery(versionQuery(template.id, from)), useQuery(versionQuery(template.id, to))];
  for (const query of [before, after]) {
    if (query.isError && !query.data) return <LoadError error={query.error} retry={() => void query.refetch()} />;
  }
  if (!before.data || !after.data) return <Skeleton className="h-64 w-full" />;
  return <Differences before={before.data} after={after.data} />;
}

const LINES: readonly (readonly [name: string, of: (version: TemplateVersion) => string])[] = [
  ["Language", (version) => localeName(version.locale)],
  ["Subject", (version) => version.subject ?? ""],
  ["Preheader", (version) => version.preheader ?? ""],
  ["From", (version) => version.from ?? ""],
  ["Reply-to", (version) => version.replyTo.join(", ")],
  ["Layout", (version) => version.parts.find((part) => part.templateId === version.layoutId)?.name ?? version.layoutId ?? ""],
  ["Written in", (version) => (version.mjmlSource === null ? "HTML" : "MJML")],
  ["Text", (version) => (version.isTextGenerated ? "made from the HTML" : version.textContent ? "the author's" : "none")],
];

const SOURCES: readonly (readonly [name: string, language: "html" | "text" | "json", of: (version: TemplateVersion) => string])[] = [
  ["Source", "html", (version) => version.mjmlSource ?? version.htmlContent],
  ["Text", "text", (version) => version.textContent ?? ""],
  ["Schema", "json", (version) => (version.variablesSchema ? prettyJson(version.variablesSchema) : "")],
];

function Differences({ before, after }: { before: TemplateVersion; after: TemplateVersion }) {
  const [from, to] = [`Version ${before.versionNumber}`, `Version ${after.versionNumber}`];
  const lines = LINES.filter(([, of]) => of(before) !== of(after));
  const sources = SOURCES.filter(([, , of]) => of(before) !== of(after));
  if (lines.length === 0 && sources.length === 0) return <Notice>Nothing differs between the two versions.</Notice>;
  return (
    <div className="space-y-5">
      {lines.length > 0 && (
        <SimpleTable head={["Field", from, to]} label="Fields that differ">
          {lines.map(([name, of]) => (
            <tr key={name}>
              <td className="text-text-3">{name}</td>
              <td>{of(before) || "–"}</td>
              <td>{of(after) || "–"}</td>
            </tr>
          ))}
        </SimpleTable>
      )}
      {sources.map(([name, language, of]) => (
        <section key={name} className="space-y-2">
          <h2 className="text-sm font-medium">
            {name}, <span className="text-text-3">from {from.toLowerCase()} to {to.toLowerCase()}</span>
          </h2>
          <DiffView before={of(before)} after={of(after)} language={language} label={`${name}: what differs`} />
        </section>
      ))}
    </div>
  );
}
