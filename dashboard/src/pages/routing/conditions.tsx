import { Disclosure } from "@/ui/disclosure";
import { Checkbox, Field, Input, issueAt, Select, Textarea } from "@/ui/form";
import { Card } from "@/ui/page";
import { conditionsOf, type Draft, tagList } from "./draft";
import { conditionText, MAILBOX_PROVIDERS } from "./words";

interface ConditionProps {
  draft: Draft;
  change(part: Partial<Draft>): void;
  /** The error of the last attempt to save. */
  error: unknown;
}

/** Which mail the rule is for. */
export function Conditions({ draft, change, error }: ConditionProps) {
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
          {tagList(draft.tags).length > 1 && (
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
        <MoreConditions draft={draft} change={change} error={error} />
        <div className="rounded-md bg-sunken px-3 py-2 text-[13px] break-words text-text-2" aria-live="polite">
          {conditionText(conditionsInWords(draft))}
        </div>
      </div>
    </Card>
  );
}

/** The conditions, without sizes that are none yet. */
function conditionsInWords(draft: Draft) {
  const conditions = conditionsOf(draft);
  const size = (value: unknown) => (typeof value === "number" ? value : null);
  return { ...conditions, minSizeBytes: size(conditions.minSizeBytes), maxSizeBytes: size(conditions.maxSizeBytes) };
}

const PATHS = ["recipientDomains", "recipientMailboxProviders", "messageClass", "minSizeBytes", "maxSizeBytes", "test"];

const isSet = (draft: Draft): boolean =>
  draft.mailboxProviders.length > 0 || [draft.recipientDomains, draft.messageClass, draft.minSize, draft.maxSize, draft.test].some(Boolean);

function MoreConditions({ draft, change, error }: ConditionProps) {
  return (
    <Disclosure title="More conditions" summary="recipients, kind of mail, size, tests" open={issueAt(error, ...PATHS) ?? isSet(draft)}>
      <Field
        label="Recipients' domains"
        path="recipientDomains"
        aside="optional"
        hint="Up to 50, separated by commas or lines; *.example.com for subdomains. All recipients of a message must be at one of them: a message is never divided."
      >
        {(control) => (
          <Textarea
            {...control}
            rows={2}
            value={draft.recipientDomains}
            onChange={(event) => change({ recipientDomains: event.target.value })}
            placeholder="gmail.com, googlemail.com"
            spellCheck={false}
            autoCapitalize="none"
          />
        )}
      </Field>
      <Field
        label="Recipients' mailbox providers"
        path="recipientMailboxProviders"
        aside="optional"
        hint="By the mail servers of the recipients' domains. All recipients of a message must be at one of them. Mail to a domain that was not looked up yet passes the rule over."
      >
        {(control) => (
          <div id={control.id} role="group" aria-label="Recipients' mailbox providers" aria-describedby={control["aria-describedby"]} className="grid gap-2 sm:grid-cols-2">
            {MAILBOX_PROVIDERS.map(([value, name, hint]) => (
              <Checkbox
                key={value}
                label={name.charAt(0).toUpperCase() + name.slice(1)}
                hint={hint}
                checked={draft.mailboxProviders.includes(value)}
                onChange={(checked) =>
                  change({ mailboxProviders: checked ? [...draft.mailboxProviders, value] : draft.mailboxProviders.filter((one) => one !== value) })
                }
              />
            ))}
          </div>
        )}
      </Field>
      <div className="grid items-start gap-5 sm:grid-cols-2">
        <Field label="Kind of mail" path="messageClass" hint="What your program gives as messageClass; transactional if it gives none.">
          {(control) => (
            <Select
              {...control}
              value={draft.messageClass}
              onChange={(event) => change({ messageClass: event.target.value })}
              options={[
                ["", "All"],
                ["transactional", "Only transactional"],
                ["bulk", "Only bulk"],
              ]}
            />
          )}
        </Field>
        <Field label="Tests" path="test" hint="Tests call no provider.">
          {(control) => (
            <Select
              {...control}
              value={draft.test}
              onChange={(event) => change({ test: event.target.value as Draft["test"] })}
              options={[
                ["", "Live mail and tests"],
                ["live", "Only live mail"],
                ["tests", "Only tests"],
              ]}
            />
          )}
        </Field>
        <Size label="At least this large" path="minSizeBytes" hint="Such as 200 KB: subject, text, HTML and attachments." value={draft.minSize} onChange={(minSize) => change({ minSize })} />
        <Size label="At most this large" path="maxSizeBytes" hint="Such as 5 MB." value={draft.maxSize} onChange={(maxSize) => change({ maxSize })} />
      </div>
    </Disclosure>
  );
}

interface SizeProps {
  label: string;
  path: string;
  hint: string;
  value: string;
  onChange(value: string): void;
}

const Size = ({ label, path, hint, value, onChange }: SizeProps) => (
  <Field label={label} path={path} aside="optional" hint={hint}>
    {(control) => <Input {...control} value={value} onChange={(event) => onChange(event.target.value)} placeholder="5 MB" autoCapitalize="none" />}
  </Field>
);
