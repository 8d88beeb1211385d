import { clsx } from "clsx";
import { Fragment } from "react";
import type { DnsRecord } from "waypost";
import { Badge, type Tone } from "@/ui/badge";
import { CopyButton } from "@/ui/copy";

const PURPOSES: Record<string, string> = {
  DKIM: "signs the mail as yours (DKIM)",
  SPF: "lets the provider's servers send (SPF)",
  RETURN_PATH: "brings bounces back to the provider",
  TRACKING: "carries the provider's tracking links",
  DMARC: "says what receivers do with forged mail (DMARC)",
  OWNERSHIP: "proves that the domain is yours",
};

const STATUSES: Record<string, readonly [word: string, tone: Tone]> = {
  verified: ["Found", "green"],
  pending: ["Not found yet", "amber"],
  failed: ["Missing or wrong", "red"],
};

/** The DNS records of a domain, each with buttons that copy its name and its value. */
export function Records({ records, domain }: { records: readonly DnsRecord[]; domain: string }) {
  return (
    <div>
      <div aria-hidden className={clsx(GRID, "hidden border-b border-line px-4 py-2 text-xs font-medium text-text-3 sm:px-5 md:grid")}>
        <span>Type</span>
        <span>Name</span>
        <span>Value</span>
        <span>Status</span>
      </div>
      <ul aria-label={`DNS records of ${domain}`}>
        {records.map((record) => (
          <Row key={record.type + record.name + record.value} record={record} domain={domain} />
        ))}
      </ul>
    </div>
  );
}

const GRID = "grid-cols-[3.5rem_minmax(0,1fr)_minmax(0,1.2fr)_8rem] gap-x-4";

function Row({ record, domain }: { record: DnsRecord; domain: string }) {
  const [word, tone] = STATUSES[record.status] ?? [record.status, "gray"];
  const suffix = `.${domain}`;
  const own = record.name.endsWith(suffix) ? record.name.slice(0, -suffix.length) : undefined;
  return (
    <li className={clsx(GRID, "grid border-b border-line px-4 py-2.5 last:border-0 max-md:grid-cols-[minmax(0,1fr)_auto] max-md:gap-y-1.5 sm:px-5")}>
      <div className="pt-1 font-mono text-[13px] font-medium">
        <span className="sr-only">Type </span>
        {record.type}
      </div>
      <div className="min-w-0 max-md:order-3 max-md:col-span-2">
        <CopyLine label="Name" text={record.name}>
          <Breaking text={own ?? record.name} />
          {own !== undefined && (
            <span className="text-text-3">
              <Breaking text={suffix} />
            </span>
          )}
        </CopyLine>
        <p className="text-xs text-text-3">{PURPOSES[record.purpose] ?? record.purpose}</p>
      </div>
      <div className="min-w-0 max-md:order-4 max-md:col-span-2">
        <CopyLine label="Value" text={record.value}>
          <Breaking text={record.value} />
        </CopyLine>
        {record.priority !== null && <p className="text-xs text-text-3">priority {record.priority}</p>}
        {record.foundStatus === "mismatch" && <p className="text-xs wrap-anywhere text-red">DNS has another value: {record.found.join(", ")}</p>}
      </div>
      <div className="pt-0.5 max-md:order-2">
        <Badge dot tone={tone}>
          {word}
        </Badge>
      </div>
    </li>
  );
}

function CopyLine({ label, text, children }: { label: string; text: string; children: React.ReactNode }) {
  return (
    <div className="flex items-start gap-1">
      <code className="min-w-0 flex-1 pt-1 font-mono text-[13px] wrap-anywhere">
        <span className="sr-only">{label} </span>
        {children}
      </code>
      <span className="-mb-2">
        <CopyButton text={text} label={`Copy the ${label.toLowerCase()}`} />
      </span>
    </div>
  );
}

/** A name that breaks before its dots rather than within its words. */
function Breaking({ text }: { text: string }) {
  return text.split(/(?=\.)/).map((part, at) => (
    <Fragment key={at}>
      {at > 0 && <wbr />}
      {part}
    </Fragment>
  ));
}
