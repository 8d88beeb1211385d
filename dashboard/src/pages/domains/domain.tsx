import { Plus } from "lucide-react";
import { useState } from "react";
import { useMay } from "@/session";
import { Button } from "@/ui/button";
import { Card, Empty, LoadError, Page, SkeletonRows } from "@/ui/page";
import { AddDomainDialog } from "./add";
import { DnsCard } from "./dns";
import { DomainPanel } from "./panel";
import { useAllDomains } from "./use-domains";

/** One domain at all accounts that have it. */
export function DomainPage({ domain }: { domain: string }) {
  const may = useMay();
  const [adding, setAdding] = useState(false);
  const domains = useAllDomains();
  const entries = domains.entries.filter((entry) => entry.domain === domain);
  const others = domains.accounts.filter((account) => !entries.some((entry) => entry.providerAccountId === account.id));
  const add = may("PROVIDERS_WRITE") && others.length > 0 && (
    <Button onClick={() => setAdding(true)}>
      <Plus aria-hidden />
      {entries.length > 0 ? "Add to another account" : "Add it to an account"}
    </Button>
  );
  return (
    <Page
      title={domain}
      back={{ to: "/domains", label: "Domains" }}
      heading={<span className="break-all">{domain}</span>}
      actions={entries.length > 0 && add}
    >
      <div className="space-y-5">
        {domains.error !== undefined && <LoadError error={domains.error} retry={domains.retry} />}
        {domains.isPending && (
          <Card flush>
            <SkeletonRows />
          </Card>
        )}
        {!domains.isPending && entries.length === 0 && domains.error === undefined && (
          <Card flush>
            <Empty title="No account has this domain" action={add}>
              It was removed, or its name is misspelt. Mail from it is refused unless the settings accept unverified domains.
            </Empty>
          </Card>
        )}
        {entries.map((entry) => {
          const account = domains.accounts.find((one) => one.id === entry.providerAccountId);
          return account && <DomainPanel key={entry.id} domain={entry} account={account} title="account" />;
        })}
        {entries.length > 0 && <DnsCard domain={domain} />}
      </div>
      {add && <AddDomainDialog open={adding} onClose={() => setAdding(false)} accounts={others} domain={domain} />}
    </Page>
  );
}
