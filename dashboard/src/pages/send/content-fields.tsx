import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import type { TemplateVersion } from "waypost";
import { firstSample, keptSample } from "@/pages/templates/sample-data";
import { allTemplatesQuery, templateQuery, versionQuery } from "@/pages/templates/queries";
import { localeName } from "@/pages/templates/words";
import { useMay } from "@/session";
import { Editor } from "@/ui/editor";
import { parseObject } from "@/ui/editor/json";
import { Field, Input, Select } from "@/ui/form";
import { Segmented } from "@/ui/segmented";
import type { FormProblems, SendForm } from "./form";

export interface FieldsProps {
  form: SendForm;
  problems: FormProblems;
  onChange(part: Partial<SendForm>): void;
}

/** The version that a send with this template and language gets, as far as it is known. */
export function useVersion(templateId: string, locale: string): TemplateVersion | undefined {
  const template = useQuery({ ...templateQuery(templateId), enabled: templateId !== "" }).data;
  const fallbacks = locale.split("-").map((_, at, parts) => parts.slice(0, parts.length - at).join("-"));
  const current = [...fallbacks, ""].map((one) => template?.currentVersions.find((version) => (version.locale ?? "").toLowerCase() === one.toLowerCase()));
  const id = current.find((version) => version !== undefined)?.versionId;
  return useQuery({ ...versionQuery(templateId, id ?? ""), enabled: id !== undefined }).data;
}

/** What the message says: written here, or a template's. */
export function ContentFields({ form, problems, onChange }: FieldsProps) {
  const may = useMay();
  const version = useVersion(form.content === "template" ? form.templateId : "", form.locale);
  return (
    <>
      {may("TEMPLATES_READ") && (
        <Segmented
          label="The content"
          value={form.content}
          onChange={(content) => onChange({ content })}
          options={[
            ["own", "Write it here"],
            ["template", "Use a template"],
          ]}
        />
      )}
      {form.content === "template" && <TemplateFields form={form} version={version} onChange={onChange} />}
      <Field label="Subject" path="subject" aside={form.content === "template" && version?.subject ? "optional" : undefined}>
        {(control) => (
          <Input
            {...control}
            value={form.subject}
            onChange={(event) => onChange({ subject: event.target.value })}
            placeholder={form.content === "template" ? (version?.subject ?? "") : ""}
          />
        )}
      </Field>
      {form.content === "own" && <Bodies form={form} onChange={onChange} />}
      {form.content === "template" && <Variables form={form} problems={problems} onChange={onChange} hint="Values for the template, as JSON." />}
    </>
  );
}

function Bodies({ form, onChange }: Pick<FieldsProps, "form" | "onChange">) {
  const [pane, setPane] = useState<"html" | "text">("html");
  return (
    <div className="space-y-2">
      <div className="flex flex-wrap items-center justify-between gap-2">
        <Segmented<"html" | "text">
          label="The body"
          value={pane}
          onChange={setPane}
          options={[
            ["html", "HTML"],
            ["text", "Text"],
          ]}
        />
        <span className="text-[13px] text-text-3">Give one of them, or both.</span>
      </div>
      <Field label={pane === "html" ? "HTML" : "Text"} path={pane}>
        {(control) => (
          <Editor
            key={pane}
            language={pane}
            label={pane === "html" ? "HTML" : "Text"}
            value={form[pane]}
            onChange={(text) => onChange({ [pane]: text })}
            invalid={control["aria-invalid"]}
            describedBy={control["aria-describedby"]}
            className="h-64"
            hint={pane === "html" ? "<p>Thank you for your order.</p>" : "Thank you for your order."}
          />
        )}
      </Field>
    </div>
  );
}

function TemplateFields({ form, version, onChange }: Pick<FieldsProps, "form" | "onChange"> & { version: TemplateVersion | undefined }) {
  const all = useQuery(allTemplatesQuery);
  const template = useQuery({ ...templateQuery(form.templateId), enabled: form.templateId !== "" }).data;
  const choices = (all.data ?? []).filter((one) => one.type === "TEMPLATE");
  const isListed = choices.some((one) => one.id === form.templateId);
  const locales = template?.currentVersions.flatMap((one) => one.locale ?? []) ?? [];
  useSampleOf(version, form.variables, (variables) => onChange({ variables }));
  return (
    <div className="grid gap-5 sm:grid-cols-2">
      <Field
        label="Template"
        path="templateId"
        className={locales.length > 0 ? undefined : "sm:col-span-2"}
        hint={
          template && (
            <Link to="/templates/$id" params={{ id: template.id }} className="text-accent-text hover:underline">
              Open the template
            </Link>
          )
        }
      >
        {(control) => (
          <Select
            {...control}
            value={form.templateId}
            onChange={(event) => onChange({ templateId: event.target.value, locale: "" })}
            options={[
              ["", all.isPending ? "Loading …" : choices.length > 0 ? "Choose a template" : "There is no template yet"],
              ...choices.map((one) => [one.id, one.currentVersionId ? one.name : `${one.name} (no version yet)`] as const),
              ...(form.templateId && !isListed ? [[form.templateId, template?.name ?? form.templateId] as const] : []),
            ]}
          />
        )}
      </Field>
      {locales.length > 0 && (
        <Field label="Language" path="locale">
          {(control) => (
            <Select
              {...control}
              value={form.locale}
              onChange={(event) => onChange({ locale: event.target.value })}
              options={[["", localeName(null)], ...locales.map((locale) => [locale, localeName(locale)] as const), ...(form.locale && !locales.includes(form.locale) ? [[form.locale, localeName(form.locale)] as const] : [])]}
            />
          )}
        </Field>
      )}
    </div>
  );
}

/** Fills in sample data when a template is chosen, unless the person wrote variables. */
function useSampleOf(version: TemplateVersion | undefined, variables: string, fill: (variables: string) => void): void {
  const filled = useRef("");
  useEffect(() => {
    if (!version || (variables.trim() !== "" && variables !== filled.current)) return;
    const sample = keptSample(version.templateId) ?? firstSample(version.variablesSchema ?? undefined, version.htmlContent + (version.subject ?? ""));
    if (sample === variables) return;
    filled.current = sample;
    fill(sample);
    // Only another template fills it in again: its languages have the same variables.
  }, [version?.templateId]);
}

export function Variables({ form, problems, onChange, hint }: FieldsProps & { hint: string }) {
  const { problem } = parseObject(form.variables);
  return (
    <Field label="Variables" path="variables" hint={problems.variables ?? hint}>
      {(control) => (
        <Editor
          language="json"
          label="Variables"
          value={form.variables}
          onChange={(variables) => onChange({ variables })}
          problems={problem ? [problem] : undefined}
          invalid={control["aria-invalid"]}
          describedBy={control["aria-describedby"]}
          className="h-48"
          hint={'{ "name": "Ada" }'}
        />
      )}
    </Field>
  );
}
