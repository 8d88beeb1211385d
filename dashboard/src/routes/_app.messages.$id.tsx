import { createFileRoute } from "@tanstack/react-router";
import { queries } from "@/api";
import { messageQuery, recipientsQuery } from "@/pages/messages/data";
import { MessagePage } from "@/pages/messages/message";
import { readMessageSearch } from "@/pages/messages/message-search";
import { accountsQuery } from "@/pages/providers/queries";
import { sessionQuery } from "@/session";

export const Route = createFileRoute("/_app/messages/$id")({
  validateSearch: readMessageSearch,
  loader: ({ params: { id } }) => {
    const permissions: readonly string[] = queries.getQueryData(sessionQuery.queryKey)?.permissions ?? [];
    if (permissions.includes("METRICS_READ")) {
      void queries.prefetchQuery(messageQuery(id));
      void queries.prefetchInfiniteQuery(recipientsQuery(id));
    }
    if (permissions.includes("PROVIDERS_READ")) void queries.prefetchQuery(accountsQuery);
  },
  component: MessageRoute,
});

function MessageRoute() {
  const { id } = Route.useParams();
  const search = Route.useSearch();
  const navigate = Route.useNavigate();
  return (
    <MessagePage
      id={id}
      search={search}
      onSearch={(change) => void navigate({ search: (before) => ({ ...before, ...change }), replace: true, resetScroll: false })}
    />
  );
}
