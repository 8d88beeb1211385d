import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { toast } from "sonner";
import { waypost } from "@/api";
import { useGroupOptions } from "@/pages/unsubscribe-groups/groups";
import { Dialog } from "@/ui/dialog";
import { Field, Form, FormActions, Input, Select, Submit } from "@/ui/form";
import { type Source, SOURCES, meaning } from "./meaning";
import { suppressionsChanged } from "./queries";

export function AddDialog({ email: given, onClose }: { email: string | undefined; onClose(): void }) {
  const [email, setEmail] = useState(given ?? "");
  const [group, setGroup] = useState("");
  const [source, setSource] = useState<Source>("MANUAL");
  const groups = useGroupOptions("All messages");
  const add = useMutation({
    mutationFn: () => waypost.suppressions.create({ email: email.trim(), source, ...(group && { unsubscribeGroupId: group }) }),
    onSuccess: async () => {
      toast.success(`${email.trim()} is suppressed`);
      await suppressionsChanged();
      onClose();
    },
  });
  return (
    <Dialog
      open
      onClose={onClose}
      title="Suppress an address"
      description="From now on nothing is sent to it, not even what was accepted before."
    >
      <Form error={add.error} onSubmit={() => add.mutate()}>
        <Field label="Address" path="email" hint="Only a hash of the address is stored.">
          {(control) => (
            <Input {...control} type="email" autoFocus autoComplete="off" value={email} onChange={(event) => setEmail(event.target.value)} />
          )}
        </Field>
        <Field label="Applies to" path="unsubscribeGroupId">
          {(control) => <Select {...control} options={groups} value={group} onChange={(event) => setGroup(event.target.value)} />}
        </Field>
        <Field label="Source" path="source" hint="Why the address gets no mail, as lists show it.">
          {(control) => (
            <Select
              {...control}
              options={SOURCES.map((one) => [one, meaning(one).label] as const)}
              value={source}
              onChange={(event) => setSource(event.target.value as Source)}
            />
          )}
        </Field>
        <FormActions>
          <Submit busy={add.isPending}>Suppress the address</Submit>
        </FormActions>
      </Form>
    </Dialog>
  );
}
