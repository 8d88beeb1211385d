import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import type { WebhookEndpoint } from "waypost";
import { waypost } from "@/api";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { Field, Form, FormActions, Select, Submit } from "@/ui/form";
import { GRACE_OPTIONS } from "@/ui/grace";
import { endpointsChanged } from "./queries";
import { SecretDialog } from "./secret-dialog";

export function RotateDialog({ endpoint, onClose }: { endpoint: WebhookEndpoint; onClose(): void }) {
  const [grace, setGrace] = useState("86400");
  const rotate = useMutation({
    mutationFn: () => waypost.webhookEndpoints.rotateSecret(endpoint.id, { gracePeriodSeconds: Number(grace) }),
    onSuccess: endpointsChanged,
  });
  if (rotate.data) return <SecretDialog title="The new secret" endpoint={rotate.data} onClose={onClose} />;
  return (
    <Dialog
      open
      onClose={onClose}
      title="Rotate the secret"
      description="The endpoint gets a new signing secret. Until the old one ends, deliveries are signed with both."
    >
      <Form error={rotate.error} onSubmit={() => rotate.mutate()}>
        <Field label="The old secret signs" path="gracePeriodSeconds" hint="Give your server both secrets during this time.">
          {(control) => <Select {...control} options={GRACE_OPTIONS} value={grace} onChange={(event) => setGrace(event.target.value)} />}
        </Field>
        <FormActions>
          <Submit busy={rotate.isPending}>Rotate the secret</Submit>
          <Button onClick={onClose}>Cancel</Button>
        </FormActions>
      </Form>
    </Dialog>
  );
}
