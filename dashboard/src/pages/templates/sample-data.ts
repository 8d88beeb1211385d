/** Sample data for previews: kept in this browser, or made from the schema or the source. */

import { type JsonObject, prettyJson } from "@/ui/editor/json";

interface Schema {
  type?: unknown;
  examples?: unknown;
  default?: unknown;
  enum?: unknown;
  const?: unknown;
  properties?: Record<string, Schema>;
  items?: Schema;
  format?: string;
}

const DEPTH_MAX = 6;

const TEXTS: Readonly<Record<string, string>> = {
  email: "ada@example.org",
  uri: "https://example.com",
  date: "2027-03-01",
  "date-time": "2027-03-01T09:00:00Z",
};

/** A value that a schema describes: its example, its default, or one of its type. */
function valueOf(schema: Schema, name: string, depth: number): unknown {
  if (Array.isArray(schema.examples) && schema.examples.length > 0) return schema.examples[0];
  if (schema.default !== undefined) return schema.default;
  if (schema.const !== undefined) return schema.const;
  if (Array.isArray(schema.enum)) return schema.enum[0];
  const type = Array.isArray(schema.type) ? schema.type[0] : (schema.type ?? (schema.properties ? "object" : undefined));
  if (depth > DEPTH_MAX) return null;
  if (type === "object") {
    const properties = Object.entries(schema.properties ?? {});
    return Object.fromEntries(properties.map(([key, value]) => [key, valueOf(value, key, depth + 1)]));
  }
  if (type === "array") return [valueOf(schema.items ?? {}, name, depth + 1)];
  if (type === "number" || type === "integer") return 1;
  if (type === "boolean") return true;
  if (type === "null") return null;
  return TEXTS[schema.format ?? ""] ?? name;
}

export const sampleOfSchema = (schema: JsonObject): JsonObject => {
  const value = valueOf({ type: "object", ...schema } as Schema, "", 0);
  return typeof value === "object" && value !== null ? (value as JsonObject) : {};
};

const NOT_NAMES = /^(else|this|eq|ne|gt|gte|lt|lte|and|or|not|len|raw|lookup|log|unsubscribeUrl)$/;

/** The plain names in a source, each with itself as its value: enough to see where they stand. */
export function sampleOfSource(source: string): JsonObject {
  const names = [...source.matchAll(/\{\{\{?~?\s*([A-Za-z_]\w*)\s*~?\}?\}\}/g)].map((match) => match[1]!);
  return Object.fromEntries(names.filter((name) => !NOT_NAMES.test(name)).map((name) => [name, name]));
}

export const firstSample = (schema: JsonObject | undefined, source: string): string =>
  prettyJson(schema ? sampleOfSchema(schema) : sampleOfSource(source));

const key = (templateId: string): string => `waypost.sample.${templateId}`;

export const keptSample = (templateId: string): string | null => localStorage.getItem(key(templateId));
export const keepSample = (templateId: string, sample: string): void => localStorage.setItem(key(templateId), sample);
