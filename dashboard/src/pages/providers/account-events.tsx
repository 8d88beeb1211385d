import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { toast } from "sonner";
import type { EventWebhookResult, ProviderAccount } from "waypost";
import { errorText, waypost } from "@/api";
import { providerName } from "@/format";
import { useMay } from "@/session";
import { Button } from "@/ui/button";
import { CopyButton } from "@/ui/copy";
import { Field, Form, FormActions, Input, Submit } from "@/ui/form";
import { Card, Empty, Notice } from "@/ui/page";
import { SecretInput } from "./credentials-form";
import { EVENT_STEPS, Steps } from "./guides";
import { kindOf } from "./kinds";
import { isType } from "./types";
import { accountChanged, isPublicUrl } from "./queries";

/** How an account reports what became of its mail. */
export function AccountEvents({ account }: { account: ProviderAccount }) {
  const kind = kindOf(account.providerType);
  if (account.providerType === "SMTP") {
    return (
      <Card flush>
        <Empty title="A mail server reports no events">
          Waypost knows from the server's answer whether it took the mail. What becomes of it after that comes back as mail to the sender.
        </Empty>
      </Card>
    );
  }
  return (
    <div className="grid grid-cols-1 items-start gap-5 lg:grid-cols-[minmax(0,3fr)_minmax(0,2fr)]">
      <div className="space-y-5">
        <WebhookCard account={account} />
        {kind?.eventSecret && <SecretCard account={account} secret={kind.eventSecret} />}
      </div>
      {isType(account.providerType) && EVENT_STEPS[account.providerType].length > 0 && (
        <Card title={kind?.registers ? "By hand" : "What to do in AWS"}>
          <Steps steps={EVENT_STEPS[account.providerType]} />
        </Card>
      )}
    </div>
  );
}

/** The URL that the provider posts to. */
export function WebhookUrl({ account }: { account: ProviderAccount }) {
  return (
    <div>
      <div className="text-sm font-medium" id="webhook-url">
        Webhook URL
      </div>
      <div className="mt-1.5 flex items-center gap-2 rounded-md border border-line bg-sunken py-1 pr-1 pl-3">
        <code aria-labelledby="webhook-url" className="min-w-0 flex-1 font-mono text-[13px] break-all">
          {account.webhookUrl}
        </code>
        <CopyButton text={account.webhookUrl} label="Copy the webhook URL" />
      </div>
      <p className="mt-1.5 text-[13px] text-text-3">{providerName(account.providerType)} posts events to it. Keep it secret.</p>
      {!isPublicUrl(account.webhookUrl) && (
        <div className="mt-3">
          <Notice kind="warning">
            Providers on the internet cannot reach this address. Whoever runs Waypost sets <code>WAYPOST_PUBLIC_URL</code> to its public HTTPS
            address.
          </Notice>
        </div>
      )}
    </div>
  );
}

/** What the account's events are verified by, in words. */
export function EventsState({ account }: { account: ProviderAccount }) {
  const provider = providerName(account.providerType);
  return account.eventsVerified ? (
    <Notice kind="success">Events of {provider} arrive, and Waypost verifies them.</Notice>
  ) : (
    <Notice kind="warning">
      No event of {provider} has been verified yet. The first genuine one changes this: send a mail through the account.
    </Notice>
  );
}

function WebhookCard({ account }: { account: ProviderAccount }) {
  const may = useMay();
  const kind = kindOf(account.providerType);
  return (
    <Card title="Event webhook" description="It tells Waypost what became of each mail: delivered, bounced, reported as spam.">
      <div className="space-y-5">
        <EventsState account={account} />
        <WebhookUrl account={account} />
        {kind?.registers && may("PROVIDERS_WRITE") && <Register account={account} />}
      </div>
    </Card>
  );
}

/** Registers the webhook with the provider, by the button. */
export function Register({ account, first }: { account: ProviderAccount; first?: boolean }) {
  const provider = providerName(account.providerType);
  const register = useMutation({
    mutationFn: (): Promise<EventWebhookResult> => waypost.providers.registerEventWebhook(account.id),
    onSuccess: async (result) => {
      await accountChanged();
      if (result.registered) toast.success(`The event webhook is registered with ${provider}`);
    },
  });
  return (
    <div className="space-y-3">
      <Button kind={first ? "primary" : "secondary"} onClick={() => register.mutate()} busy={register.isPending}>
        {first ? "Try again" : `Register with ${provider}`}
      </Button>
      {!first && (
        <p className="text-[13px] text-text-3">
          Waypost gives {provider} the URL, and stores what verifies the events. It can be repeated: the same webhook is updated.
        </p>
      )}
      {register.error && <Notice kind="error">{errorText(register.error)}</Notice>}
      {register.data?.registered && <Notice kind="success">Registered. Send a mail through the account: its events are verified.</Notice>}
    </div>
  );
}

interface SecretProps {
  account: ProviderAccount;
  secret: { name: "publicKey" | "signingKey" | "topicArn"; label: string; hint: string; placeholder: string };
}

/** Sets what verifies the events, for a webhook that was set up by hand. */
export function SecretForm({ account, secret }: SecretProps) {
  const [value, setValue] = useState("");
  const save = useMutation({
    mutationFn: () => waypost.providers.update(account.id, { eventSecrets: { [secret.name]: value.trim() } }),
    onSuccess: async () => {
      await accountChanged();
      setValue("");
      toast.success(`${secret.label} saved`);
    },
  });
  return (
    <Form error={save.error} onSubmit={() => save.mutate()} label={secret.label}>
      <Field label={secret.label} path={`eventSecrets.${secret.name}`} hint={secret.hint}>
        {(control) => {
          const shared = { ...control, value, placeholder: secret.placeholder };
          // Of the three only the signing key must not be seen.
          return secret.name === "signingKey" ? (
            <SecretInput {...shared} onChange={(event) => setValue(event.target.value)} />
          ) : (
            <Input {...shared} spellCheck={false} className="font-mono text-[13px]!" onChange={(event) => setValue(event.target.value)} />
          );
        }}
      </Field>
      <FormActions>
        <Submit busy={save.isPending}>Save</Submit>
      </FormActions>
    </Form>
  );
}

function SecretCard({ account, secret }: SecretProps) {
  const may = useMay();
  if (!may("PROVIDERS_WRITE")) return null;
  return (
    <Card
      title="Event secret"
      description={
        kindOf(account.providerType)?.registers
          ? "Only for a webhook that was set up by hand: registering stores it by itself. A new one counts as not verified until its first event."
          : "A new one counts as not verified until its first event."
      }
    >
      <SecretForm account={account} secret={secret} />
    </Card>
  );
}
