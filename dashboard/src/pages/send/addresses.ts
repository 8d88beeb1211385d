/**
 * The addresses in a field, which stand between commas, semicolons or line breaks. A comma within quotes belongs to a
 * display name: `"Lovelace, Ada" <ada@example.org>`.
 */
export function addresses(text: string): string[] {
  const found: string[] = [];
  let current = "";
  let quoted = false;
  for (const char of text) {
    if (char === '"') quoted = !quoted;
    if (!quoted && (char === "," || char === ";" || char === "\n")) {
      found.push(current);
      current = "";
    } else current += char;
  }
  found.push(current);
  return found.map((one) => one.trim()).filter(Boolean);
}
