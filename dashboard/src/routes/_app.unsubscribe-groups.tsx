import { createFileRoute } from "@tanstack/react-router";
import { GroupsPage, type GroupSearch } from "@/pages/unsubscribe-groups/page";
import { useMay } from "@/session";
import { NotAllowed } from "@/ui/not-allowed";
import { textParam, wordParam } from "@/ui/search-params";

export const Route = createFileRoute("/_app/unsubscribe-groups")({
  validateSearch: (search): GroupSearch => ({
    open: wordParam(search.open, ["add"] as const),
    edit: textParam(search.edit),
    preview: textParam(search.preview),
  }),
  component: UnsubscribeGroups,
});

function UnsubscribeGroups() {
  const navigate = Route.useNavigate();
  const may = useMay();
  const search = Route.useSearch();
  if (!may("SETTINGS_WRITE")) return <NotAllowed what="unsubscribe groups" />;
  return (
    <GroupsPage
      search={search}
      change={(change) => void navigate({ search: (before) => ({ ...before, ...change }), replace: true, resetScroll: false })}
    />
  );
}
