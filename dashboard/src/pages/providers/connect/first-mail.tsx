import { useMutation, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Check, LoaderCircle } from "lucide-react";
import { type ReactNode, useState } from "react";
import type { HistoryEvent, ProviderAccount, SendMessageRequest } from "waypost";
import { baseUrl, queries, waypost } from "@/api";
import { providerName } from "@/format";
import { stateOf } from "@/pages/domains/state";
import { sendSamples } from "@/pages/send/samples";
import { useMay, useSession } from "@/session";
import { Button, buttonClass } from "@/ui/button";
import { CodeTabs } from "@/ui/code";
import { Field, Form, FormActions, Input, Submit, Textarea } from "@/ui/form";
import { NotAllowed } from "@/ui/not-allowed";
import { Card, Notice, SkeletonRows } from "@/ui/page";
import { Time } from "@/ui/time";
import { accountChanged, domainsQuery } from "../queries";

interface Props {
  account: ProviderAccount;
  onDomains(): void;
}

/** A first mail through the account, and what becomes of it. */
export function FirstMailStep({ account, onDomains }: Props) {
  const may = useMay();
  const domains = useQuery(domainsQuery(account.id));
  const [sent, setSent] = useState<string>();
  if (!may("SEND")) return <NotAllowed what="the form that sends" />;
  if (domains.isPending) return <SkeletonRows />;
  const domain =
    domains.data?.find((one) => stateOf(one) === "verified") ?? domains.data?.find((one) => stateOf(one) === "unknown");
  return (
    <div className="space-y-5">
      {!domain && account.providerType !== "SMTP" && (
        <Notice
          kind="warning"
          action={
            <Button small onClick={onDomains}>
              Domains
            </Button>
          }
        >
          No domain of this account is verified yet, so {providerName(account.providerType)} refuses the mail.
        </Notice>
      )}
      <SendForm account={account} domain={domain?.domain} onSent={setSent} />
      {sent && <Progress key={sent} id={sent} account={account} />}
      <Further account={account} done={sent !== undefined} />
    </div>
  );
}

interface FormProps {
  account: ProviderAccount;
  domain: string | undefined;
  onSent(id: string): void;
}

function SendForm({ account, domain, onSent }: FormProps) {
  const { user } = useSession();
  const [from, setFrom] = useState(domain ? `hello@${domain}` : "");
  const [to, setTo] = useState(user.email);
  const [subject, setSubject] = useState("The first mail");
  const [text, setText] = useState(`This mail went through Waypost and ${account.displayName}.`);
  const request: SendMessageRequest = { from, to, subject, text, providerAccountId: account.id };
  const send = useMutation({
    mutationFn: () => waypost.messages.send(request),
    onSuccess: ({ messageId }) => messageId && onSent(messageId),
  });
  return (
    <Card title="Send a first mail" description="It goes through this account and no other.">
      <Form error={send.error} onSubmit={() => send.mutate()} label="Send a first mail">
        <div className="grid gap-5 sm:grid-cols-2">
          <Field label="From" path="from" hint={domain && `Any address at ${domain}.`}>
            {(control) => <Input {...control} type="email" value={from} onChange={(event) => setFrom(event.target.value)} />}
          </Field>
          <Field label="To" path="to" hint="An address of your own.">
            {(control) => <Input {...control} type="email" value={to} onChange={(event) => setTo(event.target.value)} />}
          </Field>
        </div>
        <Field label="Subject" path="subject">
          {(control) => <Input {...control} value={subject} onChange={(event) => setSubject(event.target.value)} />}
        </Field>
        <Field label="Text" path="text">
          {(control) => <Textarea {...control} rows={3} value={text} onChange={(event) => setText(event.target.value)} />}
        </Field>
        {send.data?.status === "suppressed" && (
          <Notice kind="warning">The address is suppressed, so nothing was sent. Remove its suppression, or take another address.</Notice>
        )}
        <FormActions>
          <Submit busy={send.isPending}>Send</Submit>
        </FormActions>
        <details>
          <summary className="text-[13px] font-medium text-accent-text">The same as curl or SDK code</summary>
          <div className="mt-3">
            <CodeTabs samples={sendSamples(request, baseUrl)} />
          </div>
        </details>
      </Form>
    </Card>
  );
}

/** What each event of a first mail says. */
const EVENT_TEXT: Record<string, (provider: string) => string> = {
  QUEUED: () => "Waypost took the mail",
  SENT: (provider) => `${provider} took the mail`,
  DEFERRED: () => "The receiving server wants it later; it is tried again",
  DELIVERED: () => "The receiving server took the mail",
  OPENED: () => "The mail was opened",
  CLICKED: () => "A link of the mail was followed",
  BOUNCED: () => "The receiving server refused the mail",
  COMPLAINED: () => "The recipient reported the mail as spam",
  DROPPED: () => "The mail was given up",
};

const GOOD_END = new Set(["DELIVERED", "OPENED", "CLICKED"]);
const BAD_END = new Set(["BOUNCED", "COMPLAINED", "FAILED"]);

function Progress({ id, account }: { id: string; account: ProviderAccount }) {
  const may = useMay();
  const provider = providerName(account.providerType);
  const message = useQuery({
    queryKey: ["messages", "first-mail", id],
    queryFn: async ({ signal }) => {
      const now = await waypost.messages.get(id, { signal });
      if (GOOD_END.has(now.status)) void accountChanged();
      return now;
    },
    enabled: may("METRICS_READ"),
    refetchInterval: ({ state }) => (state.data && (GOOD_END.has(state.data.status) || BAD_END.has(state.data.status)) ? false : 1_500),
  });
  const status = message.data?.status;
  if (!may("METRICS_READ")) return <Notice kind="success">Waypost took the mail.</Notice>;
  return (
    <Card title="What becomes of it">
      <div className="space-y-4" aria-live="polite">
        <ol className="space-y-2.5">
          {message.data?.events.map((event, at) => (
            <Line key={`${event.eventType}-${at}`} event={event} provider={provider} />
          ))}
          {(!status || (!GOOD_END.has(status) && !BAD_END.has(status))) && (
            <li className="flex items-center gap-2.5 text-text-2">
              <LoaderCircle className="size-4 animate-spin text-text-3" aria-hidden />
              {waiting(status, account, provider)}
            </li>
          )}
        </ol>
        {status && GOOD_END.has(status) && <Notice kind="success">Delivered. The account works from end to end.</Notice>}
        {status && BAD_END.has(status) && (
          <Notice kind="error">
            {message.data?.events.findLast((event) => event.reason)?.reason ?? message.data?.attempts.at(-1)?.reason ?? "The mail was not delivered."}
          </Notice>
        )}
        <MessageLink id={id} />
      </div>
    </Card>
  );
}

function waiting(status: string | undefined, account: ProviderAccount, provider: string): ReactNode {
  if (status !== "SENT") return "Waiting for the provider …";
  if (account.providerType === "SMTP") return "The server took it. A mail server reports nothing after that: look into the mailbox.";
  return `Waiting for ${provider} to report the delivery. If nothing comes, see whether its events reach the webhook URL.`;
}

function Line({ event, provider }: { event: HistoryEvent; provider: string }) {
  return (
    <li className="flex flex-wrap items-center gap-x-2.5">
      <Check className="size-4 shrink-0 text-green" aria-hidden />
      {EVENT_TEXT[event.eventType]?.(provider) ?? event.eventType}
      <span className="text-[13px] text-text-3">
        <Time at={event.occurredAt} />
      </span>
    </li>
  );
}

function MessageLink({ id }: { id: string }) {
  return (
    <Link to={`/messages/${id}` as string} className="inline-block text-[13px] text-accent-text hover:underline">
      Open the message
    </Link>
  );
}

function Further({ account, done }: { account: ProviderAccount; done: boolean }) {
  const may = useMay();
  return (
    <div className="flex flex-wrap items-center gap-2">
      <Link
        to="/providers/$accountId"
        params={{ accountId: account.id }}
        className={buttonClass(done ? "primary" : "secondary")}
        onClick={() => void queries.invalidateQueries({ queryKey: ["providers"] })}
      >
        {done ? "Finish" : "Finish without a mail"}
      </Link>
      {may("SETTINGS_WRITE") && (
        <Link to={"/api-keys" as string} className={buttonClass("secondary")}>
          Make an API key for your program
        </Link>
      )}
    </div>
  );
}
