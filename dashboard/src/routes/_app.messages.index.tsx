import { createFileRoute } from "@tanstack/react-router";
import { queries } from "@/api";
import { messagesQuery } from "@/pages/messages/data";
import { MessagesPage } from "@/pages/messages/list";
import { readSearch } from "@/pages/messages/search";
import { accountsQuery } from "@/pages/providers/queries";
import { sessionQuery } from "@/session";

export const Route = createFileRoute("/_app/messages/")({
  validateSearch: readSearch,
  loaderDeps: ({ search }) => search,
  loader: ({ deps }) => {
    const permissions: readonly string[] = queries.getQueryData(sessionQuery.queryKey)?.permissions ?? [];
    if (permissions.includes("METRICS_READ")) void queries.prefetchInfiniteQuery(messagesQuery(deps));
    if (permissions.includes("PROVIDERS_READ")) void queries.prefetchQuery(accountsQuery);
  },
  component: MessagesRoute,
});

function MessagesRoute() {
  const search = Route.useSearch();
  const navigate = Route.useNavigate();
  return <MessagesPage search={search} onSearch={(next) => void navigate({ search: next, resetScroll: false })} />;
}
