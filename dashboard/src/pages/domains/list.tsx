import { Link } from "@tanstack/react-router";
import { Globe, Plus } from "lucide-react";
import { useState } from "react";
import type { DomainVerification, ProviderAccount } from "waypost";
import { plural } from "@/format";
import { useMay } from "@/session";
import { Button, buttonClass } from "@/ui/button";
import { Input, Select } from "@/ui/form";
import { Card, Empty, LoadError, Page, SkeletonRows } from "@/ui/page";
import { type Column, DataTable } from "@/ui/table";
import { AddDomainDialog } from "./add";
import { DomainBadge, type DomainGroup, groupByDomain, STATE_WORDS, STATES, type State, stateOf } from "./state";
import { useAllDomains } from "./use-domains";

export interface DomainsSearch {
  search?: string;
  state?: State;
}

interface Props {
  filter: DomainsSearch;
  onFilter(filter: DomainsSearch): void;
  onOpen(domain: string): void;
}

export function DomainsPage({ filter, onFilter, onOpen }: Props) {
  const may = useMay();
  const [adding, setAdding] = useState(false);
  const domains = useAllDomains();
  const groups = groupByDomain(domains.entries).filter((group) => matches(group, filter));
  const isFiltered = Boolean(filter.search || filter.state);
  const canAdd = may("PROVIDERS_WRITE") && domains.accounts.length > 0;
  const add = canAdd && (
    <Button kind="primary" onClick={() => setAdding(true)}>
      <Plus aria-hidden />
      Add a domain
    </Button>
  );
  return (
    <Page
      title="Domains"
      description="The domains that your mail comes from, as the providers see them. An account sends from a domain once it is verified there."
      actions={domains.entries.length > 0 && add}
    >
      <Card flush>
        {(domains.entries.length > 0 || isFiltered) && <Filters filter={filter} onFilter={onFilter} />}
        {domains.error !== undefined && <LoadError error={domains.error} retry={domains.retry} />}
        {domains.isPending ? (
          <SkeletonRows />
        ) : (
          <DataTable
            label="Domains"
            rows={groups}
            columns={columns(domains.accounts)}
            rowKey={(group) => group.domain}
            empty={
              domains.error === undefined &&
              (isFiltered ? (
                <Empty title="No domain matches" action={<Button onClick={() => onFilter({})}>Clear the filters</Button>} />
              ) : domains.accounts.length === 0 ? (
                <Empty
                  icon={<Globe />}
                  title="No domain yet"
                  action={
                    may("PROVIDERS_WRITE") && (
                      <Link to="/providers/connect" className={buttonClass("primary")}>
                        Connect an account
                      </Link>
                    )
                  }
                >
                  Domains belong to provider accounts. Connect an account first; Waypost imports the domains that it has.
                </Empty>
              ) : (
                <Empty icon={<Globe />} title="No domain yet" action={add}>
                  Add the domain that you send from. The provider names DNS records that prove it is yours.
                </Empty>
              ))
            }
          />
        )}
      </Card>
      {canAdd && (
        <AddDomainDialog
          open={adding}
          onClose={() => setAdding(false)}
          accounts={domains.accounts}
          onAdded={(added) => onOpen(added.domain)}
        />
      )}
    </Page>
  );
}

function matches(group: DomainGroup, { search, state }: DomainsSearch): boolean {
  if (search && !group.domain.includes(search.trim().toLowerCase())) return false;
  return !state || group.entries.some((entry) => stateOf(entry) === state);
}

function Filters({ filter, onFilter }: Pick<Props, "filter" | "onFilter">) {
  return (
    <div className="flex flex-wrap gap-2 border-b border-line p-3 sm:px-5" role="search">
      <Input
        type="search"
        aria-label="Search domains"
        placeholder="Search domains"
        className="max-w-64 flex-1"
        value={filter.search ?? ""}
        onChange={(event) => onFilter({ ...filter, search: event.target.value || undefined })}
      />
      <Select
        aria-label="State"
        className="w-44"
        value={filter.state ?? ""}
        options={[["", "Any state"], ...STATES.map((state): [string, string] => [state, STATE_WORDS[state]])]}
        onChange={(event) => onFilter({ ...filter, state: STATES.find((state) => state === event.target.value) })}
      />
    </div>
  );
}

function columns(accounts: readonly ProviderAccount[]): Column<DomainGroup>[] {
  return [
    {
      head: "Domain",
      width: "minmax(0, 1.2fr)",
      cell: ({ domain, entries }) => (
        <>
          <Link to="/domains/$domain" params={{ domain }} title={domain} className="block truncate font-medium hover:underline">
            {domain}
          </Link>
          <div className="mt-1 md:hidden">
            <Accounts entries={entries} accounts={accounts} />
          </div>
        </>
      ),
    },
    {
      head: "Accounts",
      width: "minmax(0, 2fr)",
      wide: true,
      cell: ({ entries }) => <Accounts entries={entries} accounts={accounts} />,
    },
    {
      head: "Records to publish",
      width: "9rem",
      wide: true,
      align: "right",
      cell: ({ entries }) => <Missing entries={entries} />,
    },
  ];
}

function Accounts({ entries, accounts }: { entries: readonly DomainVerification[]; accounts: readonly ProviderAccount[] }) {
  return (
    <span className="flex flex-wrap gap-1.5">
      {entries.map((entry) => (
        <DomainBadge key={entry.id} state={stateOf(entry)}>
          <span className="max-w-40 truncate">{accounts.find((account) => account.id === entry.providerAccountId)?.displayName ?? "…"}</span>
          <span className="sr-only">: {STATE_WORDS[stateOf(entry)]}</span>
        </DomainBadge>
      ))}
    </span>
  );
}

/** How many records the providers have not found. */
function Missing({ entries }: { entries: readonly DomainVerification[] }) {
  const missing = entries
    .filter((entry) => stateOf(entry) === "unverified")
    .flatMap((entry) => entry.dnsRecords)
    .filter((record) => record.status !== "verified").length;
  return missing > 0 ? <span className="text-amber">{plural(missing, "record")}</span> : <span className="text-text-3">none</span>;
}
