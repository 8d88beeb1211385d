import { useMutation } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Copy, Eye, Pencil, Star, Trash2 } from "lucide-react";
import { toast } from "sonner";
import type { UnsubscribeGroup } from "waypost";
import { errorText, queries, waypost } from "@/api";
import { date } from "@/format";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { Confirm } from "@/ui/dialog";
import { Menu, type MenuItem } from "@/ui/menu";
import { groupsChanged } from "./groups";

interface RowProps {
  group: UnsubscribeGroup;
  onEdit(): void;
  onPreview(): void;
}

export function GroupRow({ group, onEdit, onPreview }: RowProps) {
  const mark = useMutation({
    mutationFn: () => waypost.unsubscribeGroups.update(group.id, { isDefault: true }),
    onSuccess: async () => {
      toast.success(`“${group.name}” is the default group`);
      await groupsChanged();
    },
    onError: (error) => toast.error(errorText(error)),
  });
  const copyId = async () => {
    await navigator.clipboard.writeText(group.id);
    toast.success("The id was copied");
  };
  const items = (askDelete: () => void): MenuItem[] => [
    { label: "Edit", icon: <Pencil aria-hidden />, onSelect: onEdit },
    { label: "Copy the id", icon: <Copy aria-hidden />, onSelect: () => void copyId() },
    ...(group.isDefault ? [] : [{ label: "Make it the default", icon: <Star aria-hidden />, onSelect: () => mark.mutate() }]),
    { label: "Delete", icon: <Trash2 aria-hidden />, danger: true, onSelect: askDelete },
  ];
  return (
    <li className="flex flex-wrap items-center gap-x-4 gap-y-2 border-b border-line px-4 py-3 last:border-0 sm:px-5">
      <div className="min-w-0 flex-[1_1_16rem]">
        <div className="flex flex-wrap items-center gap-x-2.5 gap-y-1">
          <h2 className="min-w-0 font-medium break-words">{group.name}</h2>
          {group.isDefault && <Badge tone="blue">Default</Badge>}
        </div>
        <p className="text-[13px] break-words text-text-3">{group.description ?? `Made on ${date(group.createdAt)}`}</p>
      </div>
      <div className="flex items-center gap-2">
        <Link to="/suppressions" search={{ group: group.id }} className="mr-2 text-[13px] text-accent-text hover:underline">
          Who unsubscribed
        </Link>
        <Button small onClick={onPreview}>
          <Eye aria-hidden />
          Recipients' page
        </Button>
        <Confirm
          trigger={(askDelete) => <Menu label={`Actions for ${group.name}`} items={items(askDelete)} />}
          title={`Delete the group “${group.name}”?`}
          action="Delete the group"
          run={async () => {
            await waypost.unsubscribeGroups.delete(group.id);
            toast.success("The group was deleted");
            await Promise.all([groupsChanged(), queries.invalidateQueries({ queryKey: ["suppressions"] })]);
          }}
        >
          Its suppressions are deleted too: people who unsubscribed from it are no longer known. Messages that name the group are refused.
          Export its suppressions first if you may need them.
        </Confirm>
      </div>
    </li>
  );
}
