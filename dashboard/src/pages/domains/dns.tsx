/** What DNS has of a domain, for all accounts together: SPF, DMARC, and what is wrong. */

import { useMutation, useQuery } from "@tanstack/react-query";
import { RefreshCw } from "lucide-react";
import { toast } from "sonner";
import { errorText, queries, waypost } from "@/api";
import { useMay } from "@/session";
import { Badge, type Tone } from "@/ui/badge";
import { Button } from "@/ui/button";
import { Copyable } from "@/ui/copy";
import { Facts } from "@/ui/facts";
import { Card, LoadError, Notice, SkeletonRows } from "@/ui/page";
import { Time } from "@/ui/time";

const STATUSES: Record<string, readonly [word: string, tone: Tone, text: string]> = {
  complete: ["Complete", "green", "DNS has all records that mail needs."],
  incomplete: ["Incomplete", "amber", "Some records are missing or differ, and were never found."],
  broken: ["Broken", "red", "Records that were there before are gone."],
  unknown: ["Not known", "gray", "DNS was not asked yet or did not answer, or no account names its records."],
};

const keyOf = (domain: string) => ["sender-domains", domain];

export function DnsCard({ domain }: { domain: string }) {
  const may = useMay();
  const found = useQuery({ queryKey: keyOf(domain), queryFn: ({ signal }) => waypost.senderDomains.get(domain, { signal }) });
  const check = useMutation({
    mutationFn: () => waypost.senderDomains.check(domain),
    onSuccess: async (checked) => {
      queries.setQueryData(keyOf(domain), checked);
      await queries.invalidateQueries({ queryKey: ["provider-domains"] });
    },
    onError: (error) => toast.error(errorText(error)),
  });
  const data = found.data;
  const [word, tone, text] = STATUSES[data?.status ?? ""] ?? ["", "gray", ""];
  return (
    <Card
      title={
        <span className="flex items-center gap-2.5">
          DNS
          {data && (
            <Badge dot tone={tone}>
              {word}
            </Badge>
          )}
        </span>
      }
      description="Waypost's own look-ups, for all accounts of the domain. The provider decides whether it sends; the mailboxes look at these."
      actions={
        may("PROVIDERS_WRITE") && (
          <Button small onClick={() => check.mutate()} busy={check.isPending}>
            <RefreshCw aria-hidden />
            Look up now
          </Button>
        )
      }
    >
      {found.error ? (
        <LoadError error={found.error} retry={() => void found.refetch()} />
      ) : !data ? (
        <SkeletonRows rows={3} />
      ) : (
        <div className="space-y-4">
          <p className="text-text-2">
            {text}
            {data.brokenSince && (
              <>
                {" "}
                They are gone since <Time at={data.brokenSince} />.
              </>
            )}
          </p>
          {data.conflicts.map((conflict) => (
            <Notice key={conflict.code + conflict.names.join()} kind="warning">
              {conflict.message}
            </Notice>
          ))}
          <Facts
            facts={[
              ["SPF", data.spf.record ? <code key="spf" className="font-mono text-[13px] wrap-anywhere">{data.spf.record}</code> : "No record"],
              ["SPF look-ups", `${data.spf.lookups} of ${data.spf.lookupsMax}`],
              data.spf.recommended !== null && ["SPF for all accounts", <Copyable key="wanted" text={data.spf.recommended} label="Copy the record" />],
              ["DMARC", data.dmarc.record ? <code key="dmarc" className="font-mono text-[13px] wrap-anywhere">{data.dmarc.record}</code> : "No record"],
              ["Looked up", data.checkedAt ? <Time key="at" at={data.checkedAt} /> : "Not yet"],
            ]}
          />
        </div>
      )}
    </Card>
  );
}
