import { useQuery } from "@tanstack/react-query";
import type { ProviderAccount } from "waypost";
import { providerName } from "@/format";
import { AddDomainForm } from "@/pages/domains/add";
import { DomainPanel } from "@/pages/domains/panel";
import { DomainBadge, stateOf } from "@/pages/domains/state";
import { Button } from "@/ui/button";
import { Card, LoadError, Notice, SkeletonRows } from "@/ui/page";
import { domainsQuery } from "../queries";

interface Props {
  account: ProviderAccount;
  onNext(): void;
}

/** The domains to send from: those that the account has, and a form for another one. */
export function DomainsStep({ account, onNext }: Props) {
  const domains = useQuery(domainsQuery(account.id));
  const provider = providerName(account.providerType);
  const ready = domains.data?.filter((domain) => stateOf(domain) === "verified") ?? [];
  const others = domains.data?.filter((domain) => stateOf(domain) !== "verified") ?? [];
  const canSend = ready.length > 0 || others.some((domain) => stateOf(domain) === "unknown");
  return (
    <div className="space-y-5">
      <Card title="Domains" description={`${provider} sends only from domains that are proved to be yours.`}>
        {domains.error && <LoadError error={domains.error} retry={() => void domains.refetch()} />}
        {domains.isPending && <SkeletonRows rows={3} />}
        {domains.data && (
          <div className="space-y-5">
            {ready.length > 0 ? (
              <div className="space-y-3">
                <Notice kind="success">You can send from {ready.length === 1 ? "this domain" : "these domains"} now.</Notice>
                <ul className="divide-y divide-line rounded-md border border-line">
                  {ready.map((domain) => (
                    <li key={domain.id} className="flex items-center justify-between gap-3 px-3 py-2">
                      <span className="min-w-0 font-medium break-all">{domain.domain}</span>
                      <DomainBadge state="verified" />
                    </li>
                  ))}
                </ul>
              </div>
            ) : (
              <p className="text-text-2">
                {others.length > 0
                  ? "No domain is verified yet. Publish the records below; this page sees by itself when they are found."
                  : "The account has no domain yet. Add the one that your mail comes from."}
              </p>
            )}
            <details open={domains.data.length === 0} className="rounded-md border border-line px-4 py-3">
              <summary className="font-medium">Add a domain</summary>
              <div className="pt-4">
                <AddDomainForm accounts={[account]} />
              </div>
            </details>
          </div>
        )}
      </Card>
      {others.map((domain) => (
        <DomainPanel key={domain.id} domain={domain} account={account} title="domain" />
      ))}
      <div className="flex flex-wrap items-center gap-3">
        <Button kind={canSend ? "primary" : "secondary"} onClick={onNext}>
          Continue with a first mail
        </Button>
        {!canSend && domains.data && <p className="text-[13px] text-text-3">Without a verified domain the mail is refused.</p>}
      </div>
    </div>
  );
}
