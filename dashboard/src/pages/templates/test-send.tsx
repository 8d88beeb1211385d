import { useMutation, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { MailCheck } from "lucide-react";
import { useState } from "react";
import type { SendMessageResponse, SendTemplateTestRequest, TemplateDetail } from "waypost";
import { baseUrl, waypost } from "@/api";
import { plural } from "@/format";
import { addresses } from "@/pages/send/addresses";
import { testSendSamples } from "@/pages/send/samples";
import { useSession } from "@/session";
import { Button, buttonClass } from "@/ui/button";
import { CodeTabs } from "@/ui/code";
import { Dialog } from "@/ui/dialog";
import { Disclosure } from "@/ui/disclosure";
import { parseObject } from "@/ui/editor/json";
import { Field, Form, FormActions, Input, Submit, Textarea } from "@/ui/form";
import { Notice, Skeleton } from "@/ui/page";
import { versionQuery } from "./queries";
import { firstSample, keptSample } from "./sample-data";
import { localeName } from "./words";

interface TestSendProps {
  template: TemplateDetail;
  locale: string | undefined;
}

/** Sends the current version to oneself. */
export function TestSend({ template, locale }: TestSendProps) {
  const [open, setOpen] = useState(false);
  const [sent, setSent] = useState<SendMessageResponse>();
  const close = () => {
    setOpen(false);
    setSent(undefined);
  };
  return (
    <>
      <Button onClick={() => setOpen(true)}>
        <MailCheck />
        Send a test
      </Button>
      <Dialog
        open={open}
        wide
        onClose={close}
        title="Send a test"
        description="A real mail, with “[Test]” before its subject. It is made from the current version: save first what you changed."
      >
        {sent ? <Sent answer={sent} onAgain={() => setSent(undefined)} onClose={close} /> : open && <TestForm template={template} locale={locale} onSent={setSent} />}
      </Dialog>
    </>
  );
}

function TestForm({ template, locale, onSent }: TestSendProps & { onSent(answer: SendMessageResponse): void }) {
  const current = template.currentVersions.find((one) => one.locale === (locale ?? null)) ?? template.currentVersions[0]!;
  const version = useQuery(versionQuery(template.id, current.versionId)).data;
  const { user } = useSession();
  const [to, setTo] = useState(user.email);
  const [from, setFrom] = useState("");
  const [subject, setSubject] = useState("");
  const [own, setOwn] = useState<string>();
  const text = own ?? (keptSample(template.id) ?? (version ? firstSample(version.variablesSchema ?? undefined, version.htmlContent) : ""));
  const variables = parseObject(text);
  const recipients = addresses(to);
  const request: SendTemplateTestRequest = {
    to: recipients.length === 1 ? recipients[0]! : recipients,
    variables: variables.value,
    locale: current.locale ?? undefined,
    from: from.trim() || undefined,
    subject: subject || undefined,
  };
  const send = useMutation({ mutationFn: () => waypost.templates.sendTest(template.id, request), onSuccess: onSent });
  if (!version) return <Skeleton className="h-64 w-full" />;
  return (
    <Form onSubmit={() => !variables.problem && send.mutate()} error={send.error} label="Send a test">
      <p className="text-[13px] text-text-2">
        Version {current.versionNumber}, {localeName(current.locale)}.
      </p>
      <Field label="To" path="to" hint="Up to 10 addresses, with commas between them. Each gets a mail of their own.">
        {(control) => <Input {...control} value={to} onChange={(event) => setTo(event.target.value)} />}
      </Field>
      <div className="grid gap-5 sm:grid-cols-2">
        <Field label="From" path="from" aside={version.from ? "optional" : undefined}>
          {(control) => <Input {...control} value={from} onChange={(event) => setFrom(event.target.value)} placeholder={version.from ?? "shop@example.com"} />}
        </Field>
        <Field label="Subject" path="subject" aside={version.subject ? "optional" : undefined}>
          {(control) => <Input {...control} value={subject} onChange={(event) => setSubject(event.target.value)} placeholder={version.subject ?? ""} />}
        </Field>
      </div>
      <Field label="Variables" path="variables" hint={variables.problem ? `Line ${variables.problem.line}: ${variables.problem.message}` : "The sample data, as JSON."}>
        {(control) => (
          <Textarea {...control} rows={8} spellCheck={false} value={text} onChange={(event) => setOwn(event.target.value)} className="font-mono text-[13px]!" />
        )}
      </Field>
      <FormActions>
        <Submit busy={send.isPending} disabled={variables.problem !== undefined}>
          Send the test
        </Submit>
      </FormActions>
      <Disclosure title="As curl or SDK code">
        <CodeTabs samples={testSendSamples(template.id, request, baseUrl)} />
      </Disclosure>
    </Form>
  );
}

function Sent({ answer, onAgain, onClose }: { answer: SendMessageResponse; onAgain(): void; onClose(): void }) {
  return (
    <div className="space-y-4">
      {answer.messageId === null ? (
        <Notice kind="warning">Nothing was sent: all of these addresses are suppressed.</Notice>
      ) : (
        <Notice kind="success">
          The test is accepted{answer.suppressedCount ? `; ${plural(answer.suppressedCount, "address is", "addresses are")} suppressed and left out` : ""}.
        </Notice>
      )}
      <div className="flex flex-wrap justify-end gap-2">
        <Button onClick={onAgain}>Send another</Button>
        {answer.messageId !== null && (
          <Link to={`/messages/${answer.messageId}` as string} onClick={onClose} className={buttonClass("primary")}>
            Follow the message
          </Link>
        )}
      </div>
    </div>
  );
}
