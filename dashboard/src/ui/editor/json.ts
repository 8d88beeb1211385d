/** JSON that a person writes: an object, or nothing. */

import type { Problem } from "./problems";

export type JsonObject = Record<string, unknown>;
export type ParsedJson = { value: JsonObject | undefined; problem?: undefined } | { value?: undefined; problem: Problem };

export function parseObject(text: string): ParsedJson {
  if (text.trim() === "") return { value: undefined };
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return { value: value as JsonObject };
    return { problem: { line: 1, message: "must be an object: { … }" } };
  } catch (error) {
    return { problem: placed(text, error instanceof Error ? error.message : String(error)) };
  }
}

/** Browsers tell the place of a mistake in different words. */
function placed(text: string, message: string): Problem {
  const line = /line (\d+) column (\d+)/.exec(message);
  const words = message.replace(/\s*(\(line|at line|in JSON at|, \.\.\.|, "[\s\S]*" is not).*$/s, "").replace("JSON.parse: ", "");
  const told = `is not valid JSON: ${words.charAt(0).toLowerCase()}${words.slice(1)}`;
  if (line) return { line: Number(line[1]), column: Number(line[2]), message: told };
  const at = /position (\d+)/.exec(message);
  const before = text.slice(0, at ? Number(at[1]) : text.length);
  return { line: before.split("\n").length, column: before.length - before.lastIndexOf("\n"), message: told };
}

export const prettyJson = (value: unknown): string => JSON.stringify(value, null, 2);
