import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { count, plural } from "@/format";
import { useGroupOptions } from "@/pages/unsubscribe-groups/groups";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { Field, Form, FormActions, Select, Submit } from "@/ui/form";
import { TextSource } from "@/ui/text-source";
import { type AddressList, readList } from "./addresses";
import { type ImportReport, importList, joined } from "./import";
import { ImportReportView } from "./import-report";
import { suppressionsChanged } from "./queries";

/** The import of a CSV file or a list, with a report of what was added, skipped and wrong. */
export function ImportDialog({ onClose }: { onClose(): void }) {
  const [text, setText] = useState("");
  const [group, setGroup] = useState("");
  const [report, setReport] = useState<ImportReport>();
  const [done, setDone] = useState(0);
  const groups = useGroupOptions("All messages");
  const list = readList(text);
  const run = useMutation({
    mutationFn: ({ part, leaveOut }: { part: AddressList; leaveOut: boolean }) =>
      importList(part, { groupId: group || undefined, leaveOut, onProgress: setDone }),
    onSuccess: (result) => setReport((before) => (before ? joined(before, result) : result)),
    onSettled: suppressionsChanged,
  });
  const rows = run.variables?.part.rows.length ?? 0;
  const again = () => {
    setReport(undefined);
    run.reset();
  };
  return (
    <Dialog open onClose={onClose} wide title="Import suppressions" description="The addresses of a file or a list get no mail from now on.">
      {report ? (
        <ImportReportView report={report} busy={run.isPending} error={run.error} onAgain={again} onClose={onClose}>
          <Button
            kind="primary"
            busy={run.isPending}
            onClick={() => run.mutate({ part: { header: list.header, rows: report.rest }, leaveOut: true })}
          >
            Leave {report.wrong.length === 1 ? "this row" : "these rows"} out and import {plural(report.rest.length, "row")}
          </Button>
        </ImportReportView>
      ) : (
        <Form error={run.error} onSubmit={() => run.mutate({ part: list, leaveOut: false })}>
          <TextSource
            label="CSV file or list of addresses"
            hint="One address a line, or a CSV file whose first row names the columns: email (or emailHash), and if you like source and createdAt."
            placeholder={"email,source,createdAt\nada@example.org,BOUNCE,2026-02-01T10:00:00Z\nbob@example.org,,"}
            text={text}
            onText={setText}
          />
          <Field label="Applies to" path="unsubscribeGroupId">
            {(control) => <Select {...control} options={groups} value={group} onChange={(event) => setGroup(event.target.value)} />}
          </Field>
          <FormActions>
            <Submit busy={run.isPending} disabled={list.rows.length === 0}>
              {list.rows.length === 0 ? "Import" : `Import ${plural(list.rows.length, "row")}`}
            </Submit>
            <span aria-live="polite" className="tabular text-[13px] text-text-3">
              {run.isPending && done > 0 && `${count(done)} of ${count(rows)}`}
            </span>
          </FormActions>
        </Form>
      )}
    </Dialog>
  );
}
