/** What the editor holds, and what the API takes of it. */

import type { CreateTemplateVersionRequest, TemplateType, TemplateVersion } from "waypost";
import { addresses } from "@/pages/send/addresses";
import { parseObject, prettyJson } from "@/ui/editor/json";

export type Markup = "mjml" | "html";
/** Whether the text is made from the HTML, is the author's own, or is left out. */
export type TextMode = "made" | "own" | "none";

export interface Draft {
  /** Empty for the default language. */
  locale: string;
  markup: Markup;
  source: string;
  textMode: TextMode;
  text: string;
  subject: string;
  preheader: string;
  from: string;
  replyTo: string;
  layoutId: string;
  /** JSON. */
  schema: string;
}

export const draftOf = (version: TemplateVersion): Draft => ({
  locale: version.locale ?? "",
  markup: version.mjmlSource === null ? "html" : "mjml",
  source: version.mjmlSource ?? version.htmlContent,
  textMode: version.isTextGenerated ? "made" : version.textContent ? "own" : "none",
  text: version.isTextGenerated ? "" : (version.textContent ?? ""),
  subject: version.subject ?? "",
  preheader: version.preheader ?? "",
  from: version.from ?? "",
  replyTo: version.replyTo.join(", "),
  layoutId: version.layoutId ?? "",
  schema: version.variablesSchema ? prettyJson(version.variablesSchema) : "",
});

const section = (content: string, attributes = ""): string =>
  `<mj-section${attributes}>\n  <mj-column>\n    ${content}\n  </mj-column>\n</mj-section>\n`;
const page = (body: string): string => `<mjml>\n  <mj-body>\n${body.trimEnd().replaceAll(/^/gm, "    ")}\n  </mj-body>\n</mjml>\n`;

const FIRST: Record<"TEMPLATE" | "LAYOUT" | "PARTIAL", string> = {
  TEMPLATE: page(section("<mj-text>Hello {{name}},</mj-text>")),
  LAYOUT: page(`${section('<mj-text font-size="20px">Your name</mj-text>')}{{{@content}}}\n`),
  PARTIAL: section("<mj-text>Your address</mj-text>"),
};

/** What a template without a version begins with. */
export const firstDraft = (type: TemplateType, locale = ""): Draft => ({
  locale,
  markup: "mjml",
  source: FIRST[type as keyof typeof FIRST] ?? FIRST.TEMPLATE,
  textMode: type === "TEMPLATE" ? "made" : "none",
  text: "",
  subject: type === "TEMPLATE" ? "Hello {{name}}" : "",
  preheader: "",
  from: "",
  replyTo: "",
  layoutId: "",
  schema: "",
});

/** A request for a version. The schema must be valid JSON, or is left out. */
export function contentOf(draft: Draft, type: TemplateType): CreateTemplateVersionRequest {
  const text = draft.textMode === "made" ? undefined : draft.textMode === "none" ? "" : draft.text;
  const sources = {
    locale: draft.locale || undefined,
    htmlContent: draft.markup === "html" ? draft.source : "",
    mjmlSource: draft.markup === "mjml" ? draft.source : undefined,
    textContent: text,
  };
  // A layout or partial has sources and a language alone.
  if (type !== "TEMPLATE") return sources;
  const replyTo = addresses(draft.replyTo);
  return {
    ...sources,
    subject: draft.subject || undefined,
    preheader: draft.preheader || undefined,
    from: draft.from.trim() || undefined,
    replyTo: replyTo.length > 0 ? replyTo : undefined,
    layoutId: draft.layoutId || undefined,
    variablesSchema: parseObject(draft.schema).value,
  };
}

export const isSame = (one: Draft, other: Draft): boolean => JSON.stringify(one) === JSON.stringify(other);

const CONTENT = /\{\{\{\s*@content\s*\}\}\}/g;
const STAND_IN = "The content of the template stands here.";

/** The element around a fragment of MJML, so that it is a whole document. */
function around(fragment: string): readonly [string, string] {
  const first = /<(mj-[a-z-]+)/i.exec(fragment)?.[1]?.toLowerCase();
  const wraps = first === "mj-column" || first === "mj-group" ? ["mj-section"] : ["mj-section", "mj-column"];
  const outer = ["mj-section", "mj-wrapper", "mj-hero"].includes(first ?? "") ? [] : wraps;
  const names = ["mjml", "mj-body", ...outer];
  return [names.map((name) => `<${name}>`).join(""), names.toReversed().map((name) => `</${name}>`).join("")];
}

/**
 * What is previewed: a layout with a sentence in the place of the content, a partial in an empty mail. The lines stay the
 * same, so that problems are found at them.
 */
export function previewed(draft: Draft, type: TemplateType): CreateTemplateVersionRequest {
  const content = contentOf(draft, type);
  const text = content.textContent?.replace(CONTENT, STAND_IN);
  if (type === "LAYOUT") {
    const mjml = section(`<mj-text>${STAND_IN}</mj-text>`).replaceAll(/\n\s*/g, "");
    return {
      ...content,
      htmlContent: content.htmlContent.replace(CONTENT, `<p>${STAND_IN}</p>`),
      mjmlSource: content.mjmlSource?.replace(CONTENT, mjml),
      textContent: text,
    };
  }
  if (type === "PARTIAL" && content.mjmlSource) {
    const [before, after] = around(content.mjmlSource);
    return { ...content, mjmlSource: before + content.mjmlSource + after };
  }
  return content;
}
