import { useNavigate } from "@tanstack/react-router";
import { Plus } from "lucide-react";
import { useState } from "react";
import type { TemplateDetail } from "waypost";
import { useMay } from "@/session";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { Field, Form, FormActions, Input, Select, Submit } from "@/ui/form";
import { Notice } from "@/ui/page";
import { localeName } from "./words";

/** Which language of the template is edited. */
export function Languages({ template, locale }: { template: TemplateDetail; locale: string }) {
  const navigate = useNavigate({ from: "/templates/$id" });
  const canEdit = useMay()("TEMPLATES_WRITE");
  const [adding, setAdding] = useState(false);
  const locales = [...new Set(["", locale, ...template.currentVersions.map((version) => version.locale ?? "")])];
  const isNew = locale !== "" && !template.currentVersions.some((version) => version.locale === locale);
  const open = (next: string) => void navigate({ search: (before) => ({ ...before, locale: next || undefined, version: undefined }) });
  return (
    <div className="space-y-3">
      <div className="flex flex-wrap items-center gap-2">
        <Select
          aria-label="Language"
          className="min-w-0 flex-1 sm:max-w-64"
          value={locale}
          onChange={(event) => open(event.target.value)}
          options={locales.map((one) => [one, localeName(one)] as const)}
        />
        {canEdit && (
          <Button onClick={() => setAdding(true)}>
            <Plus />
            Language
          </Button>
        )}
      </div>
      {isNew && canEdit && (
        <Notice>
          There is no version in this language yet. The editor begins with a copy; until you save, messages in it get the next less exact language, or the default.
        </Notice>
      )}
      {adding && (
        <AddLanguage
          onClose={() => setAdding(false)}
          onAdd={(next) => {
            setAdding(false);
            open(next);
          }}
        />
      )}
    </div>
  );
}

const TAG = /^[a-z]{2,3}(-[a-z0-9]{2,8})*$/i;

function AddLanguage({ onAdd, onClose }: { onAdd(locale: string): void; onClose(): void }) {
  const [tag, setTag] = useState("");
  const text = tag.trim();
  const isTag = TAG.test(text);
  return (
    <Dialog open onClose={onClose} title="Add a language" description="Sends that name the language get its version.">
      <Form onSubmit={() => isTag && onAdd(text)} error={undefined} label="Add a language">
        <Field label="Language tag" hint={isTag ? localeName(text) : "Such as de, de-AT or zh-Hant-TW."}>
          {(control) => <Input {...control} value={tag} onChange={(event) => setTag(event.target.value)} autoFocus autoCapitalize="off" spellCheck={false} />}
        </Field>
        <FormActions>
          <Submit disabled={!isTag}>Write its version</Submit>
          <Button onClick={onClose}>Cancel</Button>
        </FormActions>
      </Form>
    </Dialog>
  );
}
