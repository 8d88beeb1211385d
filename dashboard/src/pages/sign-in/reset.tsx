import { useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { toast } from "sonner";
import { queries, waypost } from "@/api";
import { Button } from "@/ui/button";
import { Field, Form, Input } from "@/ui/form";
import { PASSWORD_HINT, PasswordInput } from "@/ui/password";
import { Frame } from "./frame";
import { LinkFailed, LinkLoading } from "./link-ended";
import { useToken } from "./token";

/** Sets a new password by the link of the operator's command. */
export function Reset() {
  const token = useToken();
  const found = useQuery({
    queryKey: ["password-reset", token],
    queryFn: () => waypost.passwordResets.lookUp({ token }),
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (found.error) return <LinkFailed error={found.error} retry={() => void found.refetch()} next="Ask whoever runs this Waypost for a new one." />;
  if (!found.data) return <LinkLoading />;
  return (
    <Frame title="Set a new password" description="Your other sessions end. A second factor stays as it is.">
      <NewPassword token={token} email={found.data.email} />
    </Frame>
  );
}

function NewPassword({ token, email }: { token: string; email: string }) {
  const navigate = useNavigate();
  const [password, setPassword] = useState("");
  const accept = useMutation({
    mutationFn: () => waypost.passwordResets.accept({ token, password }, { maxRetries: 0 }),
    onSuccess: async () => {
      queries.clear();
      toast.success("Password changed. Sign in with the new one.");
      await navigate({ to: "/sign-in", replace: true });
    },
  });
  return (
    <Form error={accept.error} onSubmit={() => accept.mutate()} label="Set a new password">
      <Field label="Email address">
        {(control) => <Input {...control} type="email" name="email" autoComplete="username" value={email} readOnly className="bg-sunken! text-text-2!" />}
      </Field>
      <Field label="New password" path="password" hint={PASSWORD_HINT}>
        {(control) => (
          <PasswordInput {...control} autoFocus autoComplete="new-password" value={password} onChange={(event) => setPassword(event.target.value)} />
        )}
      </Field>
      <Button kind="primary" type="submit" className="w-full" busy={accept.isPending} disabled={!password}>
        Set the password
      </Button>
    </Form>
  );
}
