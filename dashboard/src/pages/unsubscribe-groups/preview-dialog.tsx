import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { UnsubscribeGroup } from "waypost";
import { waypost } from "@/api";
import { Dialog } from "@/ui/dialog";
import { Select } from "@/ui/form";
import { MailFrame } from "@/ui/mail-frame";
import { LoadError, SkeletonRows } from "@/ui/page";
import { Segmented } from "@/ui/segmented";

/** The languages of recipients' pages. */
const LANGUAGES = [
  ["en", "English"],
  ["de", "German"],
  ["fr", "French"],
  ["es", "Spanish"],
] as const;
type Language = (typeof LANGUAGES)[number][0];

const SCREENS = [
  ["computer", "Computer"],
  ["phone", "Phone"],
] as const;
type Screen = (typeof SCREENS)[number][0];

const SIZE: Record<Screen, string> = { computer: "w-full h-[28rem]", phone: "w-[390px] h-[32rem] mx-auto" };

const SCHEMES = [
  ["light", "Light"],
  ["dark", "Dark"],
] as const;
type Scheme = (typeof SCHEMES)[number][0];

/** The page with the chosen appearance, in place of that of the browser, which a frame without rights cannot be told. */
const inScheme = (html: string, scheme: Scheme): string =>
  html.replace(/\(prefers-color-scheme:\s*dark\)/g, scheme === "dark" ? "(min-width:0)" : "(max-width:0)");

/** The page that a recipient sees after unsubscribing. */
export function PreviewDialog({ group, onClose }: { group: UnsubscribeGroup; onClose(): void }) {
  const [language, setLanguage] = useState<Language>("en");
  const [screen, setScreen] = useState<Screen>("computer");
  const [scheme, setScheme] = useState<Scheme>("light");
  const page = useQuery({
    queryKey: ["unsubscribe-groups", group.id, "page", language],
    queryFn: () => waypost.unsubscribeGroups.previewPage(group.id, { language }),
  });
  return (
    <Dialog
      open
      onClose={onClose}
      wide
      title={`The page of “${group.name}”`}
      description="What recipients see when they unsubscribe, in the language of their browser. The name and the colour are those of the settings."
    >
      <div className="space-y-4">
        <div className="flex flex-wrap items-center gap-2">
          <Select
            aria-label="Language"
            className="w-36"
            options={LANGUAGES}
            value={language}
            onChange={(event) => setLanguage(event.target.value as Language)}
          />
          <Segmented<Screen> label="Screen" options={SCREENS} value={screen} onChange={setScreen} />
          <Segmented<Scheme> label="Appearance" options={SCHEMES} value={scheme} onChange={setScheme} />
        </div>
        {page.isPending ? (
          <SkeletonRows />
        ) : page.isError ? (
          <LoadError error={page.error} retry={() => void page.refetch()} />
        ) : (
          <MailFrame
            html={inScheme(page.data.html, scheme)}
            title={`The unsubscribe page of ${group.name}`}
            dark={scheme === "dark"}
            className={SIZE[screen]}
          />
        )}
      </div>
    </Dialog>
  );
}
