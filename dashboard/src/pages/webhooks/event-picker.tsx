import { Button } from "@/ui/button";
import { Checkbox, Field } from "@/ui/form";
import { EVENT_GROUPS, EVENTS } from "./events";

interface PickerProps {
  chosen: ReadonlySet<string>;
  onChange(chosen: ReadonlySet<string>): void;
}

/** Chooses types of events, singly or by group. */
export function EventPicker({ chosen, onChange }: PickerProps) {
  const set = (types: readonly string[], on: boolean) => {
    const next = new Set(chosen);
    for (const type of types) on ? next.add(type) : next.delete(type);
    onChange(next);
  };
  const all = EVENTS.map((event) => event.type);
  return (
    <Field label="Events" path="events" aside={`${chosen.size} of ${all.length} chosen`}>
      {({ id, "aria-describedby": describedBy }) => (
        <div id={id} role="group" aria-label="Events" aria-describedby={describedBy} className="rounded-md border border-line">
          {EVENT_GROUPS.map(({ name, events }) => {
            const types = events.map((event) => event.type);
            const on = types.every((type) => chosen.has(type));
            return (
              <fieldset key={name} className="border-b border-line px-4 py-3 last:border-0">
                <legend className="sr-only">{name}</legend>
                <div className="mb-2 flex items-center justify-between">
                  <span aria-hidden className="text-xs font-medium text-text-3">
                    {name}
                  </span>
                  <Button small kind="quiet" className="-mr-2" onClick={() => set(types, !on)} aria-label={`${name}: ${on ? "none" : "all"}`}>
                    {on ? "None" : "All"}
                  </Button>
                </div>
                <div className="grid gap-x-6 gap-y-2 sm:grid-cols-2">
                  {events.map(({ type, label, when }) => (
                    <Checkbox key={type} label={label} hint={when} checked={chosen.has(type)} onChange={(value) => set([type], value)} />
                  ))}
                </div>
              </fieldset>
            );
          })}
        </div>
      )}
    </Field>
  );
}
