import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { toast } from "sonner";
import type { WebhookEndpoint, WebhookEndpointWithSecret, WebhookEventType } from "waypost";
import { waypost } from "@/api";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { Field, Form, FormActions, Input, Submit } from "@/ui/form";
import { EventPicker } from "./event-picker";
import { endpointsChanged } from "./queries";

interface DialogProps {
  /** The endpoint to change; none to make one. */
  endpoint?: WebhookEndpoint;
  onClose(): void;
  onCreated?(created: WebhookEndpointWithSecret): void;
}

/** What most receivers want: what becomes of each message. */
const USUAL: readonly string[] = ["DELIVERED", "BOUNCED", "COMPLAINED", "UNSUBSCRIBED", "DROPPED"];

export function EndpointDialog({ endpoint, onClose, onCreated }: DialogProps) {
  const [url, setUrl] = useState(endpoint?.url ?? "");
  const [events, setEvents] = useState<ReadonlySet<string>>(new Set(endpoint?.events ?? USUAL));
  const [tags, setTags] = useState(endpoint?.tags.join(", ") ?? "");
  const save = useMutation({
    mutationFn: async () => {
      const request = { url: url.trim(), events: [...events] as WebhookEventType[], tags: tags.split(",").map((tag) => tag.trim()).filter(Boolean) };
      if (!endpoint) return onCreated?.(await waypost.webhookEndpoints.create(request));
      // A URL that stays is not called again.
      const { url: wanted, ...rest } = request;
      await waypost.webhookEndpoints.update(endpoint.id, wanted === endpoint.url ? rest : request);
      toast.success("The endpoint was changed");
      onClose();
    },
    onSuccess: endpointsChanged,
  });
  return (
    <Dialog
      open
      onClose={onClose}
      wide
      title={endpoint ? "Edit the endpoint" : "Add a webhook endpoint"}
      description={endpoint ? undefined : "Waypost posts events to this URL as they happen, signed with a secret that you get in the next step."}
    >
      <Form error={save.error} onSubmit={() => save.mutate()}>
        <Field
          label="URL"
          path="url"
          hint="It is called once now and must answer within 5 seconds, with any status. So your server must already run."
        >
          {(control) => (
            <Input
              {...control}
              type="url"
              autoFocus={!endpoint}
              autoComplete="off"
              placeholder="https://shop.example.com/webhooks"
              value={url}
              onChange={(event) => setUrl(event.target.value)}
            />
          )}
        </Field>
        <EventPicker chosen={events} onChange={setEvents} />
        <Field
          label="Tags"
          path="tags"
          aside="optional"
          hint="With tags, events of messages come only for messages that have one of them. Separate tags with commas."
        >
          {(control) => <Input {...control} placeholder="receipts, invoices" value={tags} onChange={(event) => setTags(event.target.value)} />}
        </Field>
        <FormActions>
          <Submit busy={save.isPending}>{endpoint ? "Save" : "Add the endpoint"}</Submit>
          <Button onClick={onClose}>Cancel</Button>
        </FormActions>
      </Form>
    </Dialog>
  );
}
