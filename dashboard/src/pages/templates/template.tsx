import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { Send } from "lucide-react";
import type { TemplateDetail } from "waypost";
import { useMay } from "@/session";
import { Badge } from "@/ui/badge";
import { buttonClass } from "@/ui/button";
import { NotAllowed } from "@/ui/not-allowed";
import { Card, Page, PageError, PageLoading } from "@/ui/page";
import { Tabs } from "@/ui/tabs";
import { Details } from "./details";
import { EditTab } from "./edit-tab";
import { templateQuery } from "./queries";
import { TestSend } from "./test-send";
import { Uses } from "./uses";
import { Versions } from "./versions";
import { typeName, typeTone } from "./words";
import type { TemplateSearch } from "./search";

const BACK = { to: "/templates", label: "Templates" };

export function TemplatePage({ id, search }: { id: string; search: TemplateSearch }) {
  const may = useMay();
  const found = useQuery({ ...templateQuery(id), enabled: may("TEMPLATES_READ") });
  if (!may("TEMPLATES_READ")) return <Page title="Template" back={BACK}><NotAllowed what="templates" /></Page>;
  if (found.isError && !found.data) return <PageError error={found.error} retry={() => void found.refetch()} />;
  if (!found.data) return <PageLoading />;
  return <Found template={found.data} search={search} />;
}

function Found({ template, search }: { template: TemplateDetail; search: TemplateSearch }) {
  const navigate = useNavigate({ from: "/templates/$id" });
  const canEdit = useMay()("TEMPLATES_WRITE");
  const tab = search.tab ?? "edit";
  return (
    <Page
      title={template.name}
      back={BACK}
      wide={tab === "edit"}
      description={template.description}
      heading={
        <span className="inline-flex flex-wrap items-center gap-2.5">
          {template.name}
          <Badge tone={typeTone(template.type)}>{typeName(template.type)}</Badge>
          {template.currentVersions.length === 0 && <Badge tone="amber">No version yet</Badge>}
        </span>
      }
      actions={<Actions template={template} locale={search.locale} />}
    >
      <Tabs
        value={tab}
        onChange={(next) => void navigate({ search: { tab: next === "edit" ? undefined : (next as TemplateSearch["tab"]) } })}
        tabs={[
          { value: "edit", label: canEdit ? "Editor" : "Content", content: <EditTab template={template} search={search} /> },
          { value: "versions", label: "Versions", content: <Card flush><Versions template={template} search={search} /></Card> },
          { value: "uses", label: template.type === "TEMPLATE" ? "Parts and use" : "Used in", content: <Uses template={template} /> },
          { value: "details", label: "Details", content: <Details template={template} /> },
        ]}
      />
    </Page>
  );
}

function Actions({ template, locale }: { template: TemplateDetail; locale: string | undefined }) {
  const may = useMay();
  if (template.type !== "TEMPLATE" || template.currentVersions.length === 0 || !may("SEND")) return null;
  return (
    <>
      <TestSend template={template} locale={locale} />
      <Link to="/send" search={{ templateId: template.id, locale }} className={buttonClass()}>
        <Send />
        Use it in a message
      </Link>
    </>
  );
}
