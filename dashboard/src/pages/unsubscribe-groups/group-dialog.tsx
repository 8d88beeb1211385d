import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { toast } from "sonner";
import type { UnsubscribeGroup } from "waypost";
import { waypost } from "@/api";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { Field, Form, FormActions, Input, Submit, Switch, Textarea } from "@/ui/form";
import { groupsChanged } from "./groups";

export function GroupDialog({ group, onClose }: { group?: UnsubscribeGroup; onClose(): void }) {
  const [name, setName] = useState(group?.name ?? "");
  const [description, setDescription] = useState(group?.description ?? "");
  const [isDefault, setDefault] = useState(group?.isDefault ?? false);
  const save = useMutation({
    mutationFn: () => {
      const text = description.trim();
      if (group) return waypost.unsubscribeGroups.update(group.id, { name: name.trim(), description: text || null, isDefault });
      return waypost.unsubscribeGroups.create({ name: name.trim(), isDefault, ...(text && { description: text }) });
    },
    onSuccess: async (saved) => {
      toast.success(group ? "The group was changed" : `The group “${saved.name}” was made`);
      await groupsChanged();
      onClose();
    },
  });
  return (
    <Dialog open onClose={onClose} title={group ? `Edit “${group.name}”` : "Make an unsubscribe group"}>
      <Form error={save.error} onSubmit={() => save.mutate()}>
        <Field label="Name" path="name" hint="Recipients see it: “You will get no more messages of …”.">
          {(control) => <Input {...control} autoFocus={!group} autoComplete="off" value={name} onChange={(event) => setName(event.target.value)} />}
        </Field>
        <Field label="Description" path="description" aside="optional" hint="For you and your colleagues.">
          {(control) => <Textarea {...control} rows={2} value={description} onChange={(event) => setDescription(event.target.value)} />}
        </Field>
        <Switch
          label="Default group"
          hint="A mark for your programs, which the API shows. At most one group has it. Messages still belong only to the group that they name."
          checked={isDefault}
          onChange={setDefault}
        />
        <FormActions>
          <Submit busy={save.isPending}>{group ? "Save" : "Make the group"}</Submit>
          <Button onClick={onClose}>Cancel</Button>
        </FormActions>
      </Form>
    </Dialog>
  );
}
