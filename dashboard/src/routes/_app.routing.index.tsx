import { createFileRoute } from "@tanstack/react-router";
import { RoutingPage, type RoutingSearch } from "@/pages/routing/page";
import { textParam, wordParam } from "@/ui/search-params";

export const Route = createFileRoute("/_app/routing/")({
  validateSearch: (search): RoutingSearch => ({
    tab: wordParam(search.tab, ["where"] as const),
    from: textParam(search.from),
    to: textParam(search.to),
    tags: textParam(search.tags),
    messageClass: wordParam(search.messageClass, ["bulk"] as const),
    size: textParam(search.size),
    test: search.test === true ? true : undefined,
  }),
  component: Routing,
});

function Routing() {
  const search = Route.useSearch();
  const navigate = Route.useNavigate();
  return <RoutingPage search={search} go={(next) => void navigate({ search: next })} />;
}
