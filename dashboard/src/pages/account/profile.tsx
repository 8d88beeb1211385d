import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { toast } from "sonner";
import { waypost } from "@/api";
import { sessionQuery, useSession } from "@/session";
import { Field, Form, FormActions, Input, Submit } from "@/ui/form";
import { Card } from "@/ui/page";
import { PASSWORD_HINT, PasswordInput } from "@/ui/password";

/** The name that others in the organization see. */
export function ProfileCard() {
  const { user } = useSession();
  const client = useQueryClient();
  const [name, setName] = useState(user.name);
  const save = useMutation({
    mutationFn: () => waypost.user.update({ name: name.trim() }),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: sessionQuery.queryKey });
      toast.success("Name changed");
    },
  });
  return (
    <Card title="Profile">
      <Form error={save.error} onSubmit={() => save.mutate()} label="Profile">
        <Field label="Email address" hint="You sign in with it. It cannot be changed.">
          {(control) => <Input {...control} value={user.email} readOnly className="bg-sunken! text-text-2!" />}
        </Field>
        <Field label="Name" path="name" hint="The other people of your organizations see it, and it stands in the audit log.">
          {(control) => <Input {...control} autoComplete="name" maxLength={255} value={name} onChange={(event) => setName(event.target.value)} />}
        </Field>
        <FormActions>
          <Submit busy={save.isPending} disabled={!name.trim() || name === user.name}>
            Save
          </Submit>
        </FormActions>
      </Form>
    </Card>
  );
}

/** A new password, for users who have one. */
export function PasswordCard() {
  const { user } = useSession();
  const [current, setCurrent] = useState("");
  const [password, setPassword] = useState("");
  const save = useMutation({
    mutationFn: () => waypost.user.update({ password, currentPassword: current }, { maxRetries: 0 }),
    onSuccess: () => {
      setCurrent("");
      setPassword("");
      toast.success("Password changed. Your other sessions have ended.");
    },
  });
  if (!user.hasPassword) {
    return (
      <Card title="Password">
        <p className="text-text-2">You have no password here: you sign in through your organization's own sign-in.</p>
      </Card>
    );
  }
  return (
    <Card title="Password" description="A new password ends your sessions in other browsers.">
      <Form error={save.error} onSubmit={() => save.mutate()} label="Password">
        {/* So that a password manager stores the new one with its address. */}
        <input type="text" name="username" autoComplete="username" value={user.email} readOnly hidden />
        <Field label="Present password" path="currentPassword">
          {(control) => (
            <PasswordInput {...control} autoComplete="current-password" value={current} onChange={(event) => setCurrent(event.target.value)} />
          )}
        </Field>
        <Field label="New password" path="password" hint={PASSWORD_HINT}>
          {(control) => (
            <PasswordInput {...control} autoComplete="new-password" value={password} onChange={(event) => setPassword(event.target.value)} />
          )}
        </Field>
        <FormActions>
          <Submit busy={save.isPending} disabled={!current || !password}>
            Change the password
          </Submit>
        </FormActions>
      </Form>
    </Card>
  );
}
