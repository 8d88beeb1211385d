/** Texts and values as literals of the shell and of each language. */

/** A file's content in a request: a sample reads the file, in place of its content in base64. */
export class FileContent {
  constructor(readonly filename: string) {}
}

export type Value = string | number | boolean | null | undefined | FileContent | readonly Value[] | { readonly [name: string]: Value };
export type Fields = { readonly [name: string]: Value };

export const isFields = (value: Value): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof FileContent);

export const isList = (value: Value): value is readonly Value[] => Array.isArray(value);

/** The fields that are given. */
export const given = (fields: Fields): [string, Exclude<Value, undefined>][] =>
  Object.entries(fields).filter((entry): entry is [string, Exclude<Value, undefined>] => entry[1] !== undefined);

const INDENT = "  ";
const indented = (text: string, indent: string): string => text.replaceAll("\n", `\n${indent}`);

/**
 * What no source should hold as it is: control characters, the byte order mark (Go refuses it), what turns the direction of
 * a line (Rust refuses it), line separators, and halves of a surrogate pair.
 */
// Control characters are the point
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

const SHORT: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

function escaped(text: string, code: (hex: string) => string): string {
  const marked = text.replaceAll("\\", "\\\\").replaceAll('"', '\\"');
  return marked.replace(UNSAFE, (char) => SHORT[char] ?? code(char.charCodeAt(0).toString(16).padStart(4, "0")));
}

/** A text in double quotes, for JSON, JavaScript and Python. */
export const quoted = (text: string): string => `"${escaped(text, (hex) => `\\u${hex}`)}"`;

/** Go and Rust have no halves of surrogate pairs in texts. */
const whole = (hex: string): string => (/^d[89a-f]/.test(hex) ? "fffd" : hex);

/** Whether a text is better read over several lines, and holds nothing that must be escaped. */
const isLong = (text: string): boolean => text.includes("\n") && !(text.replaceAll(/[\n\t]/g, "").match(UNSAFE) ?? []).length;

export const typescriptText = (text: string): string =>
  isLong(text) ? `\`${text.replaceAll("\\", "\\\\").replaceAll("`", "\\`").replaceAll("${", "\\${")}\`` : quoted(text);

export const pythonText = (text: string): string =>
  isLong(text) ? `"""${text.replaceAll("\\", "\\\\").replaceAll('"""', '\\"\\"\\"').replace(/"$/, '\\"')}"""` : quoted(text);

export const goText = (text: string): string =>
  isLong(text) && !text.includes("`") ? `\`${text}\`` : `"${escaped(text, (hex) => `\\u${whole(hex)}`)}"`;

export function rustText(text: string): string {
  if (!isLong(text)) return `"${escaped(text, (hex) => `\\u{${whole(hex)}}`)}"`;
  let hashes = "#";
  while (text.includes(`"${hashes}`)) hashes += "#";
  return `r${hashes}"${text}"${hashes}`;
}

/** A word of the shell, in single quotes where it needs them. */
export const shellWord = (text: string): string => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

interface Style {
  text(text: string): string;
  number(number: number): string;
  words: readonly [yes: string, no: string, none: string];
  file(filename: string): string;
  list(items: readonly string[], indent: string): string;
  object(entries: readonly (readonly [name: string, value: string])[], indent: string): string;
}

/** Items on one line if they are short, else one a line. */
export function laidOut(items: readonly string[], [open, close]: readonly [string, string], indent: string, options: { unit?: string; comma?: boolean; pad?: string } = {}): string {
  const { unit = INDENT, comma = true, pad = "" } = options;
  if (items.length === 0) return open + close;
  const line = `${open}${pad}${items.join(", ")}${pad}${close}`;
  if (line.length <= 72 && !line.includes("\n")) return line;
  const lines = items.map((item) => `${indent}${unit}${item}`).join(",\n");
  return `${open}\n${lines}${comma ? "," : ""}\n${indent}${close}`;
}

/** A value of any depth in a style. */
export function literal(value: Value, style: Style, indent = "", unit = INDENT): string {
  if (value === null || value === undefined) return style.words[2];
  if (typeof value === "string") return style.text(value);
  if (typeof value === "number") return style.number(value);
  if (typeof value === "boolean") return style.words[value ? 0 : 1];
  if (value instanceof FileContent) return style.file(value.filename);
  const inner = indent + unit;
  if (isList(value)) return style.list(value.map((item) => literal(item, style, inner, unit)), indent);
  return style.object(given(value as Fields).map(([name, item]) => [name, literal(item, style, inner, unit)] as const), indent);
}

/** JSON that a person reads. A file's content is `file(name)`, which must be a JSON text. */
export function json(value: Value, file: (filename: string) => string): string {
  if (value instanceof FileContent) return file(value.filename);
  if (isList(value)) {
    const items = value.map((item) => INDENT + indented(json(item, file), INDENT));
    return items.length ? `[\n${items.join(",\n")}\n]` : "[]";
  }
  if (isFields(value)) {
    const items = given(value).map(([name, item]) => `${INDENT}${quoted(name)}: ${indented(json(item, file), INDENT)}`);
    return items.length ? `{\n${items.join(",\n")}\n}` : "{}";
  }
  return typeof value === "string" ? quoted(value) : JSON.stringify(value ?? null);
}

const WORDS = ["true", "false", "null"] as const;
const NAME = /^[A-Za-z_$][\w$]*$/;

export const TYPESCRIPT: Style = {
  text: typescriptText,
  number: String,
  words: WORDS,
  file: (filename) => `readFileSync(${quoted(filename)}).toString("base64")`,
  list: (items, indent) => laidOut(items, ["[", "]"], indent),
  object: (entries, indent) =>
    laidOut(entries.map(([name, value]) => `${NAME.test(name) ? name : quoted(name)}: ${value}`), ["{", "}"], indent, { pad: " " }),
};

export const PYTHON: Style = {
  text: pythonText,
  number: String,
  words: ["True", "False", "None"],
  file: (filename) => `b64encode(Path(${quoted(filename)}).read_bytes()).decode()`,
  list: (items, indent) => laidOut(items, ["[", "]"], indent, { unit: "    " }),
  object: (entries, indent) => laidOut(entries.map(([name, value]) => `${quoted(name)}: ${value}`), ["{", "}"], indent, { unit: "    " }),
};

export const GO: Style = {
  text: goText,
  // A constant that is no int would not compile as one.
  number: (number) => (Number.isInteger(number) && !Number.isSafeInteger(number) ? `float64(${number})` : String(number)),
  words: ["true", "false", "nil"],
  file: () => "content",
  list: (items, indent) => laidOut(items, ["[]any{", "}"], indent, { unit: "\t" }),
  object: (entries, indent) => laidOut(entries.map(([name, value]) => `${goText(name)}: ${value}`), ["map[string]any{", "}"], indent, { unit: "\t" }),
};

/** What stands within `json!(…)`. */
export const RUST: Style = {
  text: rustText,
  // A number without a type is an i32.
  number(number) {
    if (!Number.isInteger(number)) return `${number}_f64`;
    if (!Number.isSafeInteger(number)) return `${number.toExponential()}_f64`.replace("e+", "e");
    return Math.abs(number) > 2_147_483_647 ? `${number}_i64` : String(number);
  },
  words: WORDS,
  file: () => "content",
  list: (items, indent) => laidOut(items, ["[", "]"], indent, { unit: "    " }),
  object: (entries, indent) => laidOut(entries.map(([name, value]) => `${rustText(name)}: ${value}`), ["{", "}"], indent, { unit: "    ", pad: " " }),
};
