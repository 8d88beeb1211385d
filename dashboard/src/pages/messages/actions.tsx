import { useMutation } from "@tanstack/react-query";
import { CalendarClock, RotateCcw, SendHorizontal, X } from "lucide-react";
import { useState } from "react";
import { toast } from "sonner";
import type { MessageDetail, RecipientDetail } from "waypost";
import { queries, waypost } from "@/api";
import { exactTime, plural } from "@/format";
import { useMay } from "@/session";
import { Button } from "@/ui/button";
import { Confirm, Dialog } from "@/ui/dialog";
import { Field, Form, FormActions, Input, Submit } from "@/ui/form";
import { messageQuery } from "./data";

/** After a change the message, its recipients and the lists are loaded anew. */
async function changed(message?: MessageDetail): Promise<void> {
  if (message) queries.setQueryData(messageQuery(message.id).queryKey, message);
  await queries.invalidateQueries({ queryKey: ["messages"], predicate: ({ queryKey }) => queryKey[1] !== "content" });
}

/** What can still be done with the message. */
export function Actions({ message, recipients }: { message: MessageDetail; recipients: readonly RecipientDetail[] }) {
  const may = useMay();
  if (!may("SEND")) return null;
  const has = (status: string) => message.status === status || recipients.some((one) => one.status === status);
  const isScheduled = message.status === "QUEUED" && message.scheduledAt !== null && new Date(message.scheduledAt) > new Date();
  return (
    <>
      {isScheduled && <Reschedule message={message} />}
      {isScheduled && <SendNow message={message} />}
      {has("QUEUED") && <Cancel message={message} />}
      {has("FAILED") && <Retry message={message} />}
    </>
  );
}

function Retry({ message }: { message: MessageDetail }) {
  return (
    <Confirm
      trigger={(open) => (
        <Button kind="primary" onClick={open}>
          <RotateCcw aria-hidden />
          Retry
        </Button>
      )}
      title="Send again to those who failed?"
      action="Retry"
      danger={false}
      run={async () => {
        await changed(await waypost.messages.retry(message.id));
        toast.success("Queued again");
      }}
    >
      The recipients with the status Failed are queued again, with all tries. Nobody who has the mail gets it twice. Addresses that are suppressed now are left out.
    </Confirm>
  );
}

function Cancel({ message }: { message: MessageDetail }) {
  return (
    <Confirm
      trigger={(open) => (
        <Button onClick={open}>
          <X aria-hidden />
          Cancel sending
        </Button>
      )}
      title={`Cancel “${message.subject}”?`}
      action="Cancel the message"
      run={async () => {
        const { cancelledCount } = await waypost.messages.cancel(message.id);
        await changed();
        toast.success(`Cancelled for ${plural(cancelledCount, "recipient")}`);
      }}
    >
      Nothing is sent to the recipients who still wait. What was sent, or is just being sent, stays as it is.
    </Confirm>
  );
}

function SendNow({ message }: { message: MessageDetail }) {
  return (
    <Confirm
      trigger={(open) => (
        <Button onClick={open}>
          <SendHorizontal aria-hidden />
          Send now
        </Button>
      )}
      title="Send it now?"
      action="Send now"
      danger={false}
      run={async () => {
        await changed(await waypost.messages.update(message.id, { scheduledAt: null }));
        toast.success("The message goes now");
      }}
    >
      The message is scheduled for {exactTime(message.scheduledAt!)}. It goes to {plural(message.recipientCount, "recipient")} at once instead.
    </Confirm>
  );
}

function Reschedule({ message }: { message: MessageDetail }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <Button onClick={() => setOpen(true)}>
        <CalendarClock aria-hidden />
        Move
      </Button>
      <Dialog open={open} onClose={() => setOpen(false)} title="Move to another time" description="The message must not have begun to be sent.">
        <RescheduleForm message={message} onDone={() => setOpen(false)} />
      </Dialog>
    </>
  );
}

function RescheduleForm({ message, onDone }: { message: MessageDetail; onDone(): void }) {
  const [at, setAt] = useState(() => localMinute(message.scheduledAt ?? new Date().toISOString()));
  const move = useMutation({
    mutationFn: () => waypost.messages.update(message.id, { scheduledAt: new Date(at) }),
    onSuccess: async (moved) => {
      await changed(moved);
      toast.success(`Moved to ${exactTime(moved.scheduledAt ?? at)}`);
      onDone();
    },
  });
  return (
    <Form onSubmit={() => move.mutate()} error={move.error} label="Move to another time">
      <Field label="Goes at" path="scheduledAt" hint={`In your time zone, ${Intl.DateTimeFormat().resolvedOptions().timeZone}. Up to a year ahead.`}>
        {(control) => <Input {...control} type="datetime-local" value={at} onChange={(event) => setAt(event.target.value)} required />}
      </Field>
      <FormActions>
        <Submit busy={move.isPending} disabled={!at}>
          Move
        </Submit>
        <Button onClick={onDone}>Leave it</Button>
      </FormActions>
    </Form>
  );
}

/** A time as `<input type=datetime-local>` takes it, in this browser's zone. */
function localMinute(iso: string): string {
  const time = new Date(iso);
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
