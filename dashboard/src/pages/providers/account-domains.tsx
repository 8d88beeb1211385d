import { useQuery } from "@tanstack/react-query";
import { Globe, Plus } from "lucide-react";
import { useState } from "react";
import type { ProviderAccount } from "waypost";
import { providerName } from "@/format";
import { AddDomainDialog } from "@/pages/domains/add";
import { DomainPanel } from "@/pages/domains/panel";
import { stateOf } from "@/pages/domains/state";
import { useMay } from "@/session";
import { Button } from "@/ui/button";
import { Card, Empty, LoadError, SkeletonRows } from "@/ui/page";
import { domainsQuery } from "./queries";

/** With more unverified domains than this, each is checked on its own page only: every check is a call to the provider. */
const WATCHED_MAX = 5;

const ORDER = { unverified: 0, unknown: 1, verified: 2 } as const;

/** The domains of one account, those that need something first. */
export function AccountDomains({ account }: { account: ProviderAccount }) {
  const may = useMay();
  const [adding, setAdding] = useState(false);
  const domains = useQuery(domainsQuery(account.id));
  const sorted = domains.data?.toSorted((one, other) => ORDER[stateOf(one)] - ORDER[stateOf(other)] || one.domain.localeCompare(other.domain));
  const watch = (sorted?.filter((domain) => stateOf(domain) === "unverified").length ?? 0) <= WATCHED_MAX;
  const add = may("PROVIDERS_WRITE") && (
    <Button onClick={() => setAdding(true)}>
      <Plus aria-hidden />
      Add a domain
    </Button>
  );
  return (
    <div className="space-y-5">
      <div className="flex flex-wrap items-center justify-between gap-3">
        <p className="max-w-2xl text-text-2">The domains that {providerName(account.providerType)} sends from for this account.</p>
        {sorted && sorted.length > 0 && add}
      </div>
      {domains.error && <LoadError error={domains.error} retry={() => void domains.refetch()} />}
      {domains.isPending && (
        <Card flush>
          <SkeletonRows />
        </Card>
      )}
      {sorted?.length === 0 && (
        <Card flush>
          <Empty icon={<Globe />} title="No domain yet" action={add}>
            Add the domain that you send from. The provider names DNS records that prove it is yours.
          </Empty>
        </Card>
      )}
      {sorted?.map((domain) => (
        <DomainPanel key={domain.id} domain={domain} account={account} title="domain" watch={watch} />
      ))}
      <AddDomainDialog open={adding} onClose={() => setAdding(false)} accounts={[account]} />
    </div>
  );
}
