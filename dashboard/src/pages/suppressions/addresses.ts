/** Reads lists of addresses and CSV files, and keeps the line of each row, so that mistakes can be shown there. */

export interface Row {
  /** The line of the file or the text on which the row begins, from 1. */
  line: number;
  text: string;
}

export interface AddressList {
  /** The first row, which names the columns. */
  header: string;
  rows: Row[];
}

/** The rows of a CSV file. A quoted field may hold line breaks. */
export function csvRows(file: string): Row[] {
  const text = file.replace(/^\uFEFF/, "").replace(/\r\n?/g, "\n");
  const rows: Row[] = [];
  let [start, line, begin, quoted, fieldStart] = [0, 1, 1, false, true];
  const push = (end: number) => {
    const row = text.slice(start, end);
    if (row.trim()) rows.push({ line: begin, text: row });
    start = end + 1;
  };
  for (let at = 0; at < text.length; at++) {
    const char = text[at];
    if (quoted) {
      if (char === '"' && text[at + 1] === '"') at++;
      else if (char === '"') quoted = false;
    } else if (char === '"' && fieldStart) quoted = true;
    else if (char === "\n") push(at);
    fieldStart = !quoted && (char === "," || char === "\n");
    if (char === "\n") line++;
    if (start === at + 1) begin = line;
  }
  push(text.length);
  return rows;
}

const ADDRESS_COLUMNS = new Set(["email", "emailaddress", "address", "emailhash"]);

/** Whether a row names columns, one of them that of the address. The service reads the names in the same way. */
const namesColumns = (row: string): boolean =>
  row.split(",").some((name) => ADDRESS_COLUMNS.has(name.replace(/["_\- ]/g, "").toLowerCase()));

/** The single addresses of a text, one a line or with commas, semicolons or spaces between. */
export const addressesOf = (text: string): Row[] =>
  csvRows(text.replaceAll('"', "")).flatMap(({ line, text: row }) =>
    row
      .split(/[\s,;]+/)
      .filter(Boolean)
      .map((address) => ({ line, text: address })),
  );

/** A CSV file, or a plain list of addresses if the first row does not name the columns. */
export function readList(text: string): AddressList {
  const [first, ...rows] = csvRows(text);
  if (first && namesColumns(first.text)) return { header: first.text, rows };
  return { header: "email", rows: addressesOf(text) };
}
