import { useQuery } from "@tanstack/react-query";
import { Download, FileUp, ListX, Plus, Server } from "lucide-react";
import type { ListSuppressionsParams } from "waypost";
import { waypost } from "@/api";
import { plural } from "@/format";
import { groupsQuery } from "@/pages/unsubscribe-groups/groups";
import { useMay } from "@/session";
import { Button } from "@/ui/button";
import { Menu } from "@/ui/menu";
import { Card, Page } from "@/ui/page";
import { usePaged } from "@/ui/paged";
import { spanStart } from "@/ui/search-params";
import { AddDialog } from "./add-dialog";
import { Answer } from "./answer";
import { ExportDialog } from "./export-dialog";
import { Filters } from "./filters";
import { ImportDialog } from "./import-dialog";
import type { SuppressionRow } from "./meaning";
import { ProviderDialog } from "./provider-dialog";
import { SUPPRESSIONS } from "./queries";
import { RemoveDialog } from "./remove-dialog";
import type { DialogName, SuppressionSearch } from "./search";
import { SuppressionTable } from "./table";

interface PageProps {
  search: SuppressionSearch;
  change(change: SuppressionSearch): void;
}

const NO_FILTERS = { email: undefined, source: undefined, group: undefined, since: undefined };

export function SuppressionsPage({ search, change }: PageProps) {
  const { email, source, group, since } = search;
  const params: ListSuppressionsParams & { since?: string } = {
    ...(email && { email }),
    ...(source && { source }),
    ...(group && { groupId: group }),
    ...(since && { since: spanStart(since) }),
  };
  const list = usePaged<SuppressionRow>([SUPPRESSIONS, params], (cursor) =>
    waypost.suppressions.list({ ...params, limit: 50, ...(cursor && { cursor }) }),
  );
  const { data: groups = [] } = useQuery(groupsQuery);
  const groupNames = new Map(groups.map((one) => [one.id, one.name]));
  const open = (name: DialogName | undefined) => change({ open: name });
  const isFiltered = !!(email || source || group || since);
  const onlyEmail = email && !source && !group && !since;
  return (
    <Page
      title="Suppressions"
      description="Addresses that get no mail. Waypost adds one after a hard bounce, a spam report or an unsubscribe."
      actions={<Actions open={open} />}
    >
      <div className="space-y-4">
        <Filters filters={search} onChange={change} />
        {onlyEmail && !list.loading && list.error === undefined && (
          <Answer email={email} rows={list.rows} groupNames={groupNames} onAdd={() => open("add")} />
        )}
        {!(onlyEmail && list.rows.length === 0 && !list.loading && list.error === undefined) && (
          <Card flush>
            <SuppressionTable
              list={list}
              email={email}
              groupNames={groupNames}
              filtered={isFiltered ? { what: "suppression", clear: () => change(NO_FILTERS) } : undefined}
              onAdd={() => open("add")}
              onImport={() => open("import")}
            />
          </Card>
        )}
        <p className="text-[13px] text-text-3">
          {list.total !== undefined && list.total > 0 && `${plural(list.total, "suppression")}. `}
          Only a hash of each address is stored, so an address is found by its whole text.
        </p>
      </div>
      {search.open === "add" && <AddDialog email={email} onClose={() => open(undefined)} />}
      {search.open === "import" && <ImportDialog onClose={() => open(undefined)} />}
      {search.open === "provider" && <ProviderDialog onClose={() => open(undefined)} />}
      {search.open === "remove" && <RemoveDialog onClose={() => open(undefined)} />}
      {search.open === "export" && <ExportDialog filter={{ source, groupId: group }} onClose={() => open(undefined)} />}
    </Page>
  );
}

function Actions({ open }: { open(name: DialogName): void }) {
  const may = useMay();
  return (
    <>
      <Menu
        items={[
          ...(may("PROVIDERS_WRITE")
            ? [{ label: "Import from a provider account", icon: <Server aria-hidden />, onSelect: () => open("provider") }]
            : []),
          { label: "Export", icon: <Download aria-hidden />, onSelect: () => open("export") },
          { label: "Remove a list", icon: <ListX aria-hidden />, danger: true, onSelect: () => open("remove") },
        ]}
      />
      <Button onClick={() => open("import")}>
        <FileUp aria-hidden />
        Import
      </Button>
      <Button kind="primary" onClick={() => open("add")}>
        <Plus aria-hidden />
        Add
      </Button>
    </>
  );
}
