import { useQuery } from "@tanstack/react-query";
import { clsx } from "clsx";
import { ChartColumn } from "lucide-react";
import type { MetricsGroup } from "waypost";
import { count, percent, providerName } from "@/format";
import { Button } from "@/ui/button";
import { Card, Empty, LoadError, Notice, SkeletonRows } from "@/ui/page";
import { SimpleTable } from "@/ui/table";
import { Tabs } from "@/ui/tabs";
import { AccountsCompared } from "./accounts-compared";
import { hasTooManyFilters } from "./controls";
import { breakdownQuery } from "./data";
import type { MetricsProps } from "./metrics";
import { breakdownLacks, type Group, GROUPS } from "./search";

const NAMES: Record<Group, string> = {
  account: "Accounts",
  provider: "Providers",
  domain: "Sender domains",
  template: "Templates",
  tag: "Tags",
  recipientDomain: "Recipients' domains",
};

const COLUMNS: Record<Group, string> = {
  account: "Account",
  provider: "Provider",
  domain: "Sender domain",
  template: "Template",
  tag: "Tag",
  recipientDomain: "Recipient's domain",
};

/** The same counts by group, one beside the other. */
export function Breakdown({ search, onSearch }: MetricsProps) {
  const by = search.by ?? "account";
  return (
    <Card title="Compared">
      <Tabs
        value={by}
        onChange={(value) => onSearch({ by: GROUPS.find((group) => group === value) })}
        tabs={GROUPS.map((group) => ({
          value: group,
          label: NAMES[group],
          content: group === by ? <Groups search={search} by={by} onSearch={onSearch} /> : null,
        }))}
      />
    </Card>
  );
}

function Groups({ search, by, onSearch }: MetricsProps & { by: Group }) {
  const lacks = breakdownLacks(search);
  const query = useQuery({ ...breakdownQuery(search, by), enabled: lacks === undefined && !hasTooManyFilters(search), placeholderData: undefined });
  if (lacks !== undefined) {
    return (
      <Notice
        action={
          <Button small onClick={() => onSearch({ tag: undefined, template: undefined })}>
            Leave out tag and template
          </Button>
        }
      >
        {lacks}
      </Notice>
    );
  }
  if (query.error && !query.data) return <LoadError error={query.error} retry={() => void query.refetch()} />;
  if (!query.data) return <SkeletonRows rows={4} />;
  if (query.data.length === 0) {
    return (
      <Empty icon={<ChartColumn />} title="Nothing was sent">
        No mail of this period matches. Choose a longer period, or fewer filters.
      </Empty>
    );
  }
  return (
    <div className="space-y-6 [&_td:first-child]:pl-0! [&_th:first-child]:pl-0!">
      {by === "account" && <AccountsCompared groups={query.data} />}
      <GroupTable groups={query.data} by={by} search={search} onSearch={onSearch} />
      {query.data.some((group) => group.name === "(other)") && (
        <p className="text-[13px] text-text-3">“(other)”: the first 500 of a month are counted one by one, all further ones together.</p>
      )}
    </div>
  );
}

/** So many rows are drawn; the groups with the most mail come first. */
const SHOWN = 200;

function GroupTable({ groups, by, search, onSearch }: MetricsProps & { groups: readonly MetricsGroup[]; by: Group }) {
  const most = Math.max(1, ...groups.map((group) => group.sent));
  return (
    <SimpleTable label={`By ${COLUMNS[by].toLowerCase()}`} head={[COLUMNS[by], "Sent", "Delivered", "Opened", "Clicked", "Bounced", "Complained"]}>
      {groups.slice(0, SHOWN).map((group) => (
        <tr key={group.id ?? group.name}>
          <td className="min-w-44">
            <GroupName group={group} by={by} search={search} onSearch={onSearch} />
          </td>
          <td>
            <span className="tabular">{count(group.sent)}</span>
            <svg viewBox="0 0 100 4" preserveAspectRatio="none" className="mt-1 block h-1 w-16 sm:w-24" aria-hidden>
              <rect width={(group.sent / most) * 100} height="4" fill="var(--chart-1)" />
            </svg>
          </td>
          <Share part={group.delivered} whole={group.sent} />
          <Share part={group.opened} whole={group.delivered} />
          <Share part={group.clicked} whole={group.opened} />
          <Share part={group.bounced} whole={group.sent} bound={0.05} />
          <Share part={group.complained} whole={group.delivered} bound={0.001} />
        </tr>
      ))}
    </SimpleTable>
  );
}

function GroupName({ group, by, search, onSearch }: MetricsProps & { group: MetricsGroup; by: Group }) {
  const isListed = !group.name.startsWith("(");
  if (by === "tag" && isListed && search.tag === undefined) return <Narrow name={group.name} onClick={() => onSearch({ tag: group.name })} />;
  if (by === "account" && group.id && search.account === undefined) return <Narrow name={group.name} onClick={() => onSearch({ account: group.id })} />;
  return <span className="break-words">{by === "provider" ? providerName(group.name) : group.name}</span>;
}

const Narrow = ({ name, onClick }: { name: string; onClick(): void }) => (
  <button type="button" onClick={onClick} title={`Show only ${name}`} className="text-left font-medium break-words hover:underline">
    {name}
  </button>
);

/** A count, and its share; red from the bound on that Amazon SES sets. */
function Share({ part, whole, bound }: { part: number; whole: number; bound?: number }) {
  const share = whole === 0 ? undefined : Math.min(1, part / whole);
  return (
    <td className="whitespace-nowrap">
      <span className={clsx("tabular", bound !== undefined && share !== undefined && share >= bound && "font-medium text-red")}>{percent(share)}</span>
      <span className="tabular block text-xs text-text-3">{count(part)}</span>
    </td>
  );
}
