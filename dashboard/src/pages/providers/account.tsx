import { useMutation, useQuery } from "@tanstack/react-query";
import { Pause, Play, ShieldCheck } from "lucide-react";
import { toast } from "sonner";
import { NotFoundError, type ProviderAccount } from "waypost";
import { errorText, waypost } from "@/api";
import { providerName } from "@/format";
import { useMay } from "@/session";
import { Button } from "@/ui/button";
import { Confirm } from "@/ui/dialog";
import { Card, LoadError, NotFound, Page, SkeletonRows } from "@/ui/page";
import { Tabs } from "@/ui/tabs";
import { AccountDomains } from "./account-domains";
import { AccountEvents } from "./account-events";
import { AccountOverview } from "./account-overview";
import { AccountSettings } from "./account-settings";
import { AccountSuppressions } from "./account-suppressions";
import { healthQuery } from "./health";
import { AccountBadge, ProviderMark } from "./parts";
import { accountChanged, accountQuery } from "./queries";
import type { AccountTab } from "./tabs";


interface Props {
  id: string;
  tab: AccountTab;
  onTab(tab: AccountTab): void;
}

const BACK = { to: "/providers", label: "Providers" };

export function AccountPage({ id, tab, onTab }: Props) {
  const account = useQuery(accountQuery(id));
  if (account.error instanceof NotFoundError) return <NotFound />;
  if (account.data) return <Loaded account={account.data} tab={tab} onTab={onTab} />;
  return (
    <Page title="Provider account" back={BACK}>
      <Card flush>
        {account.error ? <LoadError error={account.error} retry={() => void account.refetch()} /> : <SkeletonRows />}
      </Card>
    </Page>
  );
}

function Loaded({ account, tab, onTab }: { account: ProviderAccount } & Omit<Props, "id">) {
  const may = useMay();
  const health = useQuery(healthQuery(account.id)).data;
  const tabs: { value: AccountTab; label: string; content: React.ReactNode; hidden?: boolean }[] = [
    { value: "overview", label: "Overview", content: <AccountOverview account={account} health={health} onTab={onTab} /> },
    { value: "domains", label: "Domains", content: <AccountDomains account={account} /> },
    { value: "events", label: "Events", content: <AccountEvents account={account} /> },
    {
      value: "suppressions",
      label: "Suppressions",
      content: <AccountSuppressions account={account} />,
      hidden: !may("PROVIDERS_WRITE") || !may("SETTINGS_WRITE"),
    },
    { value: "settings", label: "Settings", content: <AccountSettings account={account} />, hidden: !may("PROVIDERS_WRITE") },
  ];
  const shown = tabs.filter((one) => !one.hidden);
  return (
    <Page
      title={account.displayName}
      back={BACK}
      heading={
        <span className="flex flex-wrap items-center gap-x-3 gap-y-1">
          <ProviderMark type={account.providerType} />
          <span className="min-w-0 break-words">{account.displayName}</span>
          <AccountBadge account={account} health={health} />
        </span>
      }
      actions={may("PROVIDERS_WRITE") && <Actions account={account} />}
    >
      <Tabs
        value={shown.some((one) => one.value === tab) ? tab : "overview"}
        onChange={(value) => onTab(value as AccountTab)}
        tabs={shown}
      />
    </Page>
  );
}

function Actions({ account }: { account: ProviderAccount }) {
  const provider = providerName(account.providerType);
  const setActive = async (isActive: boolean) => {
    await waypost.providers.update(account.id, { isActive });
    await accountChanged();
    toast.success(isActive ? `${account.displayName} sends again` : `${account.displayName} is paused`);
  };
  const activate = useMutation({ mutationFn: () => setActive(true), onError: (error) => toast.error(errorText(error)) });
  const check = useMutation({
    mutationFn: () => waypost.providers.validate(account.id),
    onSuccess: async ({ valid }) => {
      await accountChanged();
      if (valid) toast.success(`${provider} accepts the credentials`);
      else toast.error(`${provider} refuses the credentials. The account is paused; replace its credentials.`);
    },
    onError: (error) => toast.error(errorText(error)),
  });
  return (
    <>
      <Button onClick={() => check.mutate()} busy={check.isPending}>
        <ShieldCheck aria-hidden />
        Check credentials
      </Button>
      {account.isActive ? (
        <Confirm
          trigger={(open) => (
            <Button onClick={open}>
              <Pause aria-hidden />
              Pause
            </Button>
          )}
          title={`Pause ${account.displayName}?`}
          action="Pause the account"
          danger={false}
          run={() => setActive(false)}
        >
          The account sends nothing until you activate it. Rules that name it are passed over; mail that waits for it is sent by another active
          account that takes the sender's domain.
        </Confirm>
      ) : (
        <Button kind="primary" onClick={() => activate.mutate()} busy={activate.isPending}>
          <Play aria-hidden />
          Activate
        </Button>
      )}
    </>
  );
}
