import { useState } from "react";
import type { Settings } from "waypost";
import { plural } from "@/format";
import { Confirm } from "@/ui/dialog";
import { Field, hasIssues, Input, Switch } from "@/ui/form";
import { wholeNumber } from "./numbers";
import { Section } from "./section";
import { useSaveSettings } from "./settings";

/** How long messages are stored. */
export function RetentionSection({ settings }: { settings: Settings }) {
  const before = settings.retentionDays;
  const [own, setOwn] = useState(before !== null);
  const [days, setDays] = useState(String(before ?? 90));
  const save = useSaveSettings(() => ({ retentionDays: own ? wholeNumber("retentionDays", days) : null }));
  const changed = own !== (before !== null) || (own && days !== String(before));
  const isShorter = own && Number(days) > 0 && (before === null || Number(days) < before);
  const run = async () => {
    try {
      await save.mutateAsync();
    } catch (error) {
      // An issue stands at its field: the question closes.
      if (!hasIssues(error)) throw error;
    }
  };
  return (
    <Confirm
      title={`Delete messages after ${plural(Number(days), "day")}?`}
      action="Save and delete older messages"
      run={run}
      trigger={(ask) => (
        <Section
          title="Retention"
          description="How long messages are stored, with their recipients, events, attempts and webhook deliveries."
          changed={changed}
          save={save}
          ask={isShorter ? ask : undefined}
          note="Metrics and the audit log are not deleted."
        >
          <Switch
            label="Delete messages earlier than the operator does"
            hint="Without it, the retention period of the whole installation applies. If that is shorter than yours, it applies too."
            checked={own}
            onChange={setOwn}
          />
          {own && (
            <Field label="Days" path="retentionDays" hint="From 1 to 36,500.">
              {(control) => (
                <Input {...control} inputMode="numeric" className="sm:w-40" value={days} onChange={(event) => setDays(event.target.value)} />
              )}
            </Field>
          )}
        </Section>
      )}
    >
      Messages that are older are deleted within minutes, for good. Whole months are deleted at once, when their last day is old enough.
    </Confirm>
  );
}
