import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import type { InvitationWithUrl } from "waypost";
import { waypost } from "@/api";
import { date } from "@/format";
import { roleLabel, type RoleName } from "@/roles";
import { Button } from "@/ui/button";
import { SecretOnce } from "@/ui/copy";
import { Dialog } from "@/ui/dialog";
import { Field, Form, FormActions, Input, Submit } from "@/ui/form";
import { Notice } from "@/ui/page";
import { useRefresh } from "./queries";
import { RoleChoice } from "./role-choice";

/** Invites a person, then shows the link, once. */
export function Invite({ onClose }: { onClose(): void }) {
  const refresh = useRefresh();
  const [email, setEmail] = useState("");
  const [role, setRole] = useState<RoleName>("DEVELOPER");
  const invite = useMutation({
    mutationFn: () => waypost.invitations.create({ email: email.trim(), role }),
    onSuccess: () => void refresh(),
  });
  if (invite.data) {
    return (
      <Dialog open modal onClose={onClose} title={`${invite.data.email} is invited`}>
        <Invited invitation={invite.data} onClose={onClose} />
      </Dialog>
    );
  }
  return (
    <Dialog open onClose={onClose} title="Invite a person" description="The person gets a link. It works once, for seven days.">
      <Form error={invite.error} onSubmit={() => invite.mutate()} label="Invite a person">
        <Field label="Email address" path="email">
          {(control) => (
            <Input
              {...control}
              type="email"
              autoFocus
              autoComplete="off"
              placeholder="person@example.com"
              value={email}
              onChange={(event) => setEmail(event.target.value)}
            />
          )}
        </Field>
        <RoleChoice value={role} onChange={setRole} />
        <FormActions>
          <Submit busy={invite.isPending} disabled={!email.trim()}>
            Invite
          </Submit>
          <Button onClick={onClose}>Cancel</Button>
        </FormActions>
      </Form>
    </Dialog>
  );
}

function Invited({ invitation, onClose }: { invitation: InvitationWithUrl; onClose(): void }) {
  const { email, url, mailed, role, expiresAt } = invitation;
  return (
    <div className="space-y-4">
      {mailed ? (
        <Notice kind="success">The link was mailed to {email} through Waypost. You can also pass it on yourself.</Notice>
      ) : (
        <Notice kind="info">The link was not mailed: pass it on yourself, only to this person. Whoever opens it first joins.</Notice>
      )}
      <SecretOnce secret={url} what="the link" />
      <p className="text-[13px] text-text-3">
        It makes the person {roleLabel(role)}, and works until {date(expiresAt)}.
      </p>
      <div className="flex justify-end">
        <Button kind="primary" onClick={onClose}>
          Done
        </Button>
      </div>
    </div>
  );
}
