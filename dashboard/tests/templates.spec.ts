import type { Page } from "@playwright/test";
import type { Template } from "waypost";
import { letSend, write } from "./editor";
import { expect, look, test, unique } from "./fixtures";

test.slow();

test.beforeAll(letSend);

const section = (content: string) => `<mj-section>\n  <mj-column>\n    <mj-text>${content}</mj-text>\n  </mj-column>\n</mj-section>`;
const mjml = (content: string) => `<mjml>\n<mj-body>\n${section(content)}\n</mj-body>\n</mjml>`;

const sees = (page: Page, text: string) => expect(page.locator("iframe")).toHaveAttribute("srcdoc", new RegExp(text));

test("a template is made, written with its mistakes at their lines, seen, and saved", async ({ page, waypost }) => {
  const name = unique("Welcome");
  await page.goto("/templates");
  await page.getByRole("button", { name: "New template" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: "Create" }).click();
  await expect(dialog.getByLabel("Name")).toHaveAttribute("aria-invalid", "true");
  await dialog.getByLabel("Name").fill(name);
  await look(page, "templates-new");
  await dialog.getByRole("button", { name: "Create" }).click();
  await expect(page.getByRole("heading", { name })).toBeVisible();
  await expect(page.getByText("Not saved yet")).toBeVisible();

  // A mistake is marked at its line, and told in words.
  await write(page, "MJML source", "<mjml>\n<mj-body>\n<mj-foo>x</mj-foo>\n</mj-body>\n</mjml>");
  await expect(page.getByText("MJML, line 3:")).toBeVisible();
  await expect(page.locator(".cm-line").nth(2).locator(".cm-lintRange-error")).toHaveText("<mj-foo>x</mj-foo>");
  await look(page, "template-mistake");

  await write(page, "MJML source", mjml("Hello {{name}}, you are {{age}}"));
  await page.getByLabel("Subject").fill("Welcome, {{name}}");
  await page.getByRole("tab", { name: "Sample data" }).click();
  await write(page, "Sample data", '{ "name": "Ada", "age": 36 }');
  await sees(page, "Hello Ada, you are 36");
  await expect(page.getByTestId("subject")).toHaveText("Welcome, Ada");
  for (const view of ["Phone", "Dark", "Text"]) {
    await page.getByRole("radio", { name: view }).click();
    await expect(page).toHaveURL(new RegExp(`view=${view.toLowerCase()}`));
  }
  await expect(page.getByLabel("Preview").getByText("Hello Ada, you are 36")).toBeVisible();
  await page.getByRole("radio", { name: "Desktop" }).click();

  await page.getByRole("tab", { name: "Schema" }).click();
  await write(page, "Schema of the variables", '{ "type": }');
  await expect(page.getByText("The schema is not valid JSON.")).toBeVisible();
  await expect(page.getByRole("button", { name: "Save as a new version" })).toBeDisabled();
  await write(page, "Schema of the variables", '{ "type": "object", "required": ["name"] }');
  await page.getByRole("button", { name: "Save as a new version" }).click();
  await expect(page.getByText("Version 1, as it is saved")).toBeVisible();
  const all = await waypost.templates.list({ limit: 100 });
  const template = await waypost.templates.get(all.data.find((one) => one.name === name)!.id);
  expect(template.currentVersion).toMatchObject({ versionNumber: 1, subject: "Welcome, {{name}}", isTextGenerated: true, variablesSchema: { required: ["name"] } });
});

/** A template of two versions, in a layout that includes a partial. */
async function shop(waypost: import("waypost").Waypost): Promise<{ template: Template; layout: Template; partial: Template }> {
  const partial = await waypost.templates.create({ name: unique("footer"), type: "PARTIAL" });
  await waypost.templates.versions.create(partial.id, { htmlContent: "", mjmlSource: section("12 Harbour Street") });
  const layout = await waypost.templates.create({ name: unique("Frame"), type: "LAYOUT" });
  await waypost.templates.versions.create(layout.id, { htmlContent: "", mjmlSource: `<mjml>\n<mj-body>\n{{{@content}}}\n{{> ${partial.name}}}\n</mj-body>\n</mjml>` });
  const template = await waypost.templates.create({ name: unique("Order"), description: "Sent when an order is paid", tags: ["orders"] });
  const version = (subject: string, text: string) =>
    waypost.templates.versions.create(template.id, { htmlContent: "", mjmlSource: section(text), subject, from: "shop@example.com", layoutId: layout.id });
  await version("Your order", "Thank you, {{name}}");
  await version("Your order {{number}}", "Many thanks, {{name}}");
  return { template, layout, partial };
}

test("the list is filtered, and says where layouts and partials are used", async ({ page, waypost }) => {
  const { template, layout, partial } = await shop(waypost);
  await page.goto("/templates");
  await page.getByLabel("Name, description or id").fill(layout.name);
  await expect(page.getByRole("row", { name: layout.name })).toContainText("1 template");
  await expect(page.getByRole("row", { name: template.name })).toHaveCount(0);
  await page.getByLabel("Name, description or id").fill(unique("nothing"));
  await expect(page.getByRole("heading", { name: "No template matches" })).toBeVisible();
  await page.getByRole("button", { name: "Clear the filters" }).click();
  await page.getByLabel("Type").selectOption("PARTIAL");
  await expect(page.getByRole("row", { name: partial.name })).toContainText("2 templates");
  await look(page, "templates");
  // What the URL says, a reload shows.
  await page.reload();
  await expect(page.getByLabel("Type")).toHaveValue("PARTIAL");
  await page.getByRole("row", { name: partial.name }).getByRole("link", { name: "2 templates" }).click();
  await expect(page.getByRole("row", { name: template.name })).toBeVisible();
  await look(page, "template-uses");
});

test("versions are compared, and one is rolled back to", async ({ page, waypost }) => {
  const { template } = await shop(waypost);
  await page.goto(`/templates/${template.id}?tab=versions`);
  await page.getByRole("button", { name: "The last two" }).click();
  await expect(page.getByRole("cell", { name: "Your order {{number}}" })).toBeVisible();
  await expect(page.locator(".cm-deletedChunk").first()).toContainText("Thank you, {{name}}");
  await look(page, "template-versions");
  await page.getByRole("button", { name: /^Roll back to it ?: version 1$/ }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Roll back" }).click();
  await expect(page.getByRole("row", { name: /^1 Current/ })).toBeVisible();
  expect((await waypost.templates.get(template.id)).currentVersion).toMatchObject({ versionNumber: 1 });

  await page.getByRole("button", { name: "Show version 2" }).click();
  await sees(page, "Many thanks");
  await look(page, "template-version");
  await page.getByRole("button", { name: "Edit from this version" }).click();
  await expect(page.getByText("You edit version 2. Messages are made from version 1.")).toBeVisible();
});

test("a language is added, and what is not saved is not lost without a question", async ({ page, waypost }) => {
  const { template } = await shop(waypost);
  await page.goto(`/templates/${template.id}`);
  await sees(page, "Many thanks");
  await page.getByRole("button", { name: "Language", exact: true }).click();
  await page.getByRole("dialog").getByLabel("Language tag").fill("de-AT");
  await page.getByRole("button", { name: "Write its version" }).click();
  await expect(page.getByText("There is no version in this language yet.")).toBeVisible();
  await page.getByLabel("Subject").fill("Ihre Bestellung {{number}}");
  await write(page, "MJML source", section("Vielen Dank, {{name}}"));
  await sees(page, "Vielen Dank");
  // The layout and its partial stand around what is not saved yet.
  await sees(page, "12 Harbour Street");
  await look(page, "template-editor");

  await page.getByRole("tab", { name: "Details" }).click();
  await expect(page.getByRole("dialog")).toContainText("Leave without saving?");
  await page.getByRole("button", { name: "Stay here" }).click();
  await page.getByRole("button", { name: "Save as a new version" }).click();
  await expect(page.getByText("Version 3, as it is saved")).toBeVisible();
  const found = await waypost.templates.get(template.id);
  expect(found.currentVersions).toContainEqual(expect.objectContaining({ locale: "de-AT", versionNumber: 3 }));
  await page.getByRole("tab", { name: "Details" }).click();
  await look(page, "template-details");
});

test("a partial is previewed in a mail, and one that others use is not removed", async ({ page, waypost }) => {
  const { partial, template } = await shop(waypost);
  await page.goto(`/templates/${partial.id}`);
  await sees(page, "12 Harbour Street");
  await write(page, "MJML source", section("14 Harbour Street"));
  await sees(page, "14 Harbour Street");
  await page.getByRole("button", { name: "Save as a new version" }).click();
  await expect(page.getByText("Version 2, as it is saved")).toBeVisible();
  expect((await waypost.templates.preview(template.id)).html).toContain("14 Harbour Street");
  await page.getByRole("tab", { name: "Details" }).click();
  await page.getByRole("button", { name: "Remove" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Remove the partial" }).click();
  await expect(page.getByRole("dialog").getByRole("alert")).toBeVisible();
});

test("a test goes to oneself, and leads to its message", async ({ page, waypost }) => {
  const { template } = await shop(waypost);
  await page.goto(`/templates/${template.id}`);
  await page.getByRole("button", { name: "Send a test" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("To").fill("ada@example.org");
  await dialog.getByLabel("Variables").fill('{ "name": "Ada", "number": "A-7" }');
  await dialog.getByText("As curl or SDK code").click();
  await expect(dialog.getByText(`/v1/templates/${template.id}/test-send`)).toBeVisible();
  await look(page, "template-test");
  await dialog.getByRole("button", { name: "Send the test" }).click();
  const link = dialog.getByRole("link", { name: "Follow the message" });
  const id = (await link.getAttribute("href"))!.split("/").at(-1)!;
  expect(await waypost.messages.get(id)).toMatchObject({ subject: "[Test] Your order A-7", templateId: template.id });
});
