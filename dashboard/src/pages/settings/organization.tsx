import { useState } from "react";
import type { Settings } from "waypost";
import { Field, Input } from "@/ui/form";
import { Button } from "@/ui/button";
import { Section } from "./section";
import { useSaveSettings } from "./settings";

const HEX = /^#[0-9a-f]{6}$/i;
/** What the browser's colour picker shows while there is no colour. */
const NO_COLOR = "#4f46e5";

/** The organization's name, and the colour of the pages that recipients see. */
export function OrganizationSection({ settings }: { settings: Settings }) {
  const [name, setName] = useState(settings.name);
  const [color, setColor] = useState(settings.brandColor ?? "");
  const save = useSaveSettings(() => ({ name: name.trim(), brandColor: color.trim() || null }));
  return (
    <Section
      title="Organization"
      description="Recipients see both on the pages where they unsubscribe."
      changed={name !== settings.name || color !== (settings.brandColor ?? "")}
      save={save}
    >
      <Field label="Name" path="name">
        {(control) => <Input {...control} maxLength={255} value={name} onChange={(event) => setName(event.target.value)} />}
      </Field>
      <Field label="Brand colour" path="brandColor" aside="optional" hint="Such as #0f766e. Waypost picks black or white text on it, so that it can be read.">
        {(control) => (
          <div className="flex flex-wrap items-center gap-2">
            <input
              type="color"
              aria-label="Pick the brand colour"
              value={HEX.test(color) ? color : NO_COLOR}
              onChange={(event) => setColor(event.target.value)}
              className="h-9 w-12 rounded-md border border-line-strong/60 bg-surface p-1"
            />
            <Input {...control} className="w-36! font-mono" value={color} onChange={(event) => setColor(event.target.value)} placeholder="None" />
            {color && (
              <Button small kind="quiet" onClick={() => setColor("")}>
                No colour
              </Button>
            )}
          </div>
        )}
      </Field>
    </Section>
  );
}
