import { useQuery } from "@tanstack/react-query";
import { LoaderCircle, Mail as MailIcon } from "lucide-react";
import { useMemo } from "react";
import { errorText, waypost } from "@/api";
import { Mail, ViewChoice } from "@/pages/templates/preview-pane";
import type { View } from "@/pages/templates/search";
import { useDebounced } from "@/ui/debounced";
import { parseObject } from "@/ui/editor/json";
import { Card, Empty, Notice, Skeleton } from "@/ui/page";
import { useVersion } from "./content-fields";
import type { SendForm } from "./form";

interface PreviewProps {
  form: SendForm;
  view: View;
  onView(view: View): void;
}

/** What the recipients would get of what the form holds. */
export function Preview(props: PreviewProps) {
  const { form, view, onView } = props;
  const isTemplate = form.content === "template";
  return (
    <Card title="Preview" actions={<ViewChoice view={view} onView={onView} />}>
      {isTemplate ? <TemplateMail {...props} /> : <OwnMail {...props} />}
    </Card>
  );
}

function Envelope({ form, from, subject }: { form: SendForm; from: string; subject: string }) {
  const rows = [
    ["From", from],
    ["To", form.to],
    ["Cc", form.cc],
    ["Subject", subject],
  ] as const;
  return (
    <dl className="mb-3 grid grid-cols-[max-content_1fr] gap-x-3 gap-y-0.5 text-[13px]">
      {rows.map(
        ([name, value]) =>
          (value || name !== "Cc") && (
            <div key={name} className="contents">
              <dt className="text-text-3">{name}</dt>
              <dd className={name === "Subject" ? "font-medium break-words" : "truncate"}>{value || <span className="font-normal text-text-3">–</span>}</dd>
            </div>
          ),
      )}
    </dl>
  );
}

function OwnMail({ form, view }: PreviewProps) {
  const inline = useMemo(
    () =>
      Object.fromEntries(
        form.files.filter((file) => file.contentId && /^[\w.+-]+\/[\w.+-]+$/.test(file.contentType)).map((file) => [file.contentId, `data:${file.contentType};base64,${file.content}`]),
      ),
    [form.files],
  );
  const html = useDebounced(form.html, 250);
  if (!form.html && !form.text) return <Empty icon={<MailIcon />} title="Nothing to show yet">Write the HTML or the text of the message.</Empty>;
  const hasTags = parseObject(form.variables).value !== undefined && /\{\{/.test(form.html + form.text + form.subject);
  return (
    <>
      <Envelope form={form} from={form.from} subject={form.subject} />
      {hasTags && <p className="mb-3 text-[13px] text-text-2">The variables are filled in when the message is accepted.</p>}
      <Mail html={view === "text" ? "" : html} text={form.text} view={!form.html && view !== "text" ? "text" : view} inline={inline} />
    </>
  );
}

function TemplateMail({ form, view }: PreviewProps) {
  const version = useVersion(form.templateId, form.locale);
  const variables = useDebounced(useMemo(() => parseObject(form.variables).value, [form.variables]));
  const preview = useQuery({
    queryKey: ["templates", form.templateId, "preview", "send", form.locale, variables],
    queryFn: () => waypost.templates.preview(form.templateId, { locale: form.locale || undefined, variables }),
    enabled: form.templateId !== "",
    placeholderData: (before, query) => (query?.queryKey[1] === form.templateId ? before : undefined),
  });
  if (!form.templateId) return <Empty icon={<MailIcon />} title="Nothing to show yet">Choose a template.</Empty>;
  if (preview.isError) return <Notice kind="error">{errorText(preview.error)}</Notice>;
  if (!preview.data) return <Skeleton className="h-64 w-full" />;
  return (
    <>
      <Envelope form={form} from={form.from || version?.from || ""} subject={form.subject || preview.data.subject || ""} />
      {preview.isFetching && <LoaderCircle className="mb-2 size-3.5 animate-spin text-text-3" aria-label="Rendering" />}
      <Mail html={preview.data.html} text={preview.data.text} view={view} />
    </>
  );
}
