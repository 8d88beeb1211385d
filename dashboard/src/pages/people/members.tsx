import { UserCog, UserMinus, Users } from "lucide-react";
import { useState } from "react";
import { toast } from "sonner";
import type { Member } from "waypost";
import { waypost } from "@/api";
import { roleLabel } from "@/roles";
import { useSession } from "@/session";
import { Badge } from "@/ui/badge";
import { Confirm } from "@/ui/dialog";
import { Menu } from "@/ui/menu";
import { Card, Empty, LoadError, SkeletonRows } from "@/ui/page";
import { type Column, DataTable } from "@/ui/table";
import { Time } from "@/ui/time";
import { ChangeRole } from "./change-role";
import { useMembers, useRefresh } from "./queries";

/** The people of the organization. */
export function Members() {
  const members = useMembers();
  const { user } = useSession();
  const rows = members.data?.pages.flatMap((page) => page.data) ?? [];
  return (
    <Card title="Members" flush>
      {members.isLoading && <SkeletonRows rows={4} />}
      {members.error && <LoadError error={members.error} retry={() => void members.refetch()} />}
      {members.data && (
        <DataTable
          rows={rows}
          columns={columns(user.id)}
          rowKey={(member) => member.id}
          label="Members"
          more={members.hasNextPage ? () => void members.fetchNextPage() : undefined}
          loadingMore={members.isFetchingNextPage}
          empty={
            <Empty icon={<Users />} title="No members">
              Invite the people who work with this organization.
            </Empty>
          }
        />
      )}
    </Card>
  );
}

const columns = (self: string): readonly Column<Member>[] => [
  {
    head: "Person",
    width: "minmax(0, 2fr)",
    cell: (member) => (
      <div className="min-w-0 leading-snug">
        <div className="flex items-center gap-2">
          <span className="truncate font-medium">{member.name || member.email}</span>
          {member.userId === self && <Badge>You</Badge>}
        </div>
        <div className="truncate text-[13px] text-text-3">{member.email}</div>
      </div>
    ),
  },
  { head: "Role", width: "minmax(5rem, 1fr)", cell: (member) => roleLabel(member.role) },
  {
    head: "Last signed in",
    width: "minmax(0, 1fr)",
    wide: true,
    cell: (member) => (member.lastSignedInAt ? <Time at={member.lastSignedInAt} /> : <span className="text-text-3">Never</span>),
  },
  { head: "Member since", width: "minmax(0, 1fr)", wide: true, cell: (member) => <Time at={member.createdAt} /> },
  { head: <span className="sr-only">Actions</span>, width: "2rem", cell: (member) => <MemberMenu member={member} isSelf={member.userId === self} /> },
];

function MemberMenu({ member, isSelf }: { member: Member; isSelf: boolean }) {
  const refresh = useRefresh();
  const { organization } = useSession();
  const [changing, setChanging] = useState(false);
  const name = member.name || member.email;
  const remove = async () => {
    await waypost.members.delete(member.id);
    if (isSelf) {
      // The session ended with the membership.
      window.location.reload();
      return;
    }
    toast.success(`${name} removed`);
    await refresh();
  };
  return (
    <Confirm
      title={isSelf ? `Leave ${organization.name}?` : `Remove ${name}?`}
      action={isSelf ? "Leave" : "Remove"}
      run={remove}
      trigger={(ask) => (
        <>
          <Menu
            label={`Actions for ${name}`}
            items={[
              { label: "Change the role", icon: <UserCog />, onSelect: () => setChanging(true) },
              { label: isSelf ? "Leave the organization" : "Remove", icon: <UserMinus />, danger: true, onSelect: ask },
            ]}
          />
          {changing && (
            <ChangeRole
              title={`Change the role of ${name}`}
              role={member.role}
              onClose={() => setChanging(false)}
              save={async (role) => {
                await waypost.members.update(member.id, { role });
                toast.success(`Role of ${name} changed`);
                await refresh();
              }}
              note={isSelf ? "This is your own role. You may lose the right to change it back." : undefined}
            />
          )}
        </>
      )}
    >
      {isSelf
        ? "You are signed out of it, and cannot come back without an invitation."
        : "The sessions of this person in this organization end at once. API keys that the person made stay: revoke those that are not needed."}
    </Confirm>
  );
}
