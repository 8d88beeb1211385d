import { useMutation } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { Send } from "lucide-react";
import { useMemo, useState } from "react";
import type { SendMessageRequest, SendMessageResponse } from "waypost";
import { baseUrl, queries, waypost } from "@/api";
import { plural, providerName } from "@/format";
import { useMay } from "@/session";
import { Button, buttonClass } from "@/ui/button";
import { CodeTabs } from "@/ui/code";
import { useDebounced } from "@/ui/debounced";
import { Dialog } from "@/ui/dialog";
import { Field, Form, Input, Select, Submit, Switch } from "@/ui/form";
import { NotAllowed } from "@/ui/not-allowed";
import { Card, Notice, Page } from "@/ui/page";
import { ContentFields, useVersion } from "./content-fields";
import { emptyForm, type FormProblems, requestOf, type SendForm } from "./form";
import { AccountFields, AttachmentFields, DataFields, GroupFields, MoreRecipients, TimeFields } from "./more-fields";
import { OUTCOMES } from "./outcomes";
import { Preview } from "./preview";
import { sendSamples } from "./samples";
import type { SendSearch } from "./search";

export function SendPage({ search }: { search: SendSearch }) {
  const may = useMay();
  return (
    <Page title="Send" description="Write a message and send it, or try out what becomes of one in test mode." wide>
      {may("SEND") ? <Compose search={search} /> : <NotAllowed what="the page that sends" />}
    </Page>
  );
}

const FROM_KEY = "waypost.from";

const firstForm = (search: SendSearch): SendForm => ({
  ...emptyForm,
  // The sender that a message was sent from last, in this browser.
  from: localStorage.getItem(FROM_KEY) ?? "",
  to: search.to ?? "",
  content: search.templateId ? "template" : "own",
  templateId: search.templateId ?? "",
  locale: search.locale ?? "",
  test: search.test ?? false,
});

function Compose({ search }: { search: SendSearch }) {
  const navigate = useNavigate({ from: "/send" });
  const [form, setForm] = useState(() => firstForm(search));
  const { request, problems } = useMemo(() => requestOf(form), [form]);
  const send = useMutation({
    mutationFn: () => waypost.messages.send(request),
    onSuccess: () => {
      if (request.from) localStorage.setItem(FROM_KEY, request.from);
      return queries.invalidateQueries({ queryKey: ["messages"] });
    },
  });
  const isBlocked = Object.keys(problems).length > 0;
  const change = (part: Partial<SendForm>) => {
    setForm((before) => ({ ...before, ...part }));
    // What another page can lead to, a reload shows too.
    const { templateId, locale, content, test } = { ...form, ...part };
    const shown = { templateId: content === "template" ? templateId || undefined : undefined, locale: (content === "template" && locale) || undefined, test: test || undefined };
    void navigate({ search: (before) => ({ ...before, ...shown }), replace: true });
  };
  const more = { form, problems, onChange: change, error: send.error };
  return (
    <div className="grid gap-6 lg:grid-cols-2">
      <div className="min-w-0">
        <Card>
          <Form onSubmit={() => !isBlocked && send.mutate()} error={send.error} label="Message">
            <Recipients form={form} problems={problems} onChange={change} />
            <ContentFields form={form} problems={problems} onChange={change} />
            <div className="space-y-2 border-t border-line pt-4">
              <MoreRecipients {...more} />
              <AttachmentFields {...more} />
              <DataFields {...more} />
              <TimeFields {...more} />
              <GroupFields {...more} />
              <AccountFields {...more} />
            </div>
            <TestMode form={form} problems={problems} onChange={change} />
            <SubmitRow form={form} problems={problems} busy={send.isPending} />
          </Form>
        </Card>
      </div>
      <div className="min-w-0 space-y-6 lg:sticky lg:top-4 lg:self-start">
        <Preview
          form={form}
          view={search.view ?? "desktop"}
          onView={(view) => void navigate({ search: (before) => ({ ...before, view: view === "desktop" ? undefined : view }), replace: true })}
        />
        <AsCode request={request} problems={problems} />
      </div>
      {send.data && (
        <Sent
          answer={send.data}
          request={request}
          onClose={send.reset}
          onNew={() => {
            send.reset();
            setForm({ ...emptyForm, from: form.from, test: form.test });
          }}
        />
      )}
    </div>
  );
}

interface PartProps {
  form: SendForm;
  problems: FormProblems;
  onChange(part: Partial<SendForm>): void;
}

function Recipients({ form, onChange }: PartProps) {
  const version = useVersion(form.content === "template" ? form.templateId : "", form.locale);
  return (
    <>
      <Field label="From" path="from" aside={version?.from ? "optional" : undefined}>
        {(control) => (
          <Input {...control} value={form.from} onChange={(event) => onChange({ from: event.target.value })} placeholder={version?.from ?? "Shop <shop@example.com>"} />
        )}
      </Field>
      <Field label="To" path="to" hint="Several addresses with commas between them: each gets a mail of their own.">
        {(control) => <Input {...control} value={form.to} onChange={(event) => onChange({ to: event.target.value })} placeholder="Ada Lovelace <ada@example.org>" />}
      </Field>
    </>
  );
}

function TestMode({ form, onChange }: PartProps) {
  return (
    <div className="space-y-4 rounded-md border border-line p-3 sm:p-4">
      <Switch
        checked={form.test}
        onChange={(test) => onChange({ test })}
        label="Test"
        hint="No provider is called and nobody gets it. Everything else happens: statuses, events, webhooks."
      />
      {form.test && (
        <Field label="What becomes of it" path="testOutcome">
          {(control) => <Select {...control} value={form.testOutcome} onChange={(event) => onChange({ testOutcome: event.target.value })} options={OUTCOMES} />}
        </Field>
      )}
    </div>
  );
}

function SubmitRow({ form, problems, busy }: { form: SendForm; problems: FormProblems; busy: boolean }) {
  const problem = Object.entries(problems)[0];
  const action = form.test ? "Send the test" : form.scheduledAt ? "Schedule" : "Send";
  return (
    <div className="flex flex-wrap items-center gap-3">
      <Submit busy={busy} disabled={problem !== undefined}>
        <Send />
        {action}
      </Submit>
      {problem && (
        <p role="status" className="text-[13px] text-red">
          {problem[0].charAt(0).toUpperCase() + problem[0].slice(1)}: {problem[1]}
        </p>
      )}
    </div>
  );
}

/** The form as a command and as programs. */
function AsCode({ request, problems }: { request: SendMessageRequest; problems: FormProblems }) {
  const settled = useDebounced(request, 300);
  const samples = useMemo(() => sendSamples(settled, baseUrl), [settled]);
  const wrong = Object.keys(problems)[0];
  return (
    <Card title="As curl or SDK code" description="Exactly what the form holds. It takes an API key with the permission SEND.">
      {wrong && (
        <div className="mb-3">
          <Notice kind="warning">The {wrong} cannot be read yet, and are left out.</Notice>
        </div>
      )}
      <CodeTabs samples={samples} />
    </Card>
  );
}

interface SentProps {
  answer: SendMessageResponse;
  request: SendMessageRequest;
  onClose(): void;
  onNew(): void;
}

function Sent({ answer, request, onClose, onNew }: SentProps) {
  const isSuppressed = answer.messageId === null;
  const title = isSuppressed ? "Nothing was sent" : request.test ? "The test is accepted" : request.scheduledAt ? "The message is scheduled" : "The message is accepted";
  return (
    <Dialog open onClose={onClose} title={title}>
      <div className="space-y-4">
        {isSuppressed ? (
          <Notice kind="warning">All recipients are suppressed, for instance because mail to them bounced. No message was made.</Notice>
        ) : (
          <p className="text-text-2">
            It is stored, and goes to {request.test ? "no provider: it is a test" : answer.providerType ? `${providerName(answer.providerType)}` : "the provider"}
            {request.scheduledAt ? " when it is due" : ""}. Its page shows what becomes of it.
          </p>
        )}
        {answer.suppressedCount !== undefined && !isSuppressed && (
          <Notice kind="warning">{plural(answer.suppressedCount, "recipient is", "recipients are")} suppressed and left out.</Notice>
        )}
        {answer.domainVerified === false && <Notice kind="warning">The sender's domain is not verified on this account. Mailboxes may refuse the message.</Notice>}
        <div className="flex flex-wrap justify-end gap-2">
          <Button onClick={onNew}>Write a new one</Button>
          <Button onClick={onClose}>Send another like it</Button>
          {!isSuppressed && (
            <Link to={`/messages/${answer.messageId}` as string} className={buttonClass("primary")}>
              Follow the message
            </Link>
          )}
        </div>
      </div>
    </Dialog>
  );
}
