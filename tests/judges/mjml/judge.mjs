// judge.mjs SOURCES : prints a line for each difference, then "N passed, M failed". KEEP=FOLDER stores both outputs
// there.
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import mjml2html from "mjml";
import { parse } from "parse5";
import { chromium } from "playwright-core";

const WIDTHS = [375, 700];
const TOLERANCE_PX = 2;
const DIFFERENCES_MAX = 8;

// The allowed differences, which sources/differences.mjml shows: docs/templates.md describes them.
const ALLOWED = [
  // The compiler prints no title of a button without a link; there is no attribute after which it could come.
  "<p> ours - | mjml title=A title",
  // Both create no link without an address; mjml still prints the address.
  "<p> ours - | mjml href=",
  // The compiler also separates the outer table if only the inner one is round. There is no border to see.
  "<table> ours border-collapse:separate | mjml -",
  // The compiler does not subtract an inner border from the width of a picture.
  "<td> ours width:330px | mjml width:324px",
  // The compiler uses 32-bit numbers: 33.33333333333333 % of 600 px are 200 px, and slightly less with 64 bits.
  "<td> ours width:200px | mjml width:199px",
  // The compiler does not subtract a fractional padding in a unit other than px from the width of a picture.
  "<td> ours width:600px | mjml width:596px",
  // The compiler keeps the fraction of a group's percentage.
  "<div> ours class=mj-column-per-33.33 mj-outlook-group-fix | mjml class=mj-column-per-33 mj-outlook-group-fix",
  // The compiler does not subtract the padding of a hero from the width of a carousel, which never exceeds its
  // container.
  "<img> ours width:600px; width=600 | mjml width:590px; width=590",
  // A value that is no number is left out.
  "<td> ours - | mjml padding-bottom:NaN%",
];
const ALLOWED_IN = "differences.mjml";

async function waypost(path, body) {
  const response = await fetch(process.env.WAYPOST_URL + path, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${process.env.WAYPOST_API_KEY}` },
    body: JSON.stringify(body),
  });
  const answer = await response.json();
  if (response.status !== 201) throw new Error(`${response.status} ${JSON.stringify(answer)}`);
  return answer.data ?? answer;
}

const number = (text) => String(Math.round(parseFloat(text) * 100) / 100);
const plain = (value) =>
  value.replace(/\s+/g, " ").trim().replace(/(?<![#\w])(\d*\.\d+|\d+)/g, number).replace(/\b0(px|%)/g, "0");

// mjml repeats some properties; the last one counts. A colon or a semicolon in quotes or brackets belongs to the value.
function style(text) {
  const properties = new Map();
  for (const part of text.match(/(?:[^;("']|\([^)]*\)|"[^"]*"|'[^']*')+/g) ?? []) {
    const at = part.indexOf(":");
    if (at < 0) continue;
    const name = part.slice(0, at).trim().toLowerCase();
    properties.set(name, plain(part.slice(at + 1).replace(/"/g, "'").replace(/\s*,\s*/g, ",")));
  }
  return [...properties].map(([name, value]) => `${name}:${value}`);
}

// mjml generates random ids of carousels and menus, and names columns after their width.
const named = (text) =>
  text
    .replace(/(mj-carousel-)(?:radio-)?[0-9a-f]{8,16}/g, "$1#")
    .replace(/\b[0-9a-f]{16}\b|\b\d{8}\b/g, "#")
    .replace(/(mj-column-p(?:er|x)-)(\d+)(?:-(\d+))?/g, (_, begin, whole, part) => begin + number(`${whole}.${part ?? 0}`));

function attributes(node) {
  const lines = [];
  for (const { name, value } of node.attrs) {
    if (name === "style") lines.push(...style(value));
    else if (name === "class") lines.push(`class=${named(value).split(/\s+/).filter(Boolean).sort().join(" ")}`);
    else if (["width", "height"].includes(name)) lines.push(`${name}=${plain(value).replace(/px$/, "")}`);
    // There is no such attribute.
    else if (name === "vertical-align") continue;
    else lines.push(`${name}=${named(value)}`);
  }
  return lines.filter((line) => !/^(class|style|title)=$/.test(line)).sort();
}

// The elements and texts of a body without comments, and the relevant ones of a head.
function lines(html) {
  const found = [];
  const visit = (node, depth) => {
    if (node.nodeName === "#text") {
      let text = node.value.replace(/[ \t\r\n]+/g, " ").replace(/\}\} \{\{/g, "}}{{").trim();
      if (node.parentNode.tagName === "style") text = text.replace(/ ?([{}:;,]) ?/g, "$1");
      if (text) found.push({ tag: "text", parts: [`"${text}"`], line: `${depth} "${text}"` });
      return;
    }
    if (!node.tagName) return;
    const parts = attributes(node);
    found.push({ tag: `<${node.tagName}>`, parts, line: `${depth} <${node.tagName} ${parts.join(" ")}>` });
    for (const child of node.childNodes) visit(child, depth + 1);
  };
  const root = parse(html).childNodes.find((node) => node.tagName === "html");
  const [head, body] = ["head", "body"].map((name) => root.childNodes.find((node) => node.tagName === name));
  for (const node of head.childNodes) if (["title", "link", "meta"].includes(node.tagName)) visit(node, 0);
  visit(body, 0);
  return found;
}

async function boxes(page, html) {
  await page.setContent(html, { waitUntil: "load" });
  return page.evaluate(() =>
    [...document.body.querySelectorAll("a, img, p, div, td, h1, h2, h3, li, span")]
      .filter((element) => element.matches("img, a, p") || [...element.childNodes].some((child) => child.nodeType === 3 && child.data.trim()))
      .map((element) => {
        const { x, y, width, height } = element.getBoundingClientRect();
        return { what: element.tagName.toLowerCase(), text: element.textContent.trim().slice(0, 30), x, y, width, height };
      }),
  );
}

// The attributes that only one of two elements of the same name has.
function difference(ours, theirs) {
  if (ours?.tag !== theirs?.tag) return `ours ${ours?.line ?? "ends"} | mjml ${theirs?.line ?? "ends"}`;
  const alone = (one, other) => one.parts.filter((part) => !other.parts.includes(part)).join("; ") || "-";
  return `${ours.tag} ours ${alone(ours, theirs)} | mjml ${alone(theirs, ours)}`;
}

function compareTrees(ours, theirs) {
  const differences = [];
  const [a, b] = [lines(ours), lines(theirs)];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (a[i]?.line === b[j]?.line) {
      i++;
      j++;
      continue;
    }
    differences.push(difference(a[i], b[j]));
    // The nearest position from which two lines agree.
    let [di, dj] = [1, 1];
    search: for (let far = 1; far < 40; far++)
      for (let near = 0; near <= far; near++) {
        for (const [x, y] of [[near, far], [far, near]])
          if (a[i + x] && a[i + x].line === b[j + y]?.line && a[i + x + 1]?.line === b[j + y + 1]?.line) {
            [di, dj] = [x, y];
            break search;
          }
      }
    i += di;
    j += dj;
  }
  return differences;
}

async function compareBoxes(page, ours, theirs, width) {
  await page.setViewportSize({ width, height: 1000 });
  const [a, b] = [await boxes(page, ours), await boxes(page, theirs)];
  if (a.length !== b.length) return [`at ${width} px: ${a.length} boxes, mjml ${b.length}`];
  return a.flatMap((box, i) => {
    const off = ["x", "y", "width", "height"].filter((side) => Math.abs(box[side] - b[i][side]) > TOLERANCE_PX);
    const what = off.map((side) => `${side} ${Math.round(box[side])}, mjml ${Math.round(b[i][side])}`);
    return off.length ? [`at ${width} px: ${box.what} "${box.text}": ${what.join("; ")}`] : [];
  });
}

const folder = process.argv[2];
const template = await waypost("/v1/templates", { name: `mjml ${process.pid}` });
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const page = await browser.newPage();
// Nothing is loaded, and all pictures are the same.
const PICTURE = '<svg xmlns="http://www.w3.org/2000/svg" width="30" height="10"/>';
await page.route("**/*", (route) =>
  route.request().resourceType() === "image" ? route.fulfill({ contentType: "image/svg+xml", body: PICTURE }) : route.abort(),
);
let [passed, failed] = [0, 0];
for (const name of readdirSync(folder).filter((name) => name.endsWith(".mjml")).sort()) {
  const source = readFileSync(join(folder, name), "utf8");
  let differences;
  try {
    const theirs = mjml2html(source, { validationLevel: "skip" }).html;
    const version = await waypost(`/v1/templates/${template.id}/versions`, { htmlContent: "", mjmlSource: source });
    const ours = version.htmlContent;
    if (process.env.KEEP) {
      writeFileSync(join(process.env.KEEP, `${name}.ours.html`), ours);
      writeFileSync(join(process.env.KEEP, `${name}.theirs.html`), theirs);
    }
    differences = compareTrees(ours, theirs);
    for (const width of WIDTHS) differences.push(...(await compareBoxes(page, ours, theirs, width)));
  } catch (error) {
    differences = [String(error.message ?? error)];
  }
  if (name === ALLOWED_IN) {
    const gone = ALLOWED.filter((allowed) => !differences.includes(allowed)).map((allowed) => `is not so: ${allowed}`);
    differences = differences.filter((found) => !ALLOWED.includes(found)).concat(gone);
  }
  if (differences.length) failed++;
  else passed++;
  for (const difference of differences.slice(0, DIFFERENCES_MAX)) console.log(`${name}: ${difference}`);
  if (differences.length > DIFFERENCES_MAX) console.log(`${name}: and ${differences.length - DIFFERENCES_MAX} more`);
}
await browser.close();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed || !passed ? 1 : 0);
