import { Link } from "@tanstack/react-router";
import { useRef, useState } from "react";
import { WaypostError, type ProviderAccount } from "waypost";
import { errorText, queries, waypost } from "@/api";
import { count, providerName } from "@/format";
import { Button } from "@/ui/button";
import { Card, Empty, Notice } from "@/ui/page";
import { Numbers } from "./account-overview";
import { kindOf } from "./kinds";

interface Report {
  imported: number;
  alreadyThere: number;
  unusable: number;
  /** Where to continue; null if all lists were read. */
  cursor: string | null | undefined;
  state: "running" | "stopped" | "done";
  error?: unknown;
}

const START: Report = { imported: 0, alreadyThere: 0, unusable: 0, cursor: undefined, state: "running" };

interface Part {
  imported?: number | undefined;
  alreadyThere?: number | undefined;
  unusable?: number | undefined;
  nextCursor?: string | null | undefined;
}

const plus = (report: Report, part: Part): Report => ({
  ...report,
  imported: report.imported + (part.imported ?? 0),
  alreadyThere: report.alreadyThere + (part.alreadyThere ?? 0),
  unusable: report.unusable + (part.unusable ?? 0),
  cursor: part.nextCursor === undefined ? report.cursor : part.nextCursor,
});

/** Imports all lists, in as many calls as it takes; a call reads for at most 30 seconds. */
function useImport(account: ProviderAccount) {
  const [report, setReport] = useState<Report>();
  const stop = useRef(false);
  const run = async (from: Report) => {
    stop.current = false;
    let now: Report = { ...from, state: "running", error: undefined };
    setReport(now);
    try {
      do {
        const part = await waypost.providers.suppressions.import(account.id, now.cursor ? { cursor: now.cursor } : {});
        now = plus(now, part);
        setReport(now);
      } while (now.cursor !== null && !stop.current);
      setReport({ ...now, state: now.cursor === null ? "done" : "stopped" });
    } catch (error) {
      // The error tells what was imported before it, and where to continue.
      const details = error instanceof WaypostError ? error.details : undefined;
      setReport({ ...plus(now, details ?? {}), state: "stopped", error });
    }
    await queries.invalidateQueries({ queryKey: ["suppressions"] });
  };
  return {
    report,
    start: () => void run(START),
    resume: () => report && void run(report),
    stop: () => {
      stop.current = true;
    },
  };
}

export function AccountSuppressions({ account }: { account: ProviderAccount }) {
  const provider = providerName(account.providerType);
  const lists = kindOf(account.providerType)?.lists;
  const { report, start, resume, stop } = useImport(account);
  if (!lists) {
    return (
      <Card flush>
        <Empty title="Nothing to import">{provider} keeps no lists of addresses that bounced, complained or unsubscribed.</Empty>
      </Card>
    );
  }
  const isRunning = report?.state === "running";
  return (
    <Card title="Import suppressions" description={`Addresses that ${provider} no longer sends to.`}>
      <div className="space-y-5">
        <p className="max-w-2xl text-text-2">
          Waypost suppresses the addresses of these lists for all messages, so that no account sends to them: {lists} An import can be repeated.
        </p>
        <div className="flex flex-wrap gap-2">
          <Button kind="primary" onClick={start} busy={isRunning}>
            {report && !isRunning ? "Import again" : "Import now"}
          </Button>
          {isRunning && <Button onClick={stop}>Stop</Button>}
          {report?.state === "stopped" && <Button onClick={resume}>Continue</Button>}
        </div>
        {report && (
          <section aria-label="Report of the import" aria-live="polite" className="space-y-4 border-t border-line pt-5">
            <Numbers
              numbers={[
                ["New", count(report.imported), "suppressed now"],
                ["Known", count(report.alreadyThere), "suppressed before"],
                ["Unusable", count(report.unusable), "no address, or not for all mail"],
              ]}
            />
            <Outcome report={report} provider={provider} />
          </section>
        )}
      </div>
    </Card>
  );
}

function Outcome({ report, provider }: { report: Report; provider: string }) {
  if (report.error !== undefined) {
    return (
      <Notice kind="error">
        {errorText(report.error)}. What was read before is stored. If the key may not read the lists, give it the permission at {provider} or replace
        the credentials, then continue.
      </Notice>
    );
  }
  if (report.state === "done") {
    return (
      <Notice
        kind="success"
        action={
          <Link to={"/suppressions" as string} className="font-medium whitespace-nowrap underline underline-offset-2">
            See suppressions
          </Link>
        }
      >
        All lists were read.
      </Notice>
    );
  }
  return report.state === "stopped" ? (
    <Notice kind="info">Stopped. What was read is stored; “Continue” goes on where it stopped.</Notice>
  ) : (
    <p className="text-text-2">Reading the lists …</p>
  );
}
