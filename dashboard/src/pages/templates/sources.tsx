import { CircleAlert } from "lucide-react";
import type { TemplateDetail } from "waypost";
import { Button } from "@/ui/button";
import { Editor } from "@/ui/editor";
import { parseObject, prettyJson } from "@/ui/editor/json";
import type { Problem } from "@/ui/editor/problems";
import { Select } from "@/ui/form";
import { Segmented } from "@/ui/segmented";
import { Tabs } from "@/ui/tabs";
import type { Draft, TextMode } from "./draft";
import { sampleOfSchema, sampleOfSource } from "./sample-data";
import type { Pane } from "./search";

interface SourcesProps {
  template: TemplateDetail;
  draft: Draft;
  onChange(part: Partial<Draft>): void;
  sample: string;
  onSample(text: string): void;
  problems: Readonly<Record<Pane, readonly Problem[]>>;
  pane: Pane;
  onPane(pane: Pane): void;
  readOnly: boolean;
}

const HEIGHT = "h-[28rem]";

/** What is written in a language: the mail, its text, the variables. */
export function Sources({ template, problems, pane, onPane, ...rest }: SourcesProps) {
  const { draft, onChange, readOnly } = rest;
  const label = (name: string, of: Pane) => (
    <span className="inline-flex items-center gap-1.5">
      {name}
      {problems[of].length > 0 && <CircleAlert className="size-3.5 text-red" aria-label="has a problem" />}
    </span>
  );
  const source = (
    <div className="space-y-3">
      <div className="flex flex-wrap items-center justify-between gap-2">
        {readOnly ? <span /> : (
          <Segmented
            label="Written in"
            value={draft.markup}
            onChange={(markup) => onChange({ markup })}
            options={[["mjml", "MJML"], ["html", "HTML"]]}
          />
        )}
        <span className="text-[13px] text-text-3">{template.type === "LAYOUT" ? "{{{@content}}} is the place of the template" : "{{name}} is a variable"}</span>
      </div>
      <Editor
        language="html"
        label={draft.markup === "mjml" ? "MJML source" : "HTML source"}
        value={draft.source}
        onChange={(text) => onChange({ source: text })}
        problems={problems.source}
        readOnly={readOnly}
        className={HEIGHT}
      />
    </div>
  );
  const tabs = [
    { value: "source", label: label(draft.markup === "mjml" ? "MJML" : "HTML", "source"), content: source },
    { value: "text", label: label("Text", "text"), content: <TextPane {...rest} isPart={template.type !== "TEMPLATE"} problems={problems.text} /> },
    { value: "sample", label: label("Sample data", "sample"), content: <SamplePane {...rest} problems={problems.sample} /> },
  ];
  const schema = { value: "schema", label: label("Schema", "schema"), content: <SchemaPane {...rest} problems={problems.schema} /> };
  return <Tabs value={pane} onChange={(next) => onPane(next as Pane)} tabs={template.type === "TEMPLATE" ? [...tabs, schema] : tabs} />;
}

type PaneProps = Pick<SourcesProps, "draft" | "onChange" | "sample" | "onSample" | "readOnly"> & { problems: readonly Problem[] };

function TextPane({ draft, onChange, readOnly, problems, isPart }: PaneProps & { isPart: boolean }) {
  const modes: readonly (readonly [TextMode, string])[] = [
    ...(isPart ? [] : [["made", "Made from the HTML"] as const]),
    ["own", "Written by you"],
    ["none", isPart ? "No text" : "No text: HTML alone"],
  ];
  return (
    <div className="space-y-3">
      <Select
        aria-label="The text"
        className="w-full sm:w-64"
        disabled={readOnly}
        value={draft.textMode}
        onChange={(event) => onChange({ textMode: event.target.value as TextMode })}
        options={modes}
      />
      {draft.textMode === "own" ? (
        <Editor
          language="text"
          label="Text source"
          value={draft.text}
          onChange={(text) => onChange({ text })}
          problems={problems}
          readOnly={readOnly}
          className={HEIGHT}
        />
      ) : (
        <p className="text-[13px] text-text-2">
          {draft.textMode === "made"
            ? "Waypost makes the text from the HTML when the version is saved. The preview shows it under Text."
            : isPart
              ? "It has HTML alone. A text that includes it is refused."
              : "Mails without a text are more often taken for spam."}
        </p>
      )}
    </div>
  );
}

function SamplePane({ draft, sample, onSample, problems }: PaneProps) {
  const schema = parseObject(draft.schema).value;
  const make = () => onSample(prettyJson(schema ? sampleOfSchema(schema) : sampleOfSource(draft.source + draft.text + draft.subject)));
  return (
    <div className="space-y-3">
      <div className="flex flex-wrap items-center justify-between gap-2">
        <p className="min-w-0 flex-1 text-[13px] text-text-2">Values of the variables for the preview and for tests. They are kept in this browser alone.</p>
        <Button small onClick={make}>
          {schema ? "Make it from the schema" : "Make it from the source"}
        </Button>
      </div>
      <Editor language="json" label="Sample data" value={sample} onChange={onSample} problems={problems} className={HEIGHT} />
    </div>
  );
}

function SchemaPane({ draft, onChange, readOnly, problems }: PaneProps) {
  return (
    <div className="space-y-3">
      <p className="text-[13px] text-text-2">A JSON Schema, if you want one. Sends whose variables do not match it are refused, so that nobody gets a mail with gaps.</p>
      <Editor
        language="json"
        label="Schema of the variables"
        value={draft.schema}
        onChange={(schema) => onChange({ schema })}
        problems={problems}
        readOnly={readOnly}
        className={HEIGHT}
        hint={'{ "type": "object", "required": ["name"] }'}
      />
    </div>
  );
}
