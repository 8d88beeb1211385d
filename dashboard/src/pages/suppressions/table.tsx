import { Link } from "@tanstack/react-router";
import { Ban } from "lucide-react";
import { toast } from "sonner";
import { waypost } from "@/api";
import { useMay } from "@/session";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { Confirm } from "@/ui/dialog";
import { Empty } from "@/ui/page";
import { type Paged, PagedTable } from "@/ui/paged";
import type { Column } from "@/ui/table";
import { Time } from "@/ui/time";
import { meaning, type SuppressionRow } from "./meaning";
import { suppressionsChanged } from "./queries";

interface TableProps {
  list: Paged<SuppressionRow>;
  /** The address that was searched for: the rows are its. */
  email: string | undefined;
  groupNames: ReadonlyMap<string, string>;
  filtered: { what: string; clear(): void } | undefined;
  onAdd(): void;
  onImport(): void;
}

export function SuppressionTable({ list, email, groupNames, filtered, onAdd, onImport }: TableProps) {
  const may = useMay();
  const scope = (row: SuppressionRow) =>
    row.unsubscribeGroupId ? (groupNames.get(row.unsubscribeGroupId) ?? "A group") : "All messages";
  const columns: Column<SuppressionRow>[] = [
    {
      head: email ? "Address" : "Hash of the address",
      width: "minmax(0, 1.6fr)",
      cell: (row) => (
        <>
          {email ?? (
            <code className="font-mono text-[13px] text-text-2" title={row.emailHash}>
              {row.emailHash.slice(0, 16)}…
            </code>
          )}
          <span className="block truncate text-[13px] text-text-3 md:hidden">
            {row.unsubscribeGroupId && `${scope(row)} · `}
            <Time at={row.createdAt} />
          </span>
        </>
      ),
    },
    { head: "Source", width: "minmax(8.5rem, 1fr)", cell: (row) => <Badge tone={meaning(row.source).tone}>{meaning(row.source).label}</Badge> },
    { head: "Applies to", wide: true, cell: scope },
    { head: "Message", wide: true, width: "6rem", cell: (row) => <MessageLink row={row} canRead={may("METRICS_READ")} /> },
    { head: "Since", wide: true, width: "7rem", cell: (row) => <Time at={row.createdAt} /> },
    { head: <span className="sr-only">Actions</span>, width: "5.5rem", align: "right", cell: (row) => <Remove row={row} email={email} scope={scope(row)} /> },
  ];
  return (
    <PagedTable
      list={list}
      label="Suppressions"
      columns={columns}
      rowKey={(row) => row.id}
      filtered={filtered}
      empty={
        <Empty
          icon={<Ban />}
          title="No address is suppressed"
          action={
            <>
              <Button onClick={onImport}>Import a list</Button>
              <Button onClick={onAdd}>Suppress an address</Button>
            </>
          }
        >
          Waypost adds an address here after a hard bounce, a spam report or an unsubscribe, and sends nothing to it. If you change
          from another service, import its list first.
        </Empty>
      }
    />
  );
}

function MessageLink({ row, canRead }: { row: SuppressionRow; canRead: boolean }) {
  if (!row.messageId) return <span className="text-text-3">–</span>;
  if (!canRead) return "A message";
  return (
    <Link to={`/messages/${row.messageId}` as string} className="text-accent-text hover:underline">
      Show
    </Link>
  );
}

function Remove({ row, email, scope }: { row: SuppressionRow; email: string | undefined; scope: string }) {
  const who = email ?? "this address";
  return (
    <Confirm
      trigger={(open) => (
        <Button small kind="quiet" onClick={open}>
          Remove
        </Button>
      )}
      title={email ? `Remove the suppression of ${email}?` : "Remove the suppression?"}
      action="Remove the suppression"
      run={async () => {
        await waypost.suppressions.delete(row.id);
        toast.success("The suppression was removed");
        await suppressionsChanged();
      }}
    >
      {scope === "All messages" ? `Messages can be sent to ${who} again.` : `Messages of the group “${scope}” can be sent to ${who} again.`}{" "}
      It was suppressed because {meaning(row.source).why}.
      {row.source === "COMPLAINT" || row.source === "UNSUBSCRIBE" ? " Write to it only if the person asked for it." : null}
      {row.source === "BOUNCE" ? " If the mailbox still does not exist, the next message bounces, and harms your reputation as a sender." : null}
    </Confirm>
  );
}
