import { useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { toast } from "sonner";
import type { ProviderAccount, ProviderCredentials } from "waypost";
import { waypost } from "@/api";
import { providerName } from "@/format";
import { isNamed, senderIds } from "@/pages/routing/senders";
import { Button } from "@/ui/button";
import { Confirm } from "@/ui/dialog";
import { Field, Form, FormActions, Input, Submit } from "@/ui/form";
import { Card } from "@/ui/page";
import { CredentialFields } from "./credentials-form";
import { CREDENTIAL_STEPS, Steps } from "./guides";
import { credentialsOf, emptyCredentials } from "./kinds";
import { isType, type Type } from "./types";
import { accountChanged, rulesQuery } from "./queries";

export function AccountSettings({ account }: { account: ProviderAccount }) {
  return (
    <div className="max-w-3xl space-y-5">
      <NameAndLimits key={`${account.displayName} ${account.maxRatePerSecond} ${account.maxConcurrency}`} account={account} />
      {isType(account.providerType) && <Credentials account={account} type={account.providerType} />}
      <Removal account={account} />
    </div>
  );
}

/** The number of a field: null for an empty one, and what is no number as it was typed, so that the API names the mistake. */
const limit = (text: string): number | null => {
  const trimmed = text.trim();
  return trimmed === "" ? null : Number.isNaN(Number(trimmed)) ? (trimmed as unknown as number) : Number(trimmed);
};

function NameAndLimits({ account }: { account: ProviderAccount }) {
  const [name, setName] = useState(account.displayName);
  const [rate, setRate] = useState(account.maxRatePerSecond?.toString() ?? "");
  const [concurrency, setConcurrency] = useState(account.maxConcurrency?.toString() ?? "");
  const save = useMutation({
    mutationFn: () =>
      waypost.providers.update(account.id, { displayName: name, maxRatePerSecond: limit(rate), maxConcurrency: limit(concurrency) }),
    onSuccess: async () => {
      await accountChanged();
      toast.success("Saved");
    },
  });
  return (
    <Card title="Name and limits">
      <Form error={save.error} onSubmit={() => save.mutate()} label="Name and limits">
        <Field label="Name" path="displayName" hint="Shown on these pages, and in the metrics.">
          {(control) => <Input {...control} value={name} onChange={(event) => setName(event.target.value)} />}
        </Field>
        <div className="grid gap-5 sm:grid-cols-2">
          <Field label="Calls per second" path="maxRatePerSecond" aside="empty: no limit" hint="At most, over all workers. Waypost also slows down when the provider asks for it.">
            {(control) => <Input {...control} value={rate} inputMode="numeric" onChange={(event) => setRate(event.target.value)} />}
          </Field>
          <Field label="Calls at once" path="maxConcurrency" aside="empty: no limit" hint="At most, over all workers. Changes count within a few seconds.">
            {(control) => <Input {...control} value={concurrency} inputMode="numeric" onChange={(event) => setConcurrency(event.target.value)} />}
          </Field>
        </div>
        <FormActions>
          <Submit busy={save.isPending}>Save</Submit>
        </FormActions>
      </Form>
    </Card>
  );
}

function Credentials({ account, type }: { account: ProviderAccount; type: Type }) {
  const [open, setOpen] = useState(false);
  const [values, setValues] = useState(() => emptyCredentials(type));
  const provider = providerName(type);
  const close = () => {
    setOpen(false);
    setValues(emptyCredentials(type));
  };
  const save = useMutation({
    mutationFn: () =>
      waypost.providers.update(account.id, { credentials: credentialsOf(type, values) as unknown as ProviderCredentials }),
    onSuccess: async () => {
      await accountChanged();
      close();
      toast.success(`${provider} accepts the new credentials`);
    },
  });
  return (
    <Card title="Credentials">
      <div className="space-y-5">
        <div className="flex flex-wrap items-center justify-between gap-4">
          <p className="min-w-0 max-w-xl flex-1 basis-64 text-text-2">
            Stored encrypted, and never shown. New ones are checked with {type === "SMTP" ? "the server" : provider} before they replace the old ones.
          </p>
          {!open && <Button onClick={() => setOpen(true)}>Replace credentials</Button>}
        </div>
        {open && (
          <>
            <details className="text-[13px]">
              <summary className="font-medium text-accent-text">Where to get them</summary>
              <div className="mt-3">
                <Steps steps={CREDENTIAL_STEPS[type]} />
              </div>
            </details>
            <Form error={save.error} onSubmit={() => save.mutate()} label="New credentials">
              <CredentialFields type={type} values={values} onChange={setValues} />
              <FormActions>
                <Submit busy={save.isPending}>Check and replace</Submit>
                <Button onClick={close}>Cancel</Button>
              </FormActions>
            </Form>
          </>
        )}
      </div>
    </Card>
  );
}

function Removal({ account }: { account: ProviderAccount }) {
  const navigate = useNavigate();
  const rules = useQuery(rulesQuery).data?.filter((rule) => isNamed(rule, account.id)) ?? [];
  const orphans = rules.filter((rule) => senderIds(rule).every((id) => id === account.id) && rule.fallbackProviderAccountIds.length === 0);
  return (
    <Card title="Remove the account">
      <div className="flex flex-wrap items-center justify-between gap-4">
        <p className="min-w-0 max-w-xl flex-1 basis-64 text-text-2">
          Waypost forgets the credentials and the domains of the account. At {providerName(account.providerType)} nothing is changed. To stop sending
          for a while, pause it.
        </p>
        <Confirm
          trigger={(open) => (
            <Button kind="danger" onClick={open}>
              Remove
            </Button>
          )}
          title={`Remove ${account.displayName}?`}
          action="Remove the account"
          run={async () => {
            await waypost.providers.delete(account.id);
            await navigate({ to: "/providers" });
            await accountChanged();
            toast.success(`${account.displayName} was removed`);
          }}
        >
          <ul className="list-disc space-y-1 pl-5">
            <li>Messages that wait for it are sent by another active account.</li>
            {rules.length > 0 && (
              <li>
                In {rules.length === 1 ? "the rule" : "the rules"} {rules.map((rule) => `“${rule.name}”`).join(", ")} the other accounts take its place.
              </li>
            )}
            {orphans.length > 0 && (
              <li>
                {orphans.map((rule) => `“${rule.name}”`).join(", ")} {orphans.length === 1 ? "has" : "have"} no fallback and will be switched off.
              </li>
            )}
            <li>Its later events are no longer taken.</li>
          </ul>
        </Confirm>
      </div>
    </Card>
  );
}
