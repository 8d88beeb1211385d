import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { type InvitationDetail, WaypostError } from "waypost";
import { waypost } from "@/api";
import { roleLabel, roleSummary } from "@/roles";
import { Button } from "@/ui/button";
import { Field, Form, Input } from "@/ui/form";
import { PASSWORD_HINT, PasswordInput } from "@/ui/password";
import { Failure, useSecondsLeft } from "./failure";
import { Frame } from "./frame";
import { LinkFailed, LinkLoading } from "./link-ended";
import { useEnter } from "./next";
import { CodeField } from "./second-factor";
import { useToken } from "./token";

/** Accepts an invitation. The link that the operator's command prints for the first user leads here too. */
export function Invitation() {
  const token = useToken();
  const found = useQuery({
    queryKey: ["invitation", token],
    queryFn: () => waypost.invitations.lookUp({ token }),
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (found.error) return <LinkFailed error={found.error} retry={() => void found.refetch()} next="Ask whoever invited you for a new one." />;
  if (!found.data) return <LinkLoading />;
  return (
    <Frame
      title={`Join ${found.data.organizationName}`}
      description={
        <>
          You are invited as {roleLabel(found.data.role)}. {roleSummary(found.data.role)}
        </>
      }
    >
      <Accept token={token} invitation={found.data} />
    </Frame>
  );
}

function Accept({ token, invitation }: { token: string; invitation: InvitationDetail }) {
  const enter = useEnter();
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const [code, setCode] = useState("");
  const { email, hasUser } = invitation;
  const accept = useMutation({
    mutationFn: async () => {
      const own = { name: hasUser ? undefined : name.trim() || undefined, code: code.trim() || undefined };
      await waypost.invitations.accept({ token, password, ...own }, { maxRetries: 0 });
      await enter();
    },
  });
  const left = useSecondsLeft(accept.error);
  const reason = accept.error instanceof WaypostError ? accept.error.reason : undefined;
  const [coded, setCoded] = useState(false);
  if (!coded && (reason === "SECOND_FACTOR_REQUIRED" || reason === "SECOND_FACTOR_WRONG")) setCoded(true);
  return (
    <Form error={accept.error instanceof WaypostError && accept.error.issues.length > 0 ? accept.error : undefined} onSubmit={() => accept.mutate()} label="Accept the invitation">
      <Field label="Email address">
        {(control) => <Input {...control} type="email" name="email" autoComplete="username" value={email} readOnly className="bg-sunken! text-text-2!" />}
      </Field>
      {!hasUser && (
        <Field label="Your name" path="name" aside="optional">
          {(control) => <Input {...control} autoFocus autoComplete="name" maxLength={255} value={name} onChange={(event) => setName(event.target.value)} />}
        </Field>
      )}
      <Field
        label="Password"
        path="password"
        hint={hasUser ? "You have an account here already: enter its password." : PASSWORD_HINT}
      >
        {(control) => (
          <PasswordInput
            {...control}
            autoComplete={hasUser ? "current-password" : "new-password"}
            autoFocus={hasUser}
            value={password}
            onChange={(event) => setPassword(event.target.value)}
          />
        )}
      </Field>
      {coded && <CodeField recovery={false} code={code} onChange={setCode} />}
      {accept.error && reason !== "SECOND_FACTOR_REQUIRED" ? (
        <Failure error={accept.error} wrong={reason === "SECOND_FACTOR_WRONG" ? "This code is wrong, or was used before." : "The password is wrong."} />
      ) : null}
      <Button
        kind="primary"
        type="submit"
        className="w-full"
        busy={accept.isPending}
        disabled={!password || (left ?? 0) > 0}
      >
        Join {invitation.organizationName}
      </Button>
    </Form>
  );
}
