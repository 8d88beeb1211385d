import { createFileRoute } from "@tanstack/react-router";
import { PANES, type TemplateSearch, VIEWS, TABS } from "@/pages/templates/search";
import { TemplatePage } from "@/pages/templates/template";
import { textParam, wordParam } from "@/ui/search-params";

export const Route = createFileRoute("/_app/templates/$id")({
  validateSearch: (search: Record<string, unknown>): TemplateSearch => ({
    tab: wordParam(search.tab, TABS),
    locale: textParam(search.locale),
    version: textParam(search.version),
    pane: wordParam(search.pane, PANES),
    view: wordParam(search.view, VIEWS),
    show: textParam(search.show),
    from: textParam(search.from),
    to: textParam(search.to),
  }),
  component: Template,
});

function Template() {
  const { id } = Route.useParams();
  return <TemplatePage key={id} id={id} search={Route.useSearch()} />;
}
