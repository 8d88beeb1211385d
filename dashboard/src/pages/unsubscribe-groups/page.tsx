import { useQuery } from "@tanstack/react-query";
import { Plus, UserX } from "lucide-react";
import { Button } from "@/ui/button";
import { Card, Empty, LoadError, Page, SkeletonRows } from "@/ui/page";
import { GroupDialog } from "./group-dialog";
import { GroupRow } from "./group-row";
import { groupsQuery } from "./groups";
import { PreviewDialog } from "./preview-dialog";

export interface GroupSearch {
  open?: "add" | undefined;
  /** The group that is changed. */
  edit?: string | undefined;
  /** The group whose page is shown. */
  preview?: string | undefined;
}

interface PageProps {
  search: GroupSearch;
  change(change: GroupSearch): void;
}

export function GroupsPage({ search, change }: PageProps) {
  const groups = useQuery(groupsQuery);
  const edited = groups.data?.find((group) => group.id === search.edit);
  const shown = groups.data?.find((group) => group.id === search.preview);
  const add = () => change({ open: "add" });
  return (
    <Page
      title="Unsubscribe groups"
      description="Kinds of mail that recipients can unsubscribe from, one by one. A message of a group carries an unsubscribe link."
      actions={
        <Button kind="primary" onClick={add}>
          <Plus aria-hidden />
          Make a group
        </Button>
      }
    >
      <Card flush>
        {groups.isPending ? (
          <SkeletonRows rows={3} />
        ) : groups.isError ? (
          <LoadError error={groups.error} retry={() => void groups.refetch()} />
        ) : groups.data.length === 0 ? (
          <Empty icon={<UserX />} title="No unsubscribe group yet" action={<Button onClick={add}>Make a group</Button>}>
            Make one for each kind of mail, such as “Newsletter”, and name it when you send: recipients then get an unsubscribe link, and
            who unsubscribes still gets all other mail, such as receipts.
          </Empty>
        ) : (
          <ul>
            {groups.data.map((group) => (
              <GroupRow
                key={group.id}
                group={group}
                onEdit={() => change({ edit: group.id })}
                onPreview={() => change({ preview: group.id })}
              />
            ))}
          </ul>
        )}
      </Card>
      {search.open === "add" && <GroupDialog onClose={() => change({ open: undefined })} />}
      {edited && <GroupDialog group={edited} onClose={() => change({ edit: undefined })} />}
      {shown && <PreviewDialog group={shown} onClose={() => change({ preview: undefined })} />}
    </Page>
  );
}
