import { createFileRoute } from "@tanstack/react-router";
import type { SendSearch } from "@/pages/send/search";
import { SendPage } from "@/pages/send/send-page";
import { VIEWS } from "@/pages/templates/search";
import { textParam, wordParam } from "@/ui/search-params";

export const Route = createFileRoute("/_app/send")({
  validateSearch: (search: Record<string, unknown>): SendSearch => ({
    to: textParam(search.to),
    templateId: textParam(search.templateId),
    locale: textParam(search.locale),
    test: search.test === true ? true : undefined,
    view: wordParam(search.view, VIEWS),
  }),
  component: SendRoute,
});

function SendRoute() {
  return <SendPage search={Route.useSearch()} />;
}
