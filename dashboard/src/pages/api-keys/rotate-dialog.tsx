import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import type { ApiKey } from "waypost";
import { waypost } from "@/api";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { Field, Form, FormActions, Select, Submit } from "@/ui/form";
import { GRACE_OPTIONS } from "@/ui/grace";
import { keysChanged } from "./key";
import { SecretDialog } from "./secret-dialog";

export function RotateDialog({ apiKey, onClose }: { apiKey: ApiKey; onClose(): void }) {
  const [grace, setGrace] = useState("86400");
  const rotate = useMutation({
    mutationFn: () => waypost.apiKeys.rotate(apiKey.id, { gracePeriodSeconds: Number(grace) }),
    onSuccess: keysChanged,
  });
  if (rotate.data) return <SecretDialog title="The new secret" created={rotate.data} onClose={onClose} />;
  return (
    <Dialog
      open
      onClose={onClose}
      title={`Rotate “${apiKey.name}”`}
      description="The key gets a new secret, and keeps its name, permissions and addresses."
    >
      <Form error={rotate.error} onSubmit={() => rotate.mutate()}>
        <Field label="The old secret works" path="gracePeriodSeconds" hint="Put the new one in place during this time.">
          {(control) => <Select {...control} options={GRACE_OPTIONS} value={grace} onChange={(event) => setGrace(event.target.value)} />}
        </Field>
        <FormActions>
          <Submit busy={rotate.isPending}>Rotate the key</Submit>
          <Button onClick={onClose}>Cancel</Button>
        </FormActions>
      </Form>
    </Dialog>
  );
}
