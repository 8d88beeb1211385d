import { Trash2, UserCog } from "lucide-react";
import { useState } from "react";
import { toast } from "sonner";
import type { Invitation } from "waypost";
import { waypost } from "@/api";
import { roleLabel } from "@/roles";
import { Confirm } from "@/ui/dialog";
import { Menu } from "@/ui/menu";
import { Card, LoadError, SkeletonRows } from "@/ui/page";
import { type Column, DataTable } from "@/ui/table";
import { Time } from "@/ui/time";
import { ChangeRole } from "./change-role";
import { useInvitations, useRefresh } from "./queries";

/** Invitations that nobody has accepted yet. */
export function Invitations() {
  const invitations = useInvitations();
  const rows = invitations.data?.pages.flatMap((page) => page.data) ?? [];
  return (
    <Card title="Open invitations" flush>
      {invitations.isLoading && <SkeletonRows rows={2} />}
      {invitations.error && <LoadError error={invitations.error} retry={() => void invitations.refetch()} />}
      {invitations.data && (
        <DataTable
          rows={rows}
          columns={COLUMNS}
          rowKey={(invitation) => invitation.id}
          label="Open invitations"
          more={invitations.hasNextPage ? () => void invitations.fetchNextPage() : undefined}
          loadingMore={invitations.isFetchingNextPage}
          empty={<p className="px-4 py-6 text-text-2 sm:px-5">Nobody is invited at the moment. Invitations end after seven days.</p>}
        />
      )}
    </Card>
  );
}

const COLUMNS: readonly Column<Invitation>[] = [
  { head: "Address", width: "minmax(0, 2fr)", cell: (invitation) => <span className="font-medium">{invitation.email}</span> },
  { head: "Role", width: "minmax(5rem, 1fr)", cell: (invitation) => roleLabel(invitation.role) },
  { head: "Invited", width: "minmax(0, 1fr)", wide: true, cell: (invitation) => <Time at={invitation.createdAt} /> },
  { head: "Ends", width: "minmax(0, 1fr)", wide: true, cell: (invitation) => <Time at={invitation.expiresAt} /> },
  { head: <span className="sr-only">Actions</span>, width: "2rem", cell: (invitation) => <InvitationMenu invitation={invitation} /> },
];

function InvitationMenu({ invitation }: { invitation: Invitation }) {
  const refresh = useRefresh();
  const [changing, setChanging] = useState(false);
  const { id, email, role } = invitation;
  return (
    <Confirm
      title={`Withdraw the invitation of ${email}?`}
      action="Withdraw"
      run={async () => {
        await waypost.invitations.delete(id);
        toast.success("Invitation withdrawn");
        await refresh();
      }}
      trigger={(ask) => (
        <>
          <Menu
            label={`Actions for the invitation of ${email}`}
            items={[
              { label: "Change the role", icon: <UserCog />, onSelect: () => setChanging(true) },
              { label: "Withdraw", icon: <Trash2 />, danger: true, onSelect: ask },
            ]}
          />
          {changing && (
            <ChangeRole
              title={`Change the role of ${email}`}
              role={role}
              onClose={() => setChanging(false)}
              save={async (next) => {
                await waypost.invitations.update(id, { role: next });
                toast.success("Role changed");
                await refresh();
              }}
            />
          )}
        </>
      )}
    >
      Its link stops working at once. You can invite the person again.
    </Confirm>
  );
}
