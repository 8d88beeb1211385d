import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { waypost } from "@/api";
import { count, plural } from "@/format";
import { useGroupOptions } from "@/pages/unsubscribe-groups/groups";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { Figures } from "@/ui/figures";
import { Field, Form, FormActions, Select } from "@/ui/form";
import { Notice } from "@/ui/page";
import { TextSource } from "@/ui/text-source";
import { addressesOf } from "./addresses";
import { suppressionsChanged } from "./queries";

/** What one request takes. */
const PART = 10_000;

async function removeAll(emails: readonly string[], groupId: string | undefined) {
  const sum = { removed: 0, notFound: 0 };
  for (let at = 0; at < emails.length; at += PART) {
    const part = emails.slice(at, at + PART);
    const result = await waypost.suppressions.remove({ emails: part, ...(groupId && { unsubscribeGroupId: groupId }) });
    sum.removed += result.removed;
    sum.notFound += result.notFound;
  }
  return sum;
}

/** Removes the suppressions of a list of addresses. */
export function RemoveDialog({ onClose }: { onClose(): void }) {
  const [text, setText] = useState("");
  const [group, setGroup] = useState("");
  const groups = useGroupOptions("All messages");
  // A file may begin with the name of its column.
  const emails = addressesOf(text)
    .map((row) => row.text)
    .filter((one, at) => at > 0 || one.toLowerCase() !== "email");
  const remove = useMutation({
    mutationFn: () => removeAll(emails, group || undefined),
    onSettled: suppressionsChanged,
  });
  return (
    <Dialog
      open
      onClose={onClose}
      wide
      title="Remove a list of suppressions"
      description="Messages can be sent to these addresses again. Write to people who unsubscribed or complained only if they asked for it."
    >
      {remove.data ? (
        <div className="space-y-4">
          <Notice kind="success">{plural(remove.data.removed, "suppression was", "suppressions were")} removed.</Notice>
          <Figures
            figures={[
              ["Removed", count(remove.data.removed)],
              ["Not found", count(remove.data.notFound), "not suppressed, or repeated"],
              ["In the list", count(emails.length)],
            ]}
          />
          <Button kind="primary" onClick={onClose}>
            Done
          </Button>
        </div>
      ) : (
        <Form error={remove.error} onSubmit={() => remove.mutate()}>
          <TextSource
            path="emails"
            label="Addresses"
            hint="One address a line, or with commas between."
            placeholder={"ada@example.org\nbob@example.org"}
            text={text}
            onText={setText}
          />
          <Field label="Which suppressions" path="unsubscribeGroupId" hint="Suppressions in other groups stay.">
            {(control) => <Select {...control} options={groups} value={group} onChange={(event) => setGroup(event.target.value)} />}
          </Field>
          <FormActions>
            <Button kind="danger" type="submit" busy={remove.isPending} disabled={emails.length === 0}>
              {emails.length === 0 ? "Remove" : `Remove the suppressions of ${plural(emails.length, "address", "addresses")}`}
            </Button>
            <Button onClick={onClose}>Cancel</Button>
          </FormActions>
        </Form>
      )}
    </Dialog>
  );
}
