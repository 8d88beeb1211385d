/** Where in a source the API found a mistake. */

import type { ErrorIssue } from "waypost";

export interface Problem {
  message: string;
  /** From 1; the first line if the API does not say which. */
  line: number;
  column?: number | undefined;
}

const PLACE = /^line (\d+)(?:, column (\d+))?: /;

/** The problem that an issue tells. Its message begins with the place, too. */
export function problemOf(issue: ErrorIssue): Problem {
  const told = PLACE.exec(issue.message);
  const number = (text: string | undefined) => (text === undefined ? undefined : Number(text));
  return {
    message: issue.message.replace(PLACE, ""),
    line: issue.line ?? number(told?.[1]) ?? 1,
    column: issue.column ?? number(told?.[2]),
  };
}

/** The problems of a field. */
export const problemsAt = (issues: readonly ErrorIssue[], path: string): Problem[] =>
  issues.filter((issue) => issue.path === path || issue.path?.startsWith(`${path}.`)).map(problemOf);
