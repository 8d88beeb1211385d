import { createFileRoute } from "@tanstack/react-router";
import { TemplatesPage } from "@/pages/templates/list";
import type { TemplatesSearch } from "@/pages/templates/search";
import { textParam, wordParam } from "@/ui/search-params";

export const Route = createFileRoute("/_app/templates/")({
  validateSearch: (search: Record<string, unknown>): TemplatesSearch => ({
    q: textParam(search.q),
    type: wordParam(search.type, ["TEMPLATE", "LAYOUT", "PARTIAL"] as const),
    tag: textParam(search.tag),
    new: search.new === true ? true : undefined,
  }),
  component: Templates,
});

function Templates() {
  return <TemplatesPage search={Route.useSearch()} />;
}
