import { useMutation } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { toast } from "sonner";
import type { TemplateType } from "waypost";
import { waypost } from "@/api";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { Field, Form, FormActions, Input, Select, Submit } from "@/ui/form";
import { refreshTemplates } from "./queries";
import { TYPES, typeName } from "./words";

/** Makes a template without a version, and opens its editor. */
export function NewTemplate({ onClose }: { onClose(): void }) {
  const [name, setName] = useState("");
  const [type, setType] = useState<TemplateType>("TEMPLATE");
  const [description, setDescription] = useState("");
  const navigate = useNavigate();
  const create = useMutation({
    mutationFn: () => waypost.templates.create({ name: name.trim(), type, description: description.trim() || undefined }),
    onSuccess: async (template) => {
      toast.success(`${typeName(template.type)} created`);
      void refreshTemplates();
      await navigate({ to: "/templates/$id", params: { id: template.id } });
    },
  });
  const meaning = TYPES.find(([one]) => one === type)?.[2];
  return (
    <Dialog open onClose={onClose} title="New template" description="You write its content in the next step.">
      <Form onSubmit={() => create.mutate()} error={create.error} label="New template">
        <Field label="Type" path="type" hint={meaning}>
          {(control) => (
            <Select {...control} value={type} onChange={(event) => setType(event.target.value)} options={TYPES.map(([value, label]) => [value, label])} />
          )}
        </Field>
        <Field
          label="Name"
          path="name"
          hint={type === "PARTIAL" ? `Sources include it as {{> ${name.trim() || "name"}}}. Letters, digits, - and _.` : undefined}
        >
          {(control) => <Input {...control} value={name} onChange={(event) => setName(event.target.value)} autoFocus />}
        </Field>
        <Field label="Description" path="description" aside="optional">
          {(control) => <Input {...control} value={description} onChange={(event) => setDescription(event.target.value)} />}
        </Field>
        <FormActions>
          <Submit busy={create.isPending}>Create</Submit>
          <Button onClick={onClose}>Cancel</Button>
        </FormActions>
      </Form>
    </Dialog>
  );
}
