import { useMutation } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { toast } from "sonner";
import type { CreateRoutingRuleRequest, ProviderAccount, RoutingRule } from "waypost";
import { queries, waypost } from "@/api";
import { useMay } from "@/session";
import { buttonClass } from "@/ui/button";
import { Field, Form, FormActions, Input, Select, Submit, Switch } from "@/ui/form";
import { Card } from "@/ui/page";
import { accountOptions, Fallbacks } from "./fallbacks";
import { lastPriority, placeOf } from "./order";
import { RoutePath } from "./path";
import { tagList } from "./where";
import { conditionText, ON_UNKNOWN } from "./words";

interface Props {
  /** The rule to change; none for a new one. */
  rule?: RoutingRule;
  rules: readonly RoutingRule[];
  accounts: readonly ProviderAccount[];
  onSaved(): void;
}

interface Draft {
  name: string;
  isActive: boolean;
  senderDomain: string;
  tags: string;
  tagMatch: string;
  providerAccountId: string;
  fallbacks: readonly string[];
  onUnknown: string;
  priority: string;
}

const draftOf = (rule: RoutingRule | undefined, { rules, accounts }: Props): Draft => ({
  name: rule?.name ?? "",
  isActive: rule?.isActive ?? true,
  senderDomain: rule?.senderDomain ?? "",
  tags: rule?.tags.join(", ") ?? "",
  tagMatch: rule?.tagMatch ?? "any",
  providerAccountId: rule?.providerAccountId ?? accounts.find((account) => account.isActive)?.id ?? accounts[0]?.id ?? "",
  fallbacks: rule?.fallbackProviderAccountIds ?? [],
  onUnknown: rule?.onUnknown ?? "wait",
  priority: String(rule?.priority ?? lastPriority(rules)),
});

/** What the API takes. A priority that is no number goes as it was typed, so that the API names the mistake. */
function requestOf(draft: Draft): Omit<CreateRoutingRuleRequest, "senderDomain"> {
  const priority = /^\d+$/.test(draft.priority.trim()) ? Number(draft.priority) : (draft.priority as unknown as number);
  return {
    name: draft.name.trim(),
    isActive: draft.isActive,
    tags: tagList(draft.tags),
    tagMatch: draft.tagMatch,
    providerAccountId: draft.providerAccountId,
    fallbackProviderAccountIds: draft.fallbacks,
    onUnknown: draft.onUnknown,
    priority,
  };
}

function save(draft: Draft, rule: RoutingRule | undefined): Promise<RoutingRule> {
  const senderDomain = draft.senderDomain.trim();
  return rule
    ? waypost.routingRules.update(rule.id, { ...requestOf(draft), senderDomain: senderDomain || null })
    : waypost.routingRules.create({ ...requestOf(draft), senderDomain: senderDomain || undefined });
}

export function RuleForm(props: Props) {
  const { rule, accounts, onSaved } = props;
  const may = useMay();
  const [draft, setDraft] = useState(() => draftOf(rule, props));
  const change = (part: Partial<Draft>) => setDraft((before) => ({ ...before, ...part }));
  const saving = useMutation({
    mutationFn: () => save(draft, rule),
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
        <Conditions {...part} />
        <Sending {...part} accounts={accounts} />
        <LostAnswer {...part} />
        <Place {...part} rule={rule} rules={props.rules} />
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

function Conditions({ draft, change }: PartProps) {
  const tags = tagList(draft.tags);
  const text = conditionText({ senderDomain: draft.senderDomain.trim() || null, tags, tagMatch: draft.tagMatch });
  return (
    <Card title="Which mail" description="Mail must meet all conditions. An empty one is met by all mail.">
      <div className="space-y-5">
        <Field label="Sender's domain" path="senderDomain" aside="optional" hint="example.com, or *.example.com for its subdomains, but not the domain itself.">
          {(control) => (
            <Input
              {...control}
              value={draft.senderDomain}
              onChange={(event) => change({ senderDomain: event.target.value })}
              placeholder="example.com"
              spellCheck={false}
              autoCapitalize="none"
            />
          )}
        </Field>
        <div className="grid gap-5 sm:grid-cols-[minmax(0,1fr)_12rem]">
          <Field label="Tags" path="tags" aside="optional" hint="Up to 10, separated by commas. Your program gives tags to its messages.">
            {(control) => <Input {...control} value={draft.tags} onChange={(event) => change({ tags: event.target.value })} placeholder="receipts, invoices" />}
          </Field>
          {tags.length > 1 && (
            <Field label="A message must have" path="tagMatch">
              {(control) => (
                <Select
                  {...control}
                  value={draft.tagMatch}
                  onChange={(event) => change({ tagMatch: event.target.value })}
                  options={[
                    ["any", "any of them"],
                    ["all", "all of them"],
                  ]}
                />
              )}
            </Field>
          )}
        </div>
        <Summary>{text}</Summary>
      </div>
    </Card>
  );
}

const Summary = ({ children }: { children: ReactNode }) => (
  <div className="rounded-md bg-sunken px-3 py-2 text-[13px] break-words text-text-2" aria-live="polite">
    {children}
  </div>
);

function Sending({ draft, change, accounts }: PartProps & { accounts: readonly ProviderAccount[] }) {
  return (
    <Card title="Which account" description="The fallbacks send if the account before them cannot: it is throttled, fails, or its provider refuses all its mail.">
      <div className="space-y-5">
        <Field label="Account" path="providerAccountId">
          {(control) => (
            <Select
              {...control}
              value={draft.providerAccountId}
              onChange={(event) =>
                change({
                  providerAccountId: event.target.value,
                  // A fallback that becomes the account changes places with it.
                  fallbacks: draft.fallbacks.map((id) => (id === event.target.value ? draft.providerAccountId : id)),
                })
              }
              options={accountOptions(accounts)}
            />
          )}
        </Field>
        <Fallbacks
          accounts={accounts}
          first={draft.providerAccountId}
          chosen={draft.fallbacks}
          onChange={(fallbacks) => change({ fallbacks })}
        />
        <div className="rounded-md bg-sunken px-3 py-2.5">
          <RoutePath ids={[draft.providerAccountId, ...draft.fallbacks]} accounts={accounts} />
        </div>
      </div>
    </Card>
  );
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
