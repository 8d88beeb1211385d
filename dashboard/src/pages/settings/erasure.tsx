import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import type { ErasureResult } from "waypost";
import { waypost } from "@/api";
import { plural } from "@/format";
import { Button } from "@/ui/button";
import { Confirm } from "@/ui/dialog";
import { Field, Form, Input } from "@/ui/form";
import { Card, Notice } from "@/ui/page";

/** Erases what is stored of a person. */
export function ErasureSection() {
  const [email, setEmail] = useState("");
  const erase = useMutation({ mutationFn: (address: string) => waypost.erasures.erasePerson({ email: address }) });
  const address = email.trim();
  return (
    <Card
      danger
      title="Erase a person"
      description="For someone who asks you to delete their data. The address, the contents of messages to this person alone and the details of events are erased for good."
    >
      <Confirm
        title={`Erase ${address}?`}
        action="Erase for good"
        run={() => erase.mutateAsync(address).catch(() => undefined)}
        trigger={(ask) => (
          <Form error={erase.error} onSubmit={() => address && ask()} label="Erase a person">
            <EmailField email={email} onChange={setEmail} busy={erase.isPending} />
            {erase.data && erase.variables && <Erased result={erase.data} email={erase.variables} again={erase.mutate} busy={erase.isPending} />}
          </Form>
        )}
      >
        What is stored of this person cannot be restored. Backups and the providers keep what they have. The audit log gets a receipt with the hash
        of the address.
      </Confirm>
    </Card>
  );
}

function EmailField({ email, onChange, busy }: { email: string; onChange(email: string): void; busy: boolean }) {
  return (
    <Field
      label="Email address"
      path="email"
      hint="Statuses, counts and metrics stay. Suppressions of the address stay too: they hold only its hash, and without them the person would get mail again."
    >
      {(control) => (
        <div className="flex flex-wrap gap-2">
          <Input
            {...control}
            type="email"
            autoComplete="off"
            className="min-w-0 flex-1 basis-56"
            value={email}
            onChange={(event) => onChange(event.target.value)}
            placeholder="person@example.com"
          />
          <Button kind="danger" type="submit" disabled={!email.trim()} busy={busy}>
            Erase
          </Button>
        </div>
      )}
    </Field>
  );
}

interface ErasedProps {
  result: ErasureResult;
  email: string;
  again(email: string): void;
  busy: boolean;
}

/** What an erasure did, and whether it must be repeated. */
function Erased({ result, email, again, busy }: ErasedProps) {
  const done = `${plural(result.messages, "message")}, ${plural(result.events, "event")} and ${plural(result.attachments, "attachment")}`;
  const repeat = (
    <Button small onClick={() => again(email)} busy={busy}>
      {result.complete ? "Repeat" : "Continue"}
    </Button>
  );
  if (!result.complete) {
    return (
      <Notice kind="warning" action={repeat}>
        {done} of {email} erased so far. There is more: continue.
      </Notice>
    );
  }
  if (result.pending > 0) {
    return (
      <Notice kind="warning" action={repeat}>
        {done} of {email} erased. {plural(result.pending, "message is", "messages are")} still being sent and left as they are: repeat this when they
        are finished.
      </Notice>
    );
  }
  const nothing = result.messages + result.events + result.attachments === 0;
  return <Notice kind="success">{nothing ? `Nothing more is stored of ${email}.` : `${done} of ${email} erased.`}</Notice>;
}
