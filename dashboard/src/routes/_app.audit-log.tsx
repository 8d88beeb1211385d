import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";
import { createFileRoute } from "@tanstack/react-router";
import { ScrollText } from "lucide-react";
import { waypost } from "@/api";
import { type AuditSearch, Filters, isFiltered } from "@/pages/audit-log/filters";
import { Entries } from "@/pages/audit-log/list";
import { useMay } from "@/session";
import { Button } from "@/ui/button";
import { NotAllowed } from "@/ui/not-allowed";
import { Card, Empty, LoadError, Page, SkeletonRows } from "@/ui/page";

const NAMES = ["targetType", "action", "targetId", "from", "to", "entry"] as const;

export const Route = createFileRoute("/_app/audit-log")({
  validateSearch: (search: Record<string, unknown>): AuditSearch =>
    Object.fromEntries(NAMES.flatMap((name) => (typeof search[name] === "string" && search[name] ? [[name, search[name]]] : []))),
  component: AuditLog,
});

function AuditLog() {
  const may = useMay();
  return (
    <Page title="Audit log" description="Who changed what, and when.">
      {may("SETTINGS_WRITE") ? <Log /> : <NotAllowed what="the audit log" />}
    </Page>
  );
}

function Log() {
  const search = Route.useSearch();
  const navigate = Route.useNavigate();
  const { entry, ...filters } = search;
  const log = useInfiniteQuery({
    queryKey: ["audit-log", filters],
    queryFn: async ({ pageParam }) => await waypost.auditLogs.list({ ...filters, limit: 50, cursor: pageParam }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.pagination?.nextCursor ?? undefined,
    placeholderData: keepPreviousData,
  });
  const change = (next: AuditSearch) => void navigate({ search: next, replace: true, resetScroll: false });
  const entries = log.data?.pages.flatMap((page) => page.data) ?? [];
  return (
    <Card flush>
      <Filters search={search} onChange={change} />
      {log.isLoading && <SkeletonRows rows={10} />}
      {log.error && <LoadError error={log.error} retry={() => void log.refetch()} />}
      {log.data && entries.length > 0 && (
        <Entries
          entries={entries}
          open={entry}
          onOpen={(id) => change({ ...filters, entry: id })}
          more={log.hasNextPage ? () => void log.fetchNextPage() : undefined}
          loadingMore={log.isFetchingNextPage}
        />
      )}
      {log.data && entries.length === 0 && <Nothing filtered={isFiltered(search)} clear={() => change({})} />}
    </Card>
  );
}

function Nothing({ filtered, clear }: { filtered: boolean; clear(): void }) {
  if (filtered) return <Empty icon={<ScrollText />} title="No change matches" action={<Button onClick={clear}>Clear the filters</Button>} />;
  return (
    <Empty icon={<ScrollText />} title="No changes yet">
      Every change through the dashboard and the API is written here: accounts, keys, rules, templates, suppressions and settings.
    </Empty>
  );
}
