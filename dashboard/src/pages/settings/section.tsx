import type { ReactNode } from "react";
import { Button } from "@/ui/button";
import { Form } from "@/ui/form";
import { Card } from "@/ui/page";

interface SectionProps {
  title: string;
  description?: ReactNode;
  children: ReactNode;
  /** Whether the form differs from what is saved. */
  changed: boolean;
  save: { mutate(): void; isPending: boolean; error: unknown };
  /** Called in place of `save`, where saving asks a question first. */
  ask?: (() => void) | undefined;
  /** What a person should know about the change, beside the button. */
  note?: ReactNode;
}

/** A card with some of the settings, which are saved together. */
export function Section({ title, description, children, changed, save, ask, note }: SectionProps) {
  return (
    <Card title={title} description={description}>
      <Form error={save.error} onSubmit={() => changed && (ask ?? save.mutate)()} label={title}>
        {children}
        <div className="-mx-4 -mb-4 flex flex-wrap items-center justify-between gap-3 rounded-b-lg border-t border-line bg-sunken px-4 py-3 sm:-mx-5 sm:-mb-5 sm:px-5">
          <p className="min-w-0 flex-1 text-[13px] text-text-3">{note}</p>
                    <Button small type="submit" kind={changed ? "primary" : "secondary"} disabled={!changed} busy={save.isPending}>
            Save
          </Button>
        </div>
      </Form>
    </Card>
  );
}
