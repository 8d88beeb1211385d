import { useQuery } from "@tanstack/react-query";
import type { ErrorIssue } from "waypost";
import { WaypostError } from "waypost";
import { Disclosure } from "@/ui/disclosure";
import { Field, Input, Select } from "@/ui/form";
import type { Draft } from "./draft";
import { allTemplatesQuery } from "./queries";

interface EnvelopeFieldsProps {
  draft: Draft;
  onChange(part: Partial<Draft>): void;
  /** Of the last save. */
  error: unknown;
  /** Of the preview. */
  issues: readonly ErrorIssue[];
}

const FOLDED = ["from", "replyTo", "layoutId"];

/** What a message of the template has besides its bodies. */
export function EnvelopeFields({ draft, onChange, error, issues }: EnvelopeFieldsProps) {
  const layouts = useQuery(allTemplatesQuery);
  const options = (layouts.data ?? []).filter((template) => template.type === "LAYOUT");
  const layout = options.find((template) => template.id === draft.layoutId);
  const summary = [draft.from, draft.replyTo && `replies to ${draft.replyTo}`, layout && `in ${layout.name}`].filter(Boolean).join(" · ");
  const isFolded = error instanceof WaypostError && error.issues.some((issue) => FOLDED.some((path) => issue.path?.startsWith(path)));
  // The preview tells at once what a save would refuse.
  const live = (path: string) => issues.find((issue) => issue.path?.startsWith(path))?.message;
  return (
    <>
      <Field label="Subject" path="subject" hint={live("subject")}>
        {(control) => <Input {...control} value={draft.subject} onChange={(event) => onChange({ subject: event.target.value })} />}
      </Field>
      <Field label="Preheader" path="preheader" aside="optional" hint={live("preheader") ?? "Mail programs show it beside the subject."}>
        {(control) => <Input {...control} value={draft.preheader} onChange={(event) => onChange({ preheader: event.target.value })} />}
      </Field>
      <Disclosure title="Sender and layout" summary={summary || "from the send, no layout"} open={isFolded && error}>
        <Field label="From" path="from" aside="optional" hint={live("from") ?? "For sends without a sender of their own."}>
          {(control) => <Input {...control} value={draft.from} onChange={(event) => onChange({ from: event.target.value })} placeholder="Shop <shop@example.com>" />}
        </Field>
        <Field label="Reply-to" path="replyTo" aside="optional" hint={live("replyTo") ?? "Several addresses with commas between them."}>
          {(control) => <Input {...control} value={draft.replyTo} onChange={(event) => onChange({ replyTo: event.target.value })} />}
        </Field>
        <Field label="Layout" path="layoutId" hint={live("layoutId") ?? "It stands around the content. MJML takes a layout of MJML, HTML one of HTML."}>
          {(control) => (
            <Select
              {...control}
              value={draft.layoutId}
              onChange={(event) => onChange({ layoutId: event.target.value })}
              options={[
                ["", "None"],
                ...options.map((template) => [template.id, template.name] as const),
                ...(draft.layoutId && !layout ? [[draft.layoutId, layouts.isPending ? "…" : "A removed layout"] as const] : []),
              ]}
            />
          )}
        </Field>
      </Disclosure>
    </>
  );
}
