import type { TemplateType } from "waypost";
import type { Tone } from "@/ui/badge";

/** The types of templates, in words. */
export const TYPES: readonly (readonly [type: TemplateType, name: string, meaning: string])[] = [
  ["TEMPLATE", "Template", "Is sent: it has a subject, HTML and a text."],
  ["LAYOUT", "Layout", "Stands around templates: a header, a footer, the styles."],
  ["PARTIAL", "Partial", "A part that several templates share, put in by its name."],
];

export const typeName = (type: TemplateType): string => TYPES.find(([one]) => one === type)?.[1] ?? type;

export const typeTone = (type: TemplateType): Tone => (type === "LAYOUT" ? "violet" : type === "PARTIAL" ? "blue" : "gray");

const languages = new Intl.DisplayNames("en", { type: "language" });

/** `de-AT` is "Austrian German (de-AT)"; null is the default language. */
export function localeName(locale: string | null | undefined): string {
  if (!locale) return "Default language";
  try {
    const name = languages.of(locale);
    return name && name !== locale ? `${name} (${locale})` : locale;
  } catch {
    return locale;
  }
}

/** The fields of a version, as a person calls them. */
export const FIELDS: Readonly<Record<string, string>> = {
  mjmlSource: "MJML",
  htmlContent: "HTML",
  textContent: "Text",
  subject: "Subject",
  preheader: "Preheader",
  from: "From",
  replyTo: "Reply-to",
  layoutId: "Layout",
  locale: "Language",
  variablesSchema: "Schema",
};

export const fieldName = (path: string | undefined): string => FIELDS[path?.split(".")[0] ?? ""] ?? "";
