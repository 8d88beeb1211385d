import { Pencil, RotateCcw, Trash2 } from "lucide-react";
import type { ReactNode } from "react";
import { toast } from "sonner";
import type { ApiKey } from "waypost";
import { waypost } from "@/api";
import { date, plural } from "@/format";
import { useMay } from "@/session";
import { Badge } from "@/ui/badge";
import { Confirm } from "@/ui/dialog";
import { Menu } from "@/ui/menu";
import { type Paged, PagedTable } from "@/ui/paged";
import type { Column } from "@/ui/table";
import { Time } from "@/ui/time";
import { keysChanged, keyState, oldSecretText } from "./key";
import { permissionLabel, permissionsText } from "./permissions";

interface TableProps {
  list: Paged<ApiKey>;
  showRevoked: boolean;
  empty: ReactNode;
  onEdit(key: ApiKey): void;
  onRotate(key: ApiKey): void;
}

export function KeyTable({ list, showRevoked, empty, onEdit, onRotate }: TableProps) {
  const columns: Column<ApiKey>[] = [
    { head: "Name", width: "minmax(0, 1.6fr)", cell: (key) => <Name apiKey={key} /> },
    {
      head: "Permissions",
      wide: true,
      width: "minmax(0, 1.4fr)",
      cell: (key) => <span title={key.permissions.map(permissionLabel).join(", ")}>{permissionsText(key.permissions)}</span>,
    },
    {
      head: "Addresses",
      wide: true,
      width: "6.5rem",
      cell: (key) =>
        key.allowedIps.length === 0 ? (
          <span className="text-text-3">Anywhere</span>
        ) : (
          <span title={key.allowedIps.join(", ")}>{key.allowedIps.length === 1 ? key.allowedIps[0] : plural(key.allowedIps.length, "address", "addresses")}</span>
        ),
    },
    { head: "Last used", wide: true, width: "6.5rem", cell: (key) => (key.lastUsedAt ? <Time at={key.lastUsedAt} /> : <span className="text-text-3">Never</span>) },
    { head: "Expires", wide: true, width: "6.5rem", cell: (key) => (key.expiresAt ? date(key.expiresAt) : <span className="text-text-3">Never</span>) },
    {
      head: "State",
      width: "5.5rem",
      cell: (key) => {
        const { label, tone } = keyState(key);
        return (
          <Badge dot tone={tone}>
            {label}
          </Badge>
        );
      },
    },
    {
      head: <span className="sr-only">Actions</span>,
      width: "2rem",
      align: "right",
      cell: (key) => !key.revokedAt && <Actions apiKey={key} onEdit={() => onEdit(key)} onRotate={() => onRotate(key)} />,
    },
  ];
  return (
    <PagedTable
      list={list}
      label="API keys"
      rowKey={(key) => key.id}
      columns={columns}
      empty={empty}
      only={(key) => showRevoked || !key.revokedAt}
    />
  );
}

function Name({ apiKey }: { apiKey: ApiKey }) {
  const old = oldSecretText(apiKey);
  return (
    <div className="min-w-0">
      <div className="flex min-w-0 items-center gap-2">
        <span className="truncate font-medium">{apiKey.name}</span>
        {apiKey.isTest && <Badge tone="violet">Test</Badge>}
      </div>
      <div className="truncate text-[13px] text-text-3">
        <code className="font-mono">{apiKey.prefix}…</code>
        {old && ` · ${old}`}
      </div>
      <div className="truncate text-[13px] text-text-3 md:hidden">{permissionsText(apiKey.permissions)}</div>
    </div>
  );
}

function Actions({ apiKey, onEdit, onRotate }: { apiKey: ApiKey; onEdit(): void; onRotate(): void }) {
  const may = useMay();
  // The API lets a person change only a key whose permissions they all have.
  if (!apiKey.permissions.every((permission) => may(permission))) return null;
  const { works } = keyState(apiKey);
  return (
    <Confirm
      trigger={(askRevoke) => (
        <Menu
          label={`Actions for ${apiKey.name}`}
          items={[
            { label: "Edit", icon: <Pencil aria-hidden />, onSelect: onEdit },
            ...(works ? [{ label: "Rotate", icon: <RotateCcw aria-hidden />, onSelect: onRotate }] : []),
            { label: "Revoke", icon: <Trash2 aria-hidden />, danger: true, onSelect: askRevoke },
          ]}
        />
      )}
      title={`Revoke “${apiKey.name}”?`}
      action="Revoke the key"
      run={async () => {
        await waypost.apiKeys.revoke(apiKey.id);
        toast.success("The key was revoked");
        await keysChanged();
      }}
    >
      The key <code className="font-mono text-[13px]">{apiKey.prefix}…</code> stops working within five seconds, and what uses it gets
      errors. It cannot be taken back.{" "}
      {apiKey.lastUsedAt ? (
        <>
          It was last used <Time at={apiKey.lastUsedAt} />.
        </>
      ) : (
        "It was never used."
      )}
    </Confirm>
  );
}
