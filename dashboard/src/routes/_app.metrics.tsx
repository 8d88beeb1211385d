import { createFileRoute } from "@tanstack/react-router";
import { queries } from "@/api";
import { startMetrics } from "@/pages/metrics/data";
import { MetricsPage } from "@/pages/metrics/metrics";
import { readMetricsSearch } from "@/pages/metrics/search";
import { sessionQuery } from "@/session";

export const Route = createFileRoute("/_app/metrics")({
  validateSearch: readMetricsSearch,
  loaderDeps: ({ search }) => search,
  loader: ({ deps }) => {
    if (queries.getQueryData(sessionQuery.queryKey)?.permissions.includes("METRICS_READ")) startMetrics(deps);
  },
  component: MetricsRoute,
});

function MetricsRoute() {
  const search = Route.useSearch();
  const navigate = Route.useNavigate();
  return (
    <MetricsPage
      search={search}
      onSearch={(change) => void navigate({ search: (before) => ({ ...before, ...change }), replace: true, resetScroll: false })}
    />
  );
}
