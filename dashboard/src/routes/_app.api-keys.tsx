import { createFileRoute } from "@tanstack/react-router";
import { ApiKeysPage, type KeySearch } from "@/pages/api-keys/page";
import { useMay } from "@/session";
import { NotAllowed } from "@/ui/not-allowed";
import { textParam, wordParam } from "@/ui/search-params";

export const Route = createFileRoute("/_app/api-keys")({
  validateSearch: (search): KeySearch => ({
    open: wordParam(search.open, ["add"] as const),
    edit: textParam(search.edit),
    rotate: textParam(search.rotate),
    revoked: search.revoked === true || undefined,
  }),
  component: ApiKeys,
});

function ApiKeys() {
  const navigate = Route.useNavigate();
  const may = useMay();
  const search = Route.useSearch();
  if (!may("SETTINGS_WRITE")) return <NotAllowed what="API keys" />;
  return (
    <ApiKeysPage
      search={search}
      change={(change) => void navigate({ search: (before) => ({ ...before, ...change }), replace: true, resetScroll: false })}
    />
  );
}
