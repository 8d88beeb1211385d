/** What became of an account's mail to each recipient domain. */

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { ProviderHealthPeriod, ProviderDomainHealth } from "waypost";
import { waypost } from "@/api";
import { count, duration, percent } from "@/format";
import { Card, LoadError, SkeletonRows } from "@/ui/page";
import { Segmented } from "@/ui/segmented";
import { type Column, DataTable } from "@/ui/table";

const WINDOWS = [
  ["15m", "15 minutes"],
  ["day", "Day"],
  ["week", "Week"],
] as const;

const NAMES: Record<string, string> = { "(other)": "All others", "(none)": "Not known any more" };

const rate = (value: number | null): string => (value === null ? "–" : percent(value, 1));

const COLUMNS: Column<ProviderDomainHealth>[] = [
  { head: "To", width: "minmax(0, 2fr)", cell: (row) => NAMES[row.recipientDomain] ?? row.recipientDomain },
  { head: "Sent", align: "right", cell: (row) => count(row.sent) },
  { head: "Delivered", align: "right", cell: (row) => rate(row.deliveryRate) },
  { head: "Bounced", align: "right", cell: (row) => rate(row.bounceRate) },
  { head: "Complaints", align: "right", wide: true, cell: (row) => rate(row.complaintRate) },
  { head: "Put off", align: "right", wide: true, cell: (row) => rate(row.deferralRate) },
  { head: "Half took", align: "right", wide: true, cell: (row) => duration(row.acceptLatencyMs?.p50) },
];

export function AccountMail({ accountId }: { accountId: string }) {
  const [window, setWindow] = useState<ProviderHealthPeriod>("day");
  const found = useQuery({
    queryKey: ["providers", "health", accountId, "domains", window],
    queryFn: ({ signal }) => waypost.providers.getHealthByDomain(accountId, { window }, { signal }),
    placeholderData: keepPreviousData,
    refetchInterval: 60_000,
  });
  return (
    <Card
      flush
      title="By recipient domain"
      description="Shares are shown from 20 mails on."
      actions={<Segmented<ProviderHealthPeriod> label="How far back" value={window} onChange={setWindow} options={WINDOWS} />}
    >
      {found.error ? (
        <LoadError error={found.error} retry={() => void found.refetch()} />
      ) : found.isPending ? (
        <SkeletonRows rows={3} />
      ) : (
        <DataTable
          label="Mail by recipient domain"
          rows={found.data.data}
          columns={COLUMNS}
          rowKey={(row) => row.recipientDomain}
          empty={<p className="p-4 text-text-2 sm:p-5">The account sent no mail in this time.</p>}
        />
      )}
    </Card>
  );
}
