import { createFileRoute } from "@tanstack/react-router";
import { SOURCES } from "@/pages/suppressions/meaning";
import { SuppressionsPage } from "@/pages/suppressions/page";
import { DIALOGS, type SuppressionSearch } from "@/pages/suppressions/search";
import { useMay } from "@/session";
import { NotAllowed } from "@/ui/not-allowed";
import { SPAN_WORDS, textParam, wordParam } from "@/ui/search-params";

export const Route = createFileRoute("/_app/suppressions")({
  validateSearch: (search): SuppressionSearch => ({
    email: textParam(search.email),
    source: wordParam(search.source, SOURCES),
    group: textParam(search.group),
    since: wordParam(search.since, SPAN_WORDS),
    open: wordParam(search.open, DIALOGS),
  }),
  component: Suppressions,
});

function Suppressions() {
  const navigate = Route.useNavigate();
  const may = useMay();
  const search = Route.useSearch();
  if (!may("SETTINGS_WRITE")) return <NotAllowed what="suppressions" />;
  return (
    <SuppressionsPage
      search={search}
      change={(change) => void navigate({ search: (before) => ({ ...before, ...change }), replace: true, resetScroll: false })}
    />
  );
}
