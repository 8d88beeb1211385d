import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Plus, Server } from "lucide-react";
import type { MetricsGroup, ProviderAccount } from "waypost";
import { duration, providerName, shortCount } from "@/format";
import { useMay } from "@/session";
import { buttonClass } from "@/ui/button";
import { Card, Empty, LoadError, Page, SkeletonRows } from "@/ui/page";
import { type Column, DataTable } from "@/ui/table";
import { type Health, useHealths } from "./health";
import { AccountBadge, EventsBadge, limitsText, ProviderMark } from "./parts";
import { accountsQuery, trafficQuery } from "./queries";

interface Row {
  account: ProviderAccount;
  health: Health | undefined;
  traffic: MetricsGroup | undefined;
}

export function ProvidersPage() {
  const may = useMay();
  const accounts = useQuery(accountsQuery);
  const traffic = useQuery({ ...trafficQuery, enabled: may("METRICS_READ") });
  const healths = useHealths();
  const connect = may("PROVIDERS_WRITE") && (
    <Link to="/providers/connect" className={buttonClass("primary")}>
      <Plus aria-hidden />
      Connect an account
    </Link>
  );
  const rows = accounts.data?.map((account): Row => ({
    account,
    health: healths.get(account.id),
    traffic: traffic.data?.data.find((group) => group.id === account.id),
  }));
  return (
    <Page
      title="Providers"
      description="The accounts at email providers that deliver your mail. Routing rules choose between them; without a matching rule the first active one sends."
      actions={rows && rows.length > 0 && connect}
    >
      <Card flush>
        {accounts.isPending && <SkeletonRows />}
        {accounts.error && <LoadError error={accounts.error} retry={() => void accounts.refetch()} />}
        {rows && (
          <DataTable
            label="Provider accounts"
            rows={rows}
            columns={columns(may("METRICS_READ"))}
            rowKey={(row) => row.account.id}
            empty={
              <Empty icon={<Server />} title="No provider account yet" action={connect}>
                Waypost sends through accounts that you have at SendGrid, Postmark, Mailgun or Amazon SES, or through a mail server. Connect one
                to send your first mail.
              </Empty>
            }
          />
        )}
      </Card>
    </Page>
  );
}

function columns(metrics: boolean): Column<Row>[] {
  return [
    { head: "Account", width: "minmax(0, 2.2fr)", cell: ({ account }) => <Name account={account} /> },
    { head: "State", width: "minmax(6.5rem, 1fr)", cell: ({ account, health }) => <AccountBadge account={account} health={health} /> },
    { head: "Events", width: "5.5rem", wide: true, cell: ({ account }) => <EventsBadge account={account} /> },
    { head: "Limits", width: "minmax(0, 1fr)", wide: true, cell: ({ account }) => <Muted text={limitsText(account)} /> },
    ...(metrics ? TRAFFIC : []),
    { head: "Median time", width: "6rem", align: "right", wide: true, cell: (row) => <Latency {...row} /> },
  ];
}

const TRAFFIC: readonly Column<Row>[] = [
  { head: "Sent, 24 h", width: "5rem", align: "right", wide: true, cell: ({ traffic }) => shortCount(traffic?.sent ?? 0) },
  {
    head: "Bounced",
    width: "4.5rem",
    align: "right",
    wide: true,
    cell: ({ traffic }) => (traffic?.bounced ? <span className="text-red">{shortCount(traffic.bounced)}</span> : <Muted text="0" />),
  },
];

function Name({ account }: { account: ProviderAccount }) {
  return (
    <Link to="/providers/$accountId" params={{ accountId: account.id }} className="group flex items-center gap-3">
      <ProviderMark type={account.providerType} />
      <span className="min-w-0 leading-tight">
        <span className="block truncate font-medium group-hover:underline">{account.displayName}</span>
        <span className="block truncate text-xs text-text-3">{providerName(account.providerType)}</span>
      </span>
    </Link>
  );
}

const Muted = ({ text }: { text: string }) => <span className="text-text-3">{text}</span>;

/** How long the provider takes: of its latest calls if they are known, else from acceptance to the provider's answer. */
function Latency({ health, traffic }: Row) {
  const time = health?.calls.medianDurationMs ?? traffic?.acceptToSent?.p50;
  return time === undefined || time === null ? <Muted text="–" /> : <span>{duration(time)}</span>;
}
