/** "Where would this mail go?": a mail is described, and its way is shown. Nothing is sent. */

import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { waypost } from "@/api";
import { Disclosure } from "@/ui/disclosure";
import { Checkbox, Field, Form, Input, issueAt, Select, Submit } from "@/ui/form";
import { Card, SkeletonRows } from "@/ui/page";
import { type Question, remember, requestOf } from "./question";
import { Way } from "./way";

interface Props {
  question: Question;
  ask(question: Question): void;
}

export function Where({ question, ask }: Props) {
  const [draft, setDraft] = useState(question);
  const asked = JSON.stringify(question);
  // The browser's back button changes the question too.
  useEffect(() => setDraft(JSON.parse(asked) as Question), [asked]);
  const route = useQuery({
    // Below the key of the rules: a change of a rule makes the answer stale.
    queryKey: ["routing-rules", "where", question],
    queryFn: ({ signal }) => waypost.routingRules.resolve(requestOf(question), { signal }),
    enabled: question.from !== undefined,
  });
  const submit = () => {
    const next = remember(draft);
    if (JSON.stringify(requestOf(next)) === JSON.stringify(requestOf(question)) && question.from !== undefined) void route.refetch();
    else ask(next);
  };
  return (
    <div className="grid grid-cols-1 items-start gap-5 lg:grid-cols-[20rem_minmax(0,1fr)]">
      <Card title="The mail" description="Nothing is sent.">
        <Form error={route.error} onSubmit={submit} label="Where would this mail go?">
          <Fields draft={draft} change={(part) => setDraft({ ...draft, ...part })} error={route.error} />
          <Submit busy={route.isFetching}>Show the way</Submit>
        </Form>
      </Card>
      <div aria-live="polite">
        {route.data ? (
          <Way route={route.data} question={question} />
        ) : route.isFetching ? (
          <Card flush>
            <SkeletonRows rows={4} />
          </Card>
        ) : (
          <Card>
            <p className="text-text-2">
              Enter a sender, and what else rules look at: recipients, tags, the kind of mail. You see which rules are passed over and why, which account
              sends, and which accounts stand in.
            </p>
          </Card>
        )}
      </div>
    </div>
  );
}

interface FieldsProps {
  draft: Question;
  change(part: Partial<Question>): void;
  error: unknown;
}

function Fields({ draft, change, error }: FieldsProps) {
  const isMore = !!draft.messageClass || !!draft.size || !!draft.test;
  return (
    <>
      <Field label="From" path="from" hint="An address of the sender, or only its domain.">
        {(control) => (
          <Input {...control} value={draft.from ?? ""} onChange={(event) => change({ from: event.target.value })} placeholder="shop@example.com" spellCheck={false} />
        )}
      </Field>
      <Field label="To" path="to" aside="optional" hint="Addresses or domains, separated by commas.">
        {(control) => (
          <Input {...control} value={draft.to ?? ""} onChange={(event) => change({ to: event.target.value })} placeholder="ada@example.org" spellCheck={false} />
        )}
      </Field>
      <Field label="Tags" path="tags" aside="optional" hint="Separated by commas.">
        {(control) => <Input {...control} value={draft.tags ?? ""} onChange={(event) => change({ tags: event.target.value })} placeholder="receipts, eu" />}
      </Field>
      <Disclosure title="Kind, size, test" open={issueAt(error, "messageClass", "sizeBytes", "test") ?? isMore}>
        <Field label="Kind of mail" path="messageClass">
          {(control) => (
            <Select
              {...control}
              value={draft.messageClass ?? "transactional"}
              onChange={(event) => change({ messageClass: event.target.value === "bulk" ? "bulk" : undefined })}
              options={[
                ["transactional", "Transactional"],
                ["bulk", "Bulk"],
              ]}
            />
          )}
        </Field>
        <Field label="Size" path="sizeBytes" aside="optional" hint="Such as 200 KB or 5 MB.">
          {(control) => <Input {...control} value={draft.size ?? ""} onChange={(event) => change({ size: event.target.value })} placeholder="0 B" />}
        </Field>
        <Checkbox checked={!!draft.test} onChange={(test) => change({ test: test || undefined })} label="It is a test" />
      </Disclosure>
    </>
  );
}
