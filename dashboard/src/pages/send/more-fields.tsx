/** What fewer messages need, folded by subject. */

import { useQuery } from "@tanstack/react-query";
import { waypost } from "@/api";
import { plural, providerName } from "@/format";
import { useMay } from "@/session";
import { Disclosure } from "@/ui/disclosure";
import { Field, Input, issueAt, Select, Textarea } from "@/ui/form";
import { Attachments } from "./attachments";
import { type FieldsProps, Variables } from "./content-fields";
import type { SendForm } from "./form";

export interface MoreProps extends FieldsProps {
  error: unknown;
}

const summaryOf = (...parts: (string | false | undefined)[]): string => parts.filter(Boolean).join(" · ");

export function MoreRecipients({ form, onChange, error }: MoreProps) {
  const summary = summaryOf(form.cc && `Cc ${form.cc}`, form.bcc && `Bcc ${form.bcc}`, form.replyTo && `replies to ${form.replyTo}`);
  const input = (name: "cc" | "bcc" | "replyTo", label: string, hint?: string) => (
    <Field label={label} path={name} hint={hint}>
      {(control) => <Input {...control} value={form[name]} onChange={(event) => onChange({ [name]: event.target.value })} />}
    </Field>
  );
  return (
    <Disclosure title="Cc, Bcc and reply-to" summary={summary} open={issueAt(error, "cc", "bcc", "replyTo", "delivery")}>
      <div className="grid gap-5 sm:grid-cols-2">
        {input("cc", "Cc", "All recipients see them.")}
        {input("bcc", "Bcc", "The others do not see them.")}
      </div>
      {input("replyTo", "Reply-to")}
      <Field label="Delivery" path="delivery" hint="With Cc or Bcc, all recipients share one mail.">
        {(control) => (
          <Select
            {...control}
            value={form.delivery}
            onChange={(event) => onChange({ delivery: event.target.value as SendForm["delivery"] })}
            options={[
              ["", "As usual"],
              ["private", "A mail of their own for each recipient"],
              ["shared", "One mail for all, who see each other"],
            ]}
          />
        )}
      </Field>
    </Disclosure>
  );
}

export function AttachmentFields({ form, onChange, error }: MoreProps) {
  return (
    <Disclosure title="Attachments" summary={form.files.length > 0 && plural(form.files.length, "file")} open={issueAt(error, "attachments")}>
      <Field label="Files" path="attachments">
        {(control) => <Attachments files={form.files} onChange={(files) => onChange({ files })} invalid={!!control["aria-invalid"]} />}
      </Field>
    </Disclosure>
  );
}

export function DataFields({ form, problems, onChange, error }: MoreProps) {
  const headers = form.headers.split("\n").filter((line) => line.trim()).length;
  const summary = summaryOf(
    form.content === "own" && form.variables.trim() !== "" && "variables",
    form.tags && `tagged ${form.tags}`,
    headers > 0 && plural(headers, "header"),
    form.metadata.trim() !== "" && "metadata",
  );
  const mono = "font-mono text-[13px]!";
  return (
    <Disclosure
      title={form.content === "own" ? "Tags, variables, headers and metadata" : "Tags, headers and metadata"}
      summary={summary}
      open={issueAt(error, "tags", "headers", "metadata", ...(form.content === "own" ? ["variables"] : []))}
    >
      <Field label="Tags" path="tags" hint="Up to 10, with commas between them. Rules of routing, lists and metrics go by them.">
        {(control) => <Input {...control} value={form.tags} onChange={(event) => onChange({ tags: event.target.value })} placeholder="receipts, shop" />}
      </Field>
      {form.content === "own" && <Variables form={form} problems={problems} onChange={onChange} hint="If there are any, even {}, then subject, HTML and text are Handlebars: {{name}} is filled in." />}
      <Field label="Headers" path="headers" hint={problems.headers ?? "One a line."}>
        {(control) => (
          <Textarea {...control} rows={3} spellCheck={false} value={form.headers} onChange={(event) => onChange({ headers: event.target.value })} placeholder="X-Order: 1234" className={mono} />
        )}
      </Field>
      <Field label="Metadata" path="metadata" hint={problems.metadata ?? "JSON of your own. It is stored with the message, and is in its webhook events."}>
        {(control) => (
          <Textarea {...control} rows={4} spellCheck={false} value={form.metadata} onChange={(event) => onChange({ metadata: event.target.value })} placeholder='{ "order": 1234 }' className={mono} />
        )}
      </Field>
    </Disclosure>
  );
}

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

export function TimeFields({ form, onChange, error }: MoreProps) {
  const when = (local: string) => local.replace("T", ", ");
  const summary = summaryOf(form.scheduledAt && `on ${when(form.scheduledAt)}`, form.expiresAt && `not after ${when(form.expiresAt)}`);
  const input = (name: "scheduledAt" | "expiresAt", label: string, hint: string) => (
    <Field label={label} path={name} hint={hint}>
      {(control) => <Input {...control} type="datetime-local" value={form[name]} onChange={(event) => onChange({ [name]: event.target.value })} />}
    </Field>
  );
  return (
    <Disclosure title="Schedule and expiry" summary={summary || "at once"} open={issueAt(error, "scheduledAt", "expiresAt")}>
      <div className="grid gap-5 sm:grid-cols-2">
        {input("scheduledAt", "Send on", `Empty for at once. Your time: ${zone}.`)}
        {input("expiresAt", "Not after", "From then on it is not sent any more.")}
      </div>
    </Disclosure>
  );
}

const YES_NO = [
  ["", "As in the settings"],
  ["yes", "Yes"],
  ["no", "No"],
] as const;

export function GroupFields({ form, onChange, error }: MoreProps) {
  const may = useMay();
  const groups = useQuery({
    queryKey: ["unsubscribe-groups", "all"],
    queryFn: async () => (await waypost.unsubscribeGroups.list()).data,
    enabled: may("SETTINGS_WRITE"),
  });
  const group = groups.data?.find((one) => one.id === form.unsubscribeGroupId)?.name;
  const tracked = [form.trackOpens && `opens: ${form.trackOpens}`, form.trackClicks && `clicks: ${form.trackClicks}`];
  return (
    <Disclosure title="Unsubscribe group and tracking" summary={summaryOf(group, ...tracked.map((one) => one || undefined))} open={issueAt(error, "unsubscribeGroupId", "tracking")}>
      {may("SETTINGS_WRITE") && (
        <Field label="Unsubscribe group" path="unsubscribeGroupId" hint="Who left the group does not get it. The others get a link to leave it, at {{unsubscribeUrl}} or at the end.">
          {(control) => (
            <Select
              {...control}
              value={form.unsubscribeGroupId}
              onChange={(event) => onChange({ unsubscribeGroupId: event.target.value })}
              options={[["", "None"], ...(groups.data ?? []).map((one) => [one.id, one.name] as const)]}
            />
          )}
        </Field>
      )}
      <div className="grid gap-5 sm:grid-cols-2">
        <Field label="Track opens" path="tracking.opens">
          {(control) => <Select {...control} value={form.trackOpens} onChange={(event) => onChange({ trackOpens: event.target.value as SendForm["trackOpens"] })} options={YES_NO} />}
        </Field>
        <Field label="Track clicks" path="tracking.clicks">
          {(control) => <Select {...control} value={form.trackClicks} onChange={(event) => onChange({ trackClicks: event.target.value as SendForm["trackClicks"] })} options={YES_NO} />}
        </Field>
      </div>
    </Disclosure>
  );
}

export function AccountFields({ form, onChange, error }: MoreProps) {
  const may = useMay();
  const accounts = useQuery({
    queryKey: ["providers", "choices"],
    queryFn: async () => (await waypost.providers.list()).data,
    enabled: may("PROVIDERS_READ"),
  });
  if (!may("PROVIDERS_READ")) return null;
  const name = accounts.data?.find((one) => one.id === form.providerAccountId)?.displayName;
  return (
    <Disclosure title="Provider account" summary={name ?? "as the routing rules say"} open={issueAt(error, "providerAccountId")}>
      <Field label="Account" path="providerAccountId" hint="This account and no other: the routing rules do not count, and there is no fallback.">
        {(control) => (
          <Select
            {...control}
            value={form.providerAccountId}
            onChange={(event) => onChange({ providerAccountId: event.target.value })}
            options={[
              ["", "As the routing rules say"],
              ...(accounts.data ?? []).map((one) => [one.id, `${one.displayName} (${providerName(one.providerType)}${one.isActive ? "" : ", not active"})`] as const),
            ]}
          />
        )}
      </Field>
    </Disclosure>
  );
}
