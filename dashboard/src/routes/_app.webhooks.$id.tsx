import { createFileRoute } from "@tanstack/react-router";
import { EndpointPage } from "@/pages/webhooks/endpoint-page";
import { DELIVERY_STATUSES, ENDPOINT_DIALOGS, type EndpointSearch, TABS } from "@/pages/webhooks/search";
import { useMay } from "@/session";
import { NotAllowed } from "@/ui/not-allowed";
import { SPAN_WORDS, textParam, wordParam } from "@/ui/search-params";

export const Route = createFileRoute("/_app/webhooks/$id")({
  validateSearch: (search): EndpointSearch => ({
    tab: wordParam(search.tab, TABS),
    open: wordParam(search.open, ENDPOINT_DIALOGS),
    delivery: textParam(search.delivery),
    status: wordParam(search.status, DELIVERY_STATUSES),
    event: textParam(search.event),
    message: textParam(search.message),
    since: wordParam(search.since, SPAN_WORDS),
  }),
  component: Endpoint,
});

function Endpoint() {
  const navigate = Route.useNavigate();
  const may = useMay();
  const { id } = Route.useParams();
  const search = Route.useSearch();
  if (!may("SETTINGS_WRITE")) return <NotAllowed what="webhooks" />;
  return (
    <EndpointPage
      id={id}
      search={search}
      change={(change) => void navigate({ search: (before) => ({ ...before, ...change }), replace: true, resetScroll: false })}
    />
  );
}
