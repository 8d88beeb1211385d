import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { toast } from "sonner";
import { useGroupOptions } from "@/pages/unsubscribe-groups/groups";
import { Dialog } from "@/ui/dialog";
import { Field, Form, FormActions, Select, Submit } from "@/ui/form";
import { type ExportFilter, exportCsv, exportNdjson } from "./export";
import { type Source, SOURCES, meaning } from "./meaning";

const FORMATS = [
  ["csv", "CSV"],
  ["ndjson", "NDJSON: one JSON object a line"],
] as const;

export function ExportDialog({ filter, onClose }: { filter: ExportFilter; onClose(): void }) {
  const [format, setFormat] = useState("csv");
  const [source, setSource] = useState<string>(filter.source ?? "");
  const [group, setGroup] = useState(filter.groupId ?? "");
  const groups = useGroupOptions("All suppressions");
  const run = useMutation({
    mutationFn: () => {
      const chosen: ExportFilter = {
        ...(source && { source: source as Source }),
        ...(group && { groupId: group }),
      };
      return format === "csv" ? exportCsv(chosen) : exportNdjson(chosen);
    },
    onSuccess: () => {
      toast.success("The suppressions were exported");
      onClose();
    },
  });
  return (
    <Dialog
      open
      onClose={onClose}
      title="Export suppressions"
      description="The file holds hashes and no addresses. A CSV file can be imported again; its group is chosen at the import, so export each group by itself for that."
    >
      <Form error={run.error} onSubmit={() => run.mutate()}>
        <Field label="Format">
          {(control) => <Select {...control} options={FORMATS} value={format} onChange={(event) => setFormat(event.target.value)} />}
        </Field>
        <Field label="Source" path="source">
          {(control) => (
            <Select
              {...control}
              options={[["", "All sources"], ...SOURCES.map((one) => [one, meaning(one).label] as const)]}
              value={source}
              onChange={(event) => setSource(event.target.value)}
            />
          )}
        </Field>
        <Field label="Unsubscribe group" path="groupId">
          {(control) => <Select {...control} options={groups} value={group} onChange={(event) => setGroup(event.target.value)} />}
        </Field>
        <FormActions>
          <Submit busy={run.isPending}>Download</Submit>
        </FormActions>
      </Form>
    </Dialog>
  );
}
