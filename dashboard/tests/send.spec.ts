import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { SendMessageRequest } from "waypost";
import { sendSamples, testSendSamples } from "../src/pages/send/samples";
import { letSend, write } from "./editor";
import { expect, look, test, unique } from "./fixtures";
import { bodyOfCurl, callOfPython, callOfTypescript, directoryWith } from "./samples";

test.slow();

test.beforeAll(letSend);

test("a message is written, seen, sent as a test, and followed", async ({ page, waypost }) => {
  const subject = unique("Your order");
  await page.goto("/send");
  await expect(page.getByRole("heading", { name: "Send", exact: true })).toBeVisible();
  await look(page, "send-empty");

  await page.getByLabel("From").fill("Shop <shop@example.com>");
  await page.getByLabel("To", { exact: true }).fill('"Lovelace, Ada" <ada@example.org>, bob@example.org');
  await page.getByLabel("Subject").fill(subject);
  await write(page, "HTML", "<h1>Thank you</h1><p>It is on its way.</p>");
  await expect(page.locator("iframe")).toHaveAttribute("srcdoc", /<h1>Thank you<\/h1>/);

  await page.getByText("Attachments", { exact: true }).click();
  await page.getByLabel("Files", { exact: true }).setInputFiles({ name: "receipt.txt", mimeType: "text/plain", buffer: Buffer.from("1 cup") });
  await page.getByText("Tags, variables, headers and metadata").click();
  await page.getByLabel("Tags").fill("receipts, shop");
  await page.getByLabel("Headers").fill("X-Order: 1234");
  await page.getByLabel("Metadata").fill('{ "order": 1234 }');
  await page.getByRole("switch", { name: "Test" }).click();
  await page.getByLabel("What becomes of it").selectOption("bounced");
  await expect(page.getByText('"testOutcome": "bounced"')).toBeVisible();
  await look(page, "send-filled");

  await page.getByRole("button", { name: "Send the test" }).click();
  await expect(page.getByRole("dialog")).toContainText("The test is accepted");
  await look(page, "send-accepted");
  const link = page.getByRole("link", { name: "Follow the message" });
  const id = (await link.getAttribute("href"))!.split("/").at(-1)!;
  const message = await waypost.messages.get(id);
  expect(message).toMatchObject({ subject, fromAddress: "shop@example.com", test: true, tags: ["receipts", "shop"], metadata: { order: 1234 } });
  await expect.poll(async () => (await waypost.messages.get(id)).status).toBe("BOUNCED");
  await link.click();
  await expect(page).toHaveURL(new RegExp(`/messages/${id}`));
});

test("what the API refuses stands at its field, also in a folded part", async ({ page }) => {
  await page.goto("/send");
  await page.getByLabel("From").fill("nobody");
  await page.getByLabel("To", { exact: true }).fill("ada@example.org, bob");
  await page.getByText("Cc, Bcc and reply-to").click();
  await page.getByLabel("Cc", { exact: true }).fill("eve");
  await page.getByText("Cc, Bcc and reply-to").click();
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await expect(page.getByLabel("From")).toHaveAttribute("aria-invalid", "true");
  await expect(page.getByLabel("From")).toBeFocused();
  await expect(page.getByText("to.1: must be an email address")).toBeVisible();
  await expect(page.getByLabel("Cc", { exact: true })).toHaveAttribute("aria-invalid", "true");
  await look(page, "send-refused");

  // JSON that cannot be read is told before anything is sent.
  await page.getByText("Tags, variables, headers and metadata").click();
  await page.getByLabel("Metadata").fill('{ "order": }');
  await expect(page.getByText(/Metadata: Line 1: is not valid JSON/)).toBeVisible();
  await expect(page.getByRole("button", { name: "Send", exact: true })).toBeDisabled();
});

test("a template is chosen, filled in with its sample data, and sent", async ({ page, waypost }) => {
  const template = await waypost.templates.create({ name: unique("Receipt") });
  const variablesSchema = { type: "object", required: ["name"], properties: { name: { type: "string", examples: ["Ada"] } } };
  const version = { from: "shop@example.com", variablesSchema };
  await waypost.templates.versions.create(template.id, { ...version, htmlContent: "<p>Hello {{name}}</p>", subject: "Receipt for {{name}}" });
  await waypost.templates.versions.create(template.id, { ...version, locale: "de", htmlContent: "<p>Hallo {{name}}</p>", subject: "Beleg für {{name}}" });
  await page.goto(`/send?templateId=${template.id}`);
  const sees = (text: string) => expect(page.locator("iframe")).toHaveAttribute("srcdoc", new RegExp(`<p>${text}</p>`));
  await sees("Hello Ada");
  await page.getByLabel("Language").selectOption("de");
  await sees("Hallo Ada");
  await write(page, "Variables", '{ "name": "Grace" }');
  await sees("Hallo Grace");
  await look(page, "send-template");
  // A reload shows the same template and language.
  await page.reload();
  await sees("Hallo Ada");

  await page.getByLabel("To", { exact: true }).fill("ada@example.org");
  await page.getByRole("button", { name: "Send", exact: true }).click();
  const link = page.getByRole("link", { name: "Follow the message" });
  const id = (await link.getAttribute("href"))!.split("/").at(-1)!;
  expect(await waypost.messages.get(id)).toMatchObject({ subject: "Beleg für Ada", templateId: template.id });
});

/** Texts that break out of quotes where they can. */
const HARD = `'"\\ $HOME \`id\` $(id) \${x} {{name}} é 😀 \u2028 \ufeff \u202e \u0007 """ "# \r end\\`;

const hard: SendMessageRequest = {
  from: `"O'Neil, ${"`x`"} $USER" <shop@example.com>`,
  to: ["ada@example.org", HARD],
  cc: "bob@example.org",
  replyTo: ["help@example.com", "team@example.com"],
  delivery: "shared",
  subject: HARD,
  html: `<p title="a">\n\tIt's ${HARD.replaceAll(/[\r\u2028\ufeff\u202e\u0007]/g, "")}\n</p>"`,
  text: "Two\nlines \"\"\" and ` and ${x} and \\n",
  variables: { "a b": [1, 1.5, -3_000_000_000, 1e21, true, false, null, { class: HARD }], n: {}, l: [] },
  metadata: { replyTo: "stays", order_id: 7 },
  headers: { "X-Order": "12'34" },
  tags: ["a", "b"],
  tracking: { opens: false },
  scheduledAt: "2027-03-01T08:00:00.000Z",
  test: true,
  testOutcome: "bounced",
};
const file = Buffer.from([0, 255, 10, 39, 34, 92]);
const fileName = "in voice's $(id).bin";
const withFile: SendMessageRequest = {
  to: "ada@example.org",
  text: HARD,
  attachments: [{ filename: fileName, content: file.toString("base64"), contentType: "application/pdf", contentId: "doc" }],
};

test("the samples send exactly what the form holds, whatever stands in it", async () => {
  for (const request of [hard, withFile]) {
    const samples = Object.fromEntries(sendSamples(request, "https://mail.example.com"));
    const directory = directoryWith({ [fileName]: file });
    expect(bodyOfCurl(samples.curl!, directory)).toEqual(request);
    expect(await callOfTypescript(samples.TypeScript!, (name) => readFileSync(join(directory, name)))).toEqual([request]);
    const { kwargs } = callOfPython(samples.Python!, directory);
    expect(kwargs).toEqual(pythonNames(request));
  }
  const id = "01a1fbfa-b12e-763c-a29e-ce02006ba540";
  const body = { to: "ada@example.org", variables: { name: HARD } };
  const samples = Object.fromEntries(testSendSamples(id, body, "https://mail.example.com"));
  expect(bodyOfCurl(samples.curl!, directoryWith({}))).toEqual(body);
  expect(await callOfTypescript(samples.TypeScript!, () => file)).toEqual([id, body]);
  expect(callOfPython(samples.Python!, directoryWith({}))).toEqual({ args: [id], kwargs: body });
});

/** The fields in Python's names. */
function pythonNames({ from, replyTo, scheduledAt, testOutcome, attachments, ...rest }: SendMessageRequest): Record<string, unknown> {
  const files = attachments?.map(({ filename, content, contentType, contentId }) => ({ filename, content, content_type: contentType, content_id: contentId }));
  const all = { ...rest, from_: from, reply_to: replyTo, scheduled_at: scheduledAt, test_outcome: testOutcome, attachments: files };
  return JSON.parse(JSON.stringify(all));
}
