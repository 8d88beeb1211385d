import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import type { RoleName } from "@/roles";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { Form, FormActions, Submit } from "@/ui/form";
import { Notice } from "@/ui/page";
import { RoleChoice } from "./role-choice";

interface ChangeRoleProps {
  title: string;
  role: string;
  save(role: RoleName): Promise<void>;
  onClose(): void;
  note?: string | undefined;
}

/** Gives a member, or an invitation, another role. */
export function ChangeRole({ title, role: before, save, onClose, note }: ChangeRoleProps) {
  const [role, setRole] = useState(before as RoleName);
  const change = useMutation({ mutationFn: () => save(role), onSuccess: onClose });
  return (
    <Dialog open onClose={onClose} title={title} description="It counts from the next request on.">
      <Form error={change.error} onSubmit={() => change.mutate()} label={title}>
        <RoleChoice value={role} onChange={setRole} />
        {note && <Notice kind="warning">{note}</Notice>}
        <FormActions>
          <Submit busy={change.isPending} disabled={role === before}>
            Save
          </Submit>
          <Button onClick={onClose}>Cancel</Button>
        </FormActions>
      </Form>
    </Dialog>
  );
}
