import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import type { TemplateDetail, TemplateVersion } from "waypost";
import { waypost } from "@/api";
import { useMay } from "@/session";
import { Button } from "@/ui/button";
import { Copyable } from "@/ui/copy";
import { Dialog } from "@/ui/dialog";
import { Editor } from "@/ui/editor";
import { parseObject, prettyJson } from "@/ui/editor/json";
import { Facts } from "@/ui/facts";
import { LoadError, Skeleton } from "@/ui/page";
import { Tabs } from "@/ui/tabs";
import { Time } from "@/ui/time";
import { Mail, ViewChoice } from "./preview-pane";
import type { View } from "./search";
import { versionQuery } from "./queries";
import { firstSample, keptSample } from "./sample-data";
import { localeName } from "./words";

interface VersionDialogProps {
  template: TemplateDetail;
  versionId: string;
  isCurrent: boolean;
  onClose(): void;
}

/** A version as it is stored. */
export function VersionDialog({ template, versionId, isCurrent, onClose }: VersionDialogProps) {
  const navigate = useNavigate({ from: "/templates/$id" });
  const canEdit = useMay()("TEMPLATES_WRITE");
  const found = useQuery(versionQuery(template.id, versionId));
  const version = found.data;
  const title = version ? `Version ${version.versionNumber}${isCurrent ? ", current" : ""}` : "Version";
  return (
    <Dialog open wide onClose={onClose} title={title} description={version && localeName(version.locale)}>
      {found.isError && <LoadError error={found.error} retry={() => void found.refetch()} />}
      {found.isPending && <Skeleton className="h-64 w-full" />}
      {version && (
        <div className="space-y-4">
          <Tabs tabs={tabsOf(template, version)} />
          {canEdit && (
            <div className="flex justify-end">
              <Button onClick={() => void navigate({ search: { locale: version.locale ?? undefined, version: version.id } })}>Edit from this version</Button>
            </div>
          )}
        </div>
      )}
    </Dialog>
  );
}

function tabsOf(template: TemplateDetail, version: TemplateVersion) {
  const source = version.mjmlSource ?? version.htmlContent;
  const language = version.mjmlSource === null ? "HTML" : "MJML";
  const preview = { value: "preview", label: "Preview", content: <StoredPreview version={version} /> };
  const facts = { value: "facts", label: "Details", content: <VersionFacts version={version} /> };
  const code = (value: string, label: string, text: string, as: "html" | "text" | "json") => ({
    value,
    label,
    content: <Editor language={as} label={label} value={text} readOnly className="h-96" />,
  });
  return [
    ...(template.type === "TEMPLATE" ? [preview] : []),
    code("source", language, source, "html"),
    ...(version.textContent ? [code("text", version.isTextGenerated ? "Text, made from the HTML" : "Text", version.textContent, "text")] : []),
    ...(version.variablesSchema ? [code("schema", "Schema", prettyJson(version.variablesSchema), "json")] : []),
    facts,
  ];
}

function StoredPreview({ version }: { version: TemplateVersion }) {
  const [view, setView] = useState<View>("desktop");
  const variables = parseObject(keptSample(version.templateId) ?? firstSample(version.variablesSchema ?? undefined, version.htmlContent)).value;
  const preview = useQuery({
    queryKey: ["templates", version.templateId, "versions", version.id, "preview", variables],
    queryFn: () => waypost.templates.preview(version.templateId, { versionId: version.id, variables }),
  });
  if (preview.isError) return <LoadError error={preview.error} retry={() => void preview.refetch()} />;
  if (!preview.data) return <Skeleton className="h-64 w-full" />;
  return (
    <div className="space-y-3">
      <ViewChoice view={view} onView={setView} />
      {preview.data.subject && <p className="font-medium">{preview.data.subject}</p>}
      <Mail html={preview.data.html} text={preview.data.text} view={view} />
    </div>
  );
}

function VersionFacts({ version }: { version: TemplateVersion }) {
  return (
    <Facts
      facts={[
        ["Id", <Copyable key="id" text={version.id} label="Copy the id" />],
        ["Created", <Time key="at" at={version.createdAt} />],
        ["Subject", version.subject ?? "–"],
        ["Preheader", version.preheader ?? "–"],
        ["From", version.from ?? "–"],
        ["Reply-to", version.replyTo.join(", ") || "–"],
        ["Parts in it", version.parts.map((part) => `${part.name} (version ${part.versionNumber})`).join(", ") || "none"],
      ]}
    />
  );
}
