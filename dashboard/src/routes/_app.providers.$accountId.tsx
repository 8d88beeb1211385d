import { createFileRoute } from "@tanstack/react-router";
import { AccountPage } from "@/pages/providers/account";
import { type AccountTab, TABS } from "@/pages/providers/tabs";

export const Route = createFileRoute("/_app/providers/$accountId")({
  validateSearch: (search): { tab?: AccountTab } => {
    const tab = TABS.find((one) => one === search.tab);
    return tab && tab !== "overview" ? { tab } : {};
  },
  component: Account,
});

function Account() {
  const { accountId } = Route.useParams();
  const { tab } = Route.useSearch();
  const navigate = Route.useNavigate();
  return <AccountPage id={accountId} tab={tab ?? "overview"} onTab={(next) => void navigate({ search: { tab: next }, replace: true })} />;
}
