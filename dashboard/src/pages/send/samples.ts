/** A call as a command and as a program in each language, with exactly what a form holds. Pure functions. */

import type { SendMessageRequest, SendTemplateTestRequest } from "waypost";
import {
  type Fields,
  FileContent,
  GO,
  given,
  goText,
  isList,
  json,
  laidOut,
  literal,
  PYTHON,
  quoted,
  RUST,
  rustText,
  shellWord,
  TYPESCRIPT,
  type Value,
} from "./quoting";

export type Samples = readonly (readonly [label: string, text: string])[];

/** An operation with a body, and how the SDKs call it. */
interface Call {
  path: string;
  /** The id that stands before the body, if any. */
  id?: string;
  /** `["messages", "send"]` */
  method: readonly [resource: string, name: string];
  /** The name of the body's type. */
  type: string;
  /** The field that the Rust type is made of. */
  first: string;
  answer: string;
  fields: Fields;
}

/** The samples of `POST /v1/send`. A file is read where the program runs. */
export function sendSamples(request: SendMessageRequest, baseUrl: string): Samples {
  const attachments = request.attachments?.map((file) => ({
    ...file,
    content: file.content === undefined ? undefined : new FileContent(file.filename),
  }));
  const fields = { ...request, attachments } as unknown as Fields;
  return samples(
    { path: "/v1/send", method: ["messages", "send"], type: "SendMessageRequest", first: "to", answer: "message", fields },
    baseUrl,
  );
}

/** The samples of `POST /v1/templates/:id/test-send`. */
export function testSendSamples(id: string, request: SendTemplateTestRequest, baseUrl: string): Samples {
  const path = `/v1/templates/${encodeURIComponent(id)}/test-send`;
  const fields = request as unknown as Fields;
  return samples({ path, id, method: ["templates", "sendTest"], type: "SendTemplateTestRequest", first: "to", answer: "test", fields }, baseUrl);
}

const samples = (call: Call, baseUrl: string): Samples => [
  ["curl", curl(call, baseUrl)],
  ["TypeScript", typescript(call)],
  ["Python", python(call)],
  ["Go", go(call)],
  ["Rust", rust(call)],
];

const filesOf = (fields: Fields): string[] => {
  const attachments = isList(fields.attachments) ? fields.attachments : [];
  return attachments.flatMap((file) => Object.values(file as Fields)).filter((value) => value instanceof FileContent).map((file) => file.filename);
};

function curl({ path, fields }: Call, baseUrl: string): string {
  const head = `curl ${shellWord(baseUrl + path)} \\\n  -H "Authorization: Bearer $WAYPOST_API_KEY" \\\n  -H 'Content-Type: application/json' \\\n`;
  if (filesOf(fields).length === 0) return `${head}  --data-raw ${shellWord(json(fields, quoted))}\n`;
  // The shell puts the files in: the rest of the text is guarded from it.
  const names: string[] = [];
  const marked = json(fields, (filename) => `"\u0000${names.push(filename) - 1}\u0000"`);
  const guarded = marked.replaceAll(/[\\$`]/g, "\\$&");
  // The mark is a character that no JSON has
  const body = guarded.replaceAll(/\u0000(\d+)\u0000/g, (_, at) => `$(base64 < ${shellWord(names[Number(at)]!)} | tr -d '\\n')`);
  return `${head}  --data-binary @- <<JSON\n${body}\nJSON\n`;
}

function typescript({ id, method, answer, fields }: Call): string {
  const reads = filesOf(fields).length > 0 ? 'import { readFileSync } from "node:fs";\n' : "";
  const entries = given(fields).map(([name, value]) => `  ${name}: ${literal(value, TYPESCRIPT, "  ")},\n`);
  return `${reads}import { Waypost } from "waypost";

const waypost = new Waypost(); // WAYPOST_API_KEY and WAYPOST_URL
const ${answer} = await waypost.${method.join(".")}(${id === undefined ? "" : `${quoted(id)}, `}{
${entries.join("")}});
console.log(${answer});
`;
}

const snake = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** The names of a typed object in Python's style. What a person chose stays: headers, metadata, variables. */
const snaked = (value: Value): Value =>
  isList(value) ? value.map((item) => (typeof item === "object" && item !== null ? snaked(item) : item)) : Object.fromEntries(given(value as Fields).map(([name, item]) => [snake(name), item]));

function python({ id, method, answer, fields }: Call): string {
  const reads = filesOf(fields).length > 0 ? "from base64 import b64encode\nfrom pathlib import Path\n\n" : "";
  const entries = given(fields).map(([name, value]) => {
    const typed = name === "attachments" || name === "tracking" ? snaked(value) : value;
    return `    ${name === "from" ? "from_" : snake(name)}=${literal(typed, PYTHON, "    ", "    ")},\n`;
  });
  return `${reads}from waypost import Waypost

waypost = Waypost()  # WAYPOST_API_KEY and WAYPOST_URL
${answer} = waypost.${method.map(snake).join(".")}(
${id === undefined ? "" : `    ${quoted(id)},\n`}${entries.join("")})
print(${answer})
`;
}

const pascal = (name: string): string => name.charAt(0).toUpperCase() + name.slice(1);
const GO_NAMES: Readonly<Record<string, string>> = { cc: "CC", bcc: "BCC", html: "HTML", url: "URL" };
const goName = (name: string): string => GO_NAMES[name] ?? pascal(name).replace(/Id$/, "ID");
const texts = (value: Value): string[] => (isList(value) ? value : [value]).map((item) => String(item));

/** A field of a request in Go, whose types say more than JSON does. */
function goField(name: string, value: Value, indent: string, isTest: boolean): string {
  const strings = () => laidOut(texts(value).map(goText), ["{", "}"], indent, { unit: "\t" });
  const inner = `${indent}\t`;
  switch (name) {
    case "to":
      return isTest ? `waypost.Addresses${strings()}` : `waypost.To${laidOut(texts(value).map(goText), ["(", ")"], indent, { unit: "\t" })}`;
    case "cc":
    case "bcc":
    case "replyTo":
      return `waypost.Addresses${strings()}`;
    case "tags":
      return `[]string${strings()}`;
    case "headers":
      return `map[string]string${laidOut(given(value as Fields).map(([key, text]) => `${goText(key)}: ${goText(String(text))}`), ["{", "}"], indent, { unit: "\t" })}`;
    case "test":
      return `waypost.Value(${String(value)})`;
    case "testOutcome":
      return `waypost.TestOutcome${pascal(String(value))}`;
    case "delivery":
      return `waypost.DeliveryMode${pascal(String(value))}`;
    case "scheduledAt":
    case "expiresAt":
      return name;
    case "tracking":
      return `&waypost.Tracking{${given(value as Fields).map(([key, on]) => `${pascal(key)}: waypost.Value(${String(on)})`).join(", ")}}`;
    case "attachments":
      return `[]waypost.MessageAttachment{\n${(value as readonly Fields[]).map((file, at) => `${inner}{${goFile(file, at)}},\n`).join("")}${indent}}`;
    default:
      return literal(value, GO, indent, "\t");
  }
}

const goFile = (file: Fields, at: number): string =>
  given(file).map(([name, value]) => `${goName(name)}: ${value instanceof FileContent ? `content${at}` : goText(String(value))}`).join(", ");

/** As gofmt has them: the values of neighbours that take one line each stand below each other. */
function aligned(fields: readonly (readonly [name: string, text: string])[]): string[] {
  const isLine = (at: number) => fields[at]?.[1].includes("\n") === false;
  return fields.map(([name, text], at) => {
    if (!isLine(at)) return `\t\t${name}: ${text},\n`;
    let [first, last] = [at, at];
    while (isLine(first - 1)) first--;
    while (isLine(last + 1)) last++;
    const width = Math.max(...fields.slice(first, last + 1).map(([one]) => one.length));
    return `\t\t${name}: ${" ".repeat(width - name.length)}${text},\n`;
  });
}

const goCheck = "\tif err != nil {\n\t\tlog.Fatal(err)\n\t}\n";

function go({ id, method, type, answer, fields }: Call): string {
  const entries = given(fields);
  const times = entries.filter(([name]) => name === "scheduledAt" || name === "expiresAt");
  const files = (isList(fields.attachments) ? (fields.attachments as readonly Fields[]) : []).map((file) => file.content);
  const imports = ["context", "fmt", "log", ...(files.some((content) => content instanceof FileContent) ? ["os"] : []), ...(times.length > 0 ? ["time"] : [])];
  const before = [
    ...times.map(([name, value]) => `\t${name}, err := time.Parse(time.RFC3339, ${goText(String(value))})\n${goCheck}`),
    ...files.map((content, at) => (content instanceof FileContent ? `\tcontent${at}, err := os.ReadFile(${goText(content.filename)})\n${goCheck}` : "")),
  ];
  const isTest = type === "SendTemplateTestRequest";
  const lines = aligned(entries.map(([name, value]) => [goName(name), goField(name, value, "\t\t", isTest)] as const));
  return `package main

import (
${imports.map((name) => `\t"${name}"\n`).join("")}
	"waypost"
)

func main() {
	client, err := waypost.New() // WAYPOST_API_KEY and WAYPOST_URL
${goCheck}${before.join("")}	${answer}, err := client.${method.map(pascal).join(".")}(context.Background(), ${id === undefined ? "" : `${goText(id)}, `}&waypost.${type}{
${lines.join("")}	})
${goCheck}	fmt.Println(${answer})
}
`;
}

const rustTexts = (value: Value): string => {
  const all = texts(value).map(rustText);
  return isList(value) ? laidOut(all, ["[", "]"], "        ", { unit: "    " }) : all[0]!;
};

/** What a method of a request's builder is given in Rust. */
function rustField(name: string, value: Value): string {
  switch (name) {
    case "to":
    case "cc":
    case "bcc":
    case "replyTo":
    case "tags":
      return rustTexts(value);
    case "headers":
      return laidOut(given(value as Fields).map(([key, text]) => `(${rustText(key)}, ${rustText(String(text))})`), ["[", "]"], "        ", { unit: "    " });
    case "testOutcome":
      return `TestOutcome::${pascal(String(value))}`;
    case "delivery":
      return `DeliveryMode::${pascal(String(value))}`;
    case "scheduledAt":
    case "expiresAt":
      return `DateTime::parse_from_rfc3339(${rustText(String(value))})?`;
    case "tracking":
      return `Tracking::new()${given(value as Fields).map(([key, on]) => `.${key}(${String(on)})`).join("")}`;
    case "attachments":
      return laidOut((value as readonly Fields[]).map(rustFile), ["[", "]"], "        ", { unit: "    " });
    case "metadata":
    case "variables":
      return `json!(${literal(value, RUST, "        ", "    ")})`;
    default:
      return literal(value, RUST, "        ", "    ");
  }
}

function rustFile(file: Fields): string {
  const calls = given(file).filter(([name]) => name !== "filename").map(([name, value]) => {
    const text = value instanceof FileContent ? `STANDARD.encode(std::fs::read(${rustText(value.filename)})?)` : rustText(String(value));
    return `.${snake(name)}(${text})`;
  });
  return `MessageAttachment::new(${rustText(String(file.filename))})${calls.join("")}`;
}

const RUST_TYPES: readonly (readonly [field: string, type: string])[] = [
  ["attachments", "MessageAttachment"],
  ["delivery", "DeliveryMode"],
  ["testOutcome", "TestOutcome"],
  ["tracking", "Tracking"],
];

function rust({ id, method, type, first, answer, fields }: Call): string {
  const entries = given(fields);
  const has = (...names: string[]) => entries.some(([name]) => names.includes(name));
  const types = [...RUST_TYPES.filter(([field]) => has(field)).map(([, name]) => name), type].sort();
  const uses = [
    filesOf(fields).length > 0 && "use base64::{Engine as _, engine::general_purpose::STANDARD};\n",
    has("scheduledAt", "expiresAt") && "use waypost::chrono::DateTime;\n",
    has("metadata", "variables") && "use waypost::serde_json::json;\n",
    types.length === 1 ? `use waypost::{Waypost, types::${types[0]}};\n` : `use waypost::{\n    Waypost,\n    types::{${types.join(", ")}},\n};\n`,
  ];
  const calls = entries.filter(([name]) => name !== first).map(([name, value]) => `\n        .${snake(name)}(${rustField(name, value)})`);
  const send = `waypost.${snake(method[0])}().${snake(method[1])}(${id === undefined ? "" : `${rustText(id)}, `}&request).await?`;
  return `${uses.filter(Boolean).join("")}
#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let waypost = Waypost::from_env()?; // WAYPOST_API_KEY and WAYPOST_URL
    let request = ${type}::new(${rustField(first, fields[first])})${calls.join("")};
    let ${answer} = ${send};
    println!("{${answer}:?}");
    Ok(())
}
`;
}
