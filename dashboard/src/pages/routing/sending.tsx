import type { ProviderAccount } from "waypost";
import { Field, Select } from "@/ui/form";
import { Card } from "@/ui/page";
import { Segmented } from "@/ui/segmented";
import { type Draft, draftSenders, fallbacksOf } from "./draft";
import { accountOptions, Fallbacks } from "./fallbacks";
import { RoutePath } from "./path";
import type { Sender } from "./senders";
import { draftShares, newTarget, Targets } from "./targets";
import { REGIONS } from "./words";

interface SendingProps {
  draft: Draft;
  change(part: Partial<Draft>): void;
  accounts: readonly ProviderAccount[];
  /** The error of the last attempt to save. */
  error: unknown;
}

/** The account that sends, or those that share the mail, and the fallbacks. */
export function Sending({ draft, change, accounts, error }: SendingProps) {
  const isActive = (id: string) => accounts.some((account) => account.id === id && account.isActive);
  return (
    <Card title="Which account" description="The fallbacks send if the accounts before them cannot: they are throttled, fail, or their providers refuse all their mail.">
      <div className="space-y-5">
        <Segmented<Draft["form"]>
          label="How many accounts send"
          value={draft.form}
          onChange={(form) => change(form === "one" ? asOne(draft) : asSeveral(draft, accounts))}
          options={[
            ["one", "One account"],
            ["several", "Several share the mail"],
          ]}
        />
        {draft.form === "one" ? (
          <OneAccount draft={draft} change={change} accounts={accounts} />
        ) : (
          <Targets draft={draft} change={change} accounts={accounts} isActive={isActive} error={error} />
        )}
        <Fallbacks accounts={accounts} senders={draftSenders(draft)} chosen={fallbacksOf(draft)} onChange={(fallbacks) => change({ fallbacks })} />
        <Field
          label="Region"
          path="region"
          hint="All accounts of the rule must be in it, and its mail is sent by no account elsewhere."
        >
          {(control) => <Select {...control} value={draft.region} onChange={(event) => change({ region: event.target.value })} options={REGIONS} />}
        </Field>
        <div className="rounded-md bg-sunken px-3 py-2.5">
          <RoutePath senders={sendersOfDraft(draft, isActive)} fallbacks={fallbacksOf(draft)} accounts={accounts} />
        </div>
      </div>
    </Card>
  );
}

function OneAccount({ draft, change, accounts }: Omit<SendingProps, "error">) {
  return (
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
  );
}

/** The first of the accounts sends alone. */
const asOne = (draft: Draft): Partial<Draft> => ({
  form: "one",
  providerAccountId: draft.targets[0]?.providerAccountId ?? draft.providerAccountId,
});

/** The account, and one that is no fallback, share the mail; or the accounts that were chosen before, with the account. */
function asSeveral(draft: Draft, accounts: readonly ProviderAccount[]): Partial<Draft> {
  const { providerAccountId: first, targets } = draft;
  if (targets.length > 0) {
    const kept = targets.some((target) => target.providerAccountId === first) ? targets : [newTarget(first), ...targets.slice(1)];
    return { form: "several", targets: kept };
  }
  const others = accounts.filter((account) => account.id !== first && !draft.fallbacks.includes(account.id));
  const second = others.find((account) => account.isActive) ?? others[0];
  return { form: "several", targets: [newTarget(first), ...(second ? [newTarget(second.id)] : [])] };
}

/** The senders with their shares, as far as the weights are numbers. */
function sendersOfDraft(draft: Draft, isActive: (id: string) => boolean): Sender[] {
  if (draft.form === "one") return [{ id: draft.providerAccountId }];
  const shares = draftShares(draft.targets, isActive);
  return draft.targets.map(({ providerAccountId }, at) => ({ id: providerAccountId, share: shares[at]! }));
}
