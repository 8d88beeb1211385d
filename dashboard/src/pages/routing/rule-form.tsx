import { useMutation } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { toast } from "sonner";
import type { ProviderAccount, RoutingRule } from "waypost";
import { queries } from "@/api";
import { useMay } from "@/session";
import { buttonClass } from "@/ui/button";
import { Field, Form, FormActions, Input, Submit, Switch } from "@/ui/form";
import { Card } from "@/ui/page";
import { Conditions } from "./conditions";
import { type Draft, draftOf, saveRule } from "./draft";
import { placeOf } from "./order";
import { Sending } from "./sending";
import { Try } from "./simulation";
import { ON_UNKNOWN } from "./words";

interface Props {
  /** The rule to change; none for a new one. */
  rule?: RoutingRule;
  rules: readonly RoutingRule[];
  accounts: readonly ProviderAccount[];
  onSaved(): void;
}

export function RuleForm(props: Props) {
  const { rule, accounts, onSaved } = props;
  const may = useMay();
  const [draft, setDraft] = useState(() => draftOf(rule, props.rules, accounts));
  const change = (part: Partial<Draft>) => setDraft((before) => ({ ...before, ...part }));
  const saving = useMutation({
    mutationFn: () => saveRule(draft, rule),
    onSuccess: async (saved) => {
      await queries.invalidateQueries({ queryKey: ["routing-rules"] });
      toast.success(rule ? `${saved.name} was saved. It counts at once.` : `${saved.name} was added`);
      onSaved();
    },
  });
  const part = { draft, change };
  return (
    <Form error={saving.error} onSubmit={() => saving.mutate()} label={rule ? `Rule ${rule.name}` : "New rule"}>
      <fieldset disabled={!may("PROVIDERS_WRITE")} className="min-w-0 space-y-5">
        <Card>
          <div className="space-y-5">
            <Field label="Name" path="name">
              {(control) => (
                <Input {...control} value={draft.name} onChange={(event) => change({ name: event.target.value })} placeholder="Receipts" />
              )}
            </Field>
            <Switch
              checked={draft.isActive}
              onChange={(isActive) => change({ isActive })}
              label="In use"
              hint="A rule that is switched off is passed over."
              disabled={!may("PROVIDERS_WRITE")}
            />
          </div>
        </Card>
        <Conditions {...part} error={saving.error} />
        <Sending {...part} accounts={accounts} error={saving.error} />
        <LostAnswer {...part} />
        <Place {...part} rule={rule} rules={props.rules} />
        <Try draft={draft} rule={rule} rules={props.rules} accounts={accounts} />
        {may("PROVIDERS_WRITE") && (
          <FormActions>
            <Submit busy={saving.isPending}>{rule ? "Save" : "Add the rule"}</Submit>
            <Link to="/routing" className={buttonClass("secondary")}>
              Cancel
            </Link>
          </FormActions>
        )}
      </fieldset>
    </Form>
  );
}

interface PartProps {
  draft: Draft;
  change(part: Partial<Draft>): void;
}

function LostAnswer({ draft, change }: PartProps) {
  return (
    <Card
      title="If the provider's answer is lost"
      description="The connection broke after the mail was handed over: nobody knows whether the provider took it."
    >
      <fieldset className="space-y-3">
        <legend className="sr-only">If the provider's answer is lost</legend>
        {ON_UNKNOWN.map(([value, title, text]) => (
          <label key={value} className="flex gap-3">
            <input
              type="radio"
              name="onUnknown"
              value={value}
              checked={draft.onUnknown === value}
              onChange={() => change({ onUnknown: value })}
              className="mt-1 size-4 shrink-0 accent-(--accent)"
            />
            <span>
              <span className="block font-medium">{title}</span>
              <span className="block text-[13px] text-text-2">{text}</span>
            </span>
          </label>
        ))}
      </fieldset>
    </Card>
  );
}

function Place({ draft, change, rule, rules }: PartProps & Pick<Props, "rule" | "rules">) {
  const priority = Number(draft.priority);
  const others = rules.filter((one) => one.id !== rule?.id);
  const place = placeOf(rules, Number.isNaN(priority) ? 0 : priority, rule);
  const before = others[place - 1];
  const text =
    others.length === 0
      ? "It is the only rule."
      : `It is checked ${place === 0 ? "first" : `as number ${place + 1} of ${others.length + 1}`}${before ? `, after “${before.name}”` : ""}.`;
  return (
    <Card title="When it is checked">
      <Field
        label="Priority"
        path="priority"
        hint={<>From 0 to 1,000; higher ones are checked first. {text} You can also drag rules in the list.</>}
      >
        {(control) => (
          <Input {...control} className="max-w-28" inputMode="numeric" value={draft.priority} onChange={(event) => change({ priority: event.target.value })} />
        )}
      </Field>
    </Card>
  );
}
