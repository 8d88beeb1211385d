import { Link } from "@tanstack/react-router";
import { Mail, Puzzle } from "lucide-react";
import type { TemplateDetail, TemplatePart, TemplateUse } from "waypost";
import { waypost } from "@/api";
import { useMay } from "@/session";
import { Badge } from "@/ui/badge";
import { buttonClass } from "@/ui/button";
import { Card, Empty } from "@/ui/page";
import { PagedTable, usePaged } from "@/ui/paged";
import { SimpleTable } from "@/ui/table";
import { localeName, typeName, typeTone } from "./words";

const NAME = "font-medium hover:underline";

/** Of a layout or partial: the current versions that it is in. Of a template: its parts, and its messages. */
export function Uses({ template }: { template: TemplateDetail }) {
  return template.type === "TEMPLATE" ? <PartsAndUse template={template} /> : <UsedIn template={template} />;
}

function UsedIn({ template }: { template: TemplateDetail }) {
  const list = usePaged<TemplateUse>(["templates", template.id, "uses"], () => waypost.templates.listUses(template.id));
  const how = template.type === "PARTIAL" ? `Write {{> ${template.name}}} where it should stand.` : "Choose it as the layout of a template.";
  return (
    <Card title="Current versions with it in them" description="A new version of this part goes into all of them at once." flush>
      <PagedTable
        list={list}
        rowKey={(use) => use.versionId}
        label="Used in"
        empty={<Empty icon={<Puzzle />} title="Not used yet">{how}</Empty>}
        columns={[
          {
            head: "Name",
            width: "minmax(0, 2fr)",
            cell: (use) => (
              <Link to="/templates/$id" params={{ id: use.templateId }} search={{ locale: use.locale ?? undefined }} className={NAME}>
                {use.name}
              </Link>
            ),
          },
          { head: "Type", width: "6rem", cell: (use) => <Badge tone={typeTone(use.type)}>{typeName(use.type)}</Badge> },
          { head: "Language", wide: true, cell: (use) => localeName(use.locale) },
          { head: "Version", width: "4.5rem", align: "right", cell: (use) => use.versionNumber },
        ]}
      />
    </Card>
  );
}

function PartsAndUse({ template }: { template: TemplateDetail }) {
  const may = useMay();
  const parts = template.currentVersion?.parts ?? [];
  return (
    <div className="space-y-5">
      <Card title="Parts in the current version" description="Of the default language, also those within other parts." flush>
        {parts.length > 0 ? <Parts parts={parts} /> : <Empty icon={<Puzzle />} title="No layout and no partials">It stands alone. Choose a layout in the editor, or include a partial by its name.</Empty>}
      </Card>
      {may("METRICS_READ") && (
        <Card
          title="Messages"
          description="What was sent with this template, and what became of it."
          actions={
            <Link to={"/messages" as string} search={{ templateId: template.id } as never} className={buttonClass("secondary", true)}>
              <Mail />
              Show its messages
            </Link>
          }
        />
      )}
    </div>
  );
}

function Parts({ parts }: { parts: readonly TemplatePart[] }) {
  return (
    <SimpleTable head={["Name", "Type", "Version in it"]} label="Parts">
      {parts.map((part) => (
        <tr key={part.templateId}>
          <td>
            <Link to="/templates/$id" params={{ id: part.templateId }} className={NAME}>
              {part.name}
            </Link>
          </td>
          <td>
            <Badge tone={typeTone(part.type)}>{typeName(part.type)}</Badge>
          </td>
          <td className="tabular">{part.versionNumber}</td>
        </tr>
      ))}
    </SimpleTable>
  );
}
