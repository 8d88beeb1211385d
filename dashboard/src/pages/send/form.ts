/** What the form holds, and the request that is made of it. */

import type { SendMessageRequest } from "waypost";
import { parseObject } from "@/ui/editor/json";
import { addresses } from "./addresses";

export interface FormFile {
  key: string;
  filename: string;
  contentType: string;
  /** Shows the file within the HTML, as `cid:` and this. */
  contentId: string;
  /** In base64. */
  content: string;
  bytes: number;
}

export interface SendForm {
  from: string;
  to: string;
  cc: string;
  bcc: string;
  replyTo: string;
  delivery: "" | "private" | "shared";
  subject: string;
  /** Whether the content is written here, or a template's. */
  content: "own" | "template";
  html: string;
  text: string;
  templateId: string;
  locale: string;
  /** JSON. */
  variables: string;
  files: readonly FormFile[];
  /** `Name: value`, one a line. */
  headers: string;
  tags: string;
  /** JSON. */
  metadata: string;
  trackOpens: "" | "yes" | "no";
  trackClicks: "" | "yes" | "no";
  /** As `<input type="datetime-local">` has it. */
  scheduledAt: string;
  expiresAt: string;
  unsubscribeGroupId: string;
  providerAccountId: string;
  test: boolean;
  testOutcome: string;
}

export const emptyForm: SendForm = {
  from: "",
  to: "",
  cc: "",
  bcc: "",
  replyTo: "",
  delivery: "",
  subject: "",
  content: "own",
  html: "",
  text: "",
  templateId: "",
  locale: "",
  variables: "",
  files: [],
  headers: "",
  tags: "",
  metadata: "",
  trackOpens: "",
  trackClicks: "",
  scheduledAt: "",
  expiresAt: "",
  unsubscribeGroupId: "",
  providerAccountId: "",
  test: false,
  testOutcome: "delivered",
};

/** What cannot be put into a request at all, by the field. What is merely wrong, the API says. */
export type FormProblems = Partial<Record<"variables" | "metadata" | "headers", string>>;

/** One address as it is, several as a list. */
const listOf = (text: string): string | string[] | undefined => {
  const all = addresses(text);
  return all.length > 1 ? all : all[0];
};

const timeOf = (local: string): string | undefined => {
  const time = new Date(local);
  return local && !Number.isNaN(time.getTime()) ? time.toISOString() : undefined;
};

const choice = (value: "" | "yes" | "no"): boolean | undefined => (value === "" ? undefined : value === "yes");

function headersOf(text: string): Record<string, string> | undefined {
  const lines = text.split("\n").filter((line) => line.trim());
  const pairs = lines.map((line) => [line.slice(0, line.indexOf(":")).trim(), line.slice(line.indexOf(":") + 1).trim()] as const);
  return pairs.length > 0 ? Object.fromEntries(pairs) : undefined;
}

function problemsOf(form: SendForm): FormProblems {
  const problems: FormProblems = {};
  for (const name of ["variables", "metadata"] as const) {
    const { problem } = parseObject(form[name]);
    if (problem) problems[name] = `Line ${problem.line}: ${problem.message}`;
  }
  const wrong = form.headers.split("\n").find((line) => line.trim() && !line.includes(":"));
  if (wrong !== undefined) problems.headers = `“${wrong.trim()}” has no colon. Write a header as “Name: value”.`;
  return problems;
}

/** The request, with only what is given. */
export function requestOf(form: SendForm): { request: SendMessageRequest; problems: FormProblems } {
  const isOwn = form.content === "own";
  const [opens, clicks] = [choice(form.trackOpens), choice(form.trackClicks)];
  const tags = form.tags.split(",").map((tag) => tag.trim()).filter(Boolean);
  const request: SendMessageRequest = {
    from: form.from.trim() || undefined,
    to: listOf(form.to) ?? [],
    cc: listOf(form.cc),
    bcc: listOf(form.bcc),
    replyTo: listOf(form.replyTo),
    delivery: form.delivery || undefined,
    subject: form.subject || undefined,
    templateId: isOwn ? undefined : form.templateId || undefined,
    locale: isOwn ? undefined : form.locale || undefined,
    html: (isOwn && form.html) || undefined,
    text: (isOwn && form.text) || undefined,
    variables: parseObject(form.variables).value,
    attachments: form.files.length > 0 ? form.files.map(fileOf) : undefined,
    headers: headersOf(form.headers),
    tags: tags.length > 0 ? tags : undefined,
    metadata: parseObject(form.metadata).value,
    tracking: opens === undefined && clicks === undefined ? undefined : { opens, clicks },
    unsubscribeGroupId: form.unsubscribeGroupId || undefined,
    scheduledAt: timeOf(form.scheduledAt),
    expiresAt: timeOf(form.expiresAt),
    providerAccountId: form.providerAccountId || undefined,
    test: form.test || undefined,
    testOutcome: form.test && form.testOutcome !== "delivered" ? form.testOutcome : undefined,
  };
  return { request, problems: problemsOf(form) };
}

const fileOf = (file: FormFile) => ({
  filename: file.filename,
  content: file.content,
  contentType: file.contentType || undefined,
  contentId: file.contentId || undefined,
});
