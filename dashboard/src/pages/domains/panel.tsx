import { useMutation, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { RefreshCw, Trash2 } from "lucide-react";
import type { ReactNode } from "react";
import { toast } from "sonner";
import type { DomainVerification, ProviderAccount } from "waypost";
import { errorText, queries, waypost } from "@/api";
import { plural, providerName } from "@/format";
import { DOMAIN_WAY } from "@/pages/providers/guides";
import { isType } from "@/pages/providers/types";
import { ProviderMark } from "@/pages/providers/parts";
import { accountChanged, domainsQuery } from "@/pages/providers/queries";
import { useMay } from "@/session";
import { Button, IconButton } from "@/ui/button";
import { Confirm } from "@/ui/dialog";
import { Card, Notice } from "@/ui/page";
import { Time } from "@/ui/time";
import { Records } from "./records";
import { DomainBadge, stateOf } from "./state";

/** How often an unverified domain is checked while a person looks at it. */
const CHECK_MS = 10_000;

/** Asks the provider to check the domain, and keeps what it says. */
async function check(domain: DomainVerification): Promise<DomainVerification> {
  const checked = await waypost.providers.domains.verify(domain.providerAccountId, domain.id);
  queries.setQueryData(domainsQuery(domain.providerAccountId).queryKey, (list) =>
    list?.map((one) => (one.id === checked.id ? checked : one)),
  );
  if (checked.isVerified && !domain.isVerified) toast.success(`${domain.domain} is verified`);
  return checked;
}

/** Checks an unverified domain again every 10 seconds while it is shown, and the window too. */
function useChecks(domain: DomainVerification, watch: boolean) {
  const may = useMay();
  const list = domainsQuery(domain.providerAccountId);
  return useQuery({
    queryKey: ["provider-domains", domain.providerAccountId, "check", domain.id],
    queryFn: async () => {
      // Without the permission to check, what the scheduler has found meanwhile is shown.
      if (may("PROVIDERS_WRITE")) return check(domain);
      await queries.refetchQueries({ queryKey: list.queryKey, exact: true });
      return domain;
    },
    enabled: watch && domain.state === "unverified",
    refetchInterval: CHECK_MS,
    staleTime: CHECK_MS,
  });
}

interface Props {
  domain: DomainVerification;
  account: ProviderAccount;
  /** What the card is named: the account on a domain's page, the domain on an account's. */
  title: "account" | "domain";
  /** Whether an unverified domain is checked again while it is shown. */
  watch?: boolean;
}

/** One domain of one account: its state, its records, and what can be done. */
export function DomainPanel({ domain, account, title, watch = true }: Props) {
  const may = useMay();
  const checks = useChecks(domain, watch);
  const verify = useMutation({
    mutationFn: () => check(domain),
    onSuccess: (checked) => {
      if (!checked.isVerified) toast.info(`${providerName(account.providerType)} does not report ${domain.domain} as verified yet`);
    },
    onError: (error) => toast.error(errorText(error)),
  });
  return (
    <Card
      flush
      title={
        <span className="flex min-w-0 flex-wrap items-center gap-x-2.5 gap-y-1">
          {title === "account" && <ProviderMark small type={account.providerType} />}
          {title === "account" ? (
            <Link to="/providers/$accountId" params={{ accountId: account.id }} search={{ tab: "domains" }} className="truncate hover:underline">
              {account.displayName}
            </Link>
          ) : (
            <Link to="/domains/$domain" params={{ domain: domain.domain }} className="min-w-0 break-all hover:underline">
              {domain.domain}
            </Link>
          )}
          <DomainBadge state={stateOf(domain)} />
        </span>
      }
      actions={
        may("PROVIDERS_WRITE") && (
          <>
            <Button small onClick={() => verify.mutate()} busy={verify.isPending} aria-label={`Check now: ${domain.domain}`}>
              <RefreshCw aria-hidden />
              Check now
            </Button>
            <Remove domain={domain} account={account} />
          </>
        )
      }
    >
      <div className="space-y-3 p-4 sm:px-5">
        <Explain domain={domain} account={account} />
        {watch && domain.state === "unverified" && (
          <p className="text-[13px] text-text-3" aria-live="polite">
            {checks.isFetching ? (
              "Checking now …"
            ) : checks.error ? (
              <span className="text-red">The last check failed: {errorText(checks.error)}</span>
            ) : (
              <>
                Checked <Time at={checks.dataUpdatedAt ? new Date(checks.dataUpdatedAt) : null} />; again every 10 seconds while this page is open.
              </>
            )}
          </p>
        )}
      </div>
      {domain.dnsRecords.length > 0 &&
        (title === "domain" && domain.isVerified ? (
          <details className="border-t border-line">
            <summary className="px-4 py-2.5 text-[13px] text-text-2 sm:px-5">{plural(domain.dnsRecords.length, "DNS record")}</summary>
            <div className="border-t border-line">
              <Records records={domain.dnsRecords} domain={domain.domain} />
            </div>
          </details>
        ) : (
          <div className="border-t border-line">
            <Records records={domain.dnsRecords} domain={domain.domain} />
          </div>
        ))}
    </Card>
  );
}

function Explain({ domain, account }: { domain: DomainVerification; account: ProviderAccount }): ReactNode {
  const provider = providerName(account.providerType);
  switch (stateOf(domain)) {
    case "verified":
      return (
        <p className="text-text-2">
          {provider} sends mail from addresses at {domain.domain}. Keep the records: without them mail is refused or lands in spam.
        </p>
      );
    case "unverified":
      return domain.dnsRecords.length > 0 ? (
        <p className="text-text-2">
          Create these records where the DNS of the domain is managed. Many DNS hosts add the grey part of a name by themselves: then enter only
          the part before it. DNS takes minutes, at times hours.
        </p>
      ) : (
        <p className="text-text-2">{provider} does not report the domain as verified, and names no records.</p>
      );
    case "unknown":
      return account.providerType === "SMTP" ? (
        <p className="text-text-2">A mail server does not tell which domains it sends for. Waypost sends from this domain, and the server decides.</p>
      ) : (
        <Notice kind="info">
          The credentials of {account.displayName} give no access to its domains, so Waypost cannot tell whether this one is verified, and sends.
          Add and verify it in {provider}
          {isType(account.providerType) && <> under {DOMAIN_WAY[account.providerType]}</>}.
        </Notice>
      );
  }
}

function Remove({ domain, account }: { domain: DomainVerification; account: ProviderAccount }) {
  const provider = providerName(account.providerType);
  return (
    <Confirm
      trigger={(open) => <IconButton label={`Remove ${domain.domain} from ${account.displayName}`} icon={<Trash2 />} onClick={open} />}
      title={`Remove ${domain.domain} from ${account.displayName}?`}
      action="Remove the domain"
      run={async () => {
        await waypost.providers.domains.delete(account.id, domain.id);
        await accountChanged();
        toast.success(`${domain.domain} was removed from ${account.displayName}`);
      }}
    >
      It is removed at {provider} too, unless the credentials give no access to domains. This account then takes no mail from addresses at{" "}
      {domain.domain}. Remove its records from DNS afterwards.
    </Confirm>
  );
}
