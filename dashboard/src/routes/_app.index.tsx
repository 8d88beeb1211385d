import { createFileRoute } from "@tanstack/react-router";
import { queries } from "@/api";
import { SPAN_WORDS, type Span, startOverview } from "@/pages/overview/data";
import { Overview } from "@/pages/overview/overview";
import { sessionQuery } from "@/session";
import { wordParam } from "@/ui/search-params";

interface Search {
  span?: Span | undefined;
}

export const Route = createFileRoute("/_app/")({
  validateSearch: (search): Search => ({ span: wordParam(search.span, SPAN_WORDS) }),
  loaderDeps: ({ search }) => ({ span: search.span ?? "7d" }),
  loader: ({ deps }) => {
    const permissions: readonly string[] = queries.getQueryData(sessionQuery.queryKey)?.permissions ?? [];
    const may = (permission: string) => permissions.includes(permission);
    if (may("METRICS_READ")) startOverview(deps.span, may);
  },
  component: OverviewRoute,
});

function OverviewRoute() {
  const { span = "7d" } = Route.useSearch();
  const navigate = Route.useNavigate();
  return <Overview span={span} onSpan={(next) => void navigate({ search: { span: next }, replace: true, resetScroll: false })} />;
}
