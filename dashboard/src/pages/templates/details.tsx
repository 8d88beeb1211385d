import { useMutation } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { toast } from "sonner";
import type { TemplateDetail } from "waypost";
import { waypost } from "@/api";
import { useMay } from "@/session";
import { Button } from "@/ui/button";
import { Copyable } from "@/ui/copy";
import { Confirm } from "@/ui/dialog";
import { Facts } from "@/ui/facts";
import { Field, Form, FormActions, Input, Submit, Textarea } from "@/ui/form";
import { Card } from "@/ui/page";
import { Time } from "@/ui/time";
import { refreshTemplates } from "./queries";
import { typeName } from "./words";

export function Details({ template }: { template: TemplateDetail }) {
  const canWrite = useMay()("TEMPLATES_WRITE");
  return (
    <div className="space-y-5">
      <Card title="About it">
        <Facts
          facts={[
            ["Id", <Copyable key="id" text={template.id} label="Copy the id" />],
            ["Type", typeName(template.type)],
            !canWrite && ["Tags", template.tags.join(", ") || "–"],
            ["Created", <Time key="created" at={template.createdAt} />],
            ["Changed", <Time key="updated" at={template.updatedAt} />],
          ]}
        />
      </Card>
      {canWrite && (
        <>
          <Card title="Name and tags">
            <Change template={template} />
          </Card>
          <Remove template={template} />
        </>
      )}
    </div>
  );
}

/** Words between commas. */
const words = (text: string): string[] => text.split(",").map((word) => word.trim()).filter(Boolean);

function Change({ template }: { template: TemplateDetail }) {
  const [name, setName] = useState(template.name);
  const [description, setDescription] = useState(template.description ?? "");
  const [tags, setTags] = useState(template.tags.join(", "));
  const change = useMutation({
    mutationFn: () =>
      waypost.templates.update(template.id, { name: name.trim(), description: description.trim() || null, tags: words(tags) }),
    onSuccess: async () => {
      toast.success("Saved");
      await refreshTemplates();
    },
  });
  return (
    <Form onSubmit={() => change.mutate()} error={change.error} label="Name and tags" className="max-w-xl">
      <Field label="Name" path="name" hint={template.type === "PARTIAL" ? "A partial that is used keeps its name." : undefined}>
        {(control) => <Input {...control} value={name} onChange={(event) => setName(event.target.value)} />}
      </Field>
      <Field label="Description" path="description" aside="optional">
        {(control) => <Textarea {...control} rows={2} value={description} onChange={(event) => setDescription(event.target.value)} />}
      </Field>
      <Field label="Tags" path="tags" aside="optional" hint="To find it in the list. Put commas between them.">
        {(control) => <Input {...control} value={tags} onChange={(event) => setTags(event.target.value)} />}
      </Field>
      <FormActions>
        <Submit busy={change.isPending}>Save</Submit>
      </FormActions>
    </Form>
  );
}

function Remove({ template }: { template: TemplateDetail }) {
  const navigate = useNavigate();
  const what = typeName(template.type).toLowerCase();
  const run = async () => {
    await waypost.templates.delete(template.id);
    toast.success(`“${template.name}” is removed`);
    await navigate({ to: "/templates", ignoreBlocker: true });
    await refreshTemplates();
  };
  return (
    <Card
      title={`Remove this ${what}`}
      description="All of its versions go with it. Messages that were accepted are still sent."
      actions={
        <Confirm
          trigger={(open) => (
            <Button kind="danger" small onClick={open}>
              Remove
            </Button>
          )}
          title={`Remove “${template.name}”?`}
          action={`Remove the ${what}`}
          run={run}
        >
          All versions in all languages are removed, for good. Sends with this id are refused from then on. Messages that were accepted before are sent as they are.
        </Confirm>
      }
    />
  );
}
