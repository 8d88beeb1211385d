import { clsx } from "clsx";
import type { Permission } from "waypost";
import { useMay } from "@/session";
import { Checkbox, Field } from "@/ui/form";
import { PERMISSIONS, PRESETS, presetOf } from "./permissions";

interface PickerProps {
  chosen: ReadonlySet<string>;
  onChange(chosen: ReadonlySet<string>): void;
}

/** Chooses permissions: one of the usual sets, or each by itself. Nobody can give what they do not have. */
export function PermissionPicker({ chosen, onChange }: PickerProps) {
  const may = useMay();
  const mayGive = (permission: Permission) => may(permission);
  const present = presetOf(chosen, mayGive);
  const set = (permission: Permission, on: boolean) => {
    const next = new Set(chosen);
    if (on) next.add(permission);
    else next.delete(permission);
    onChange(next);
  };
  return (
    <Field label="Permissions" path="permissions" aside={`${chosen.size} chosen`}>
      {({ id, "aria-describedby": describedBy }) => (
        <div id={id} role="group" aria-label="Permissions" aria-describedby={describedBy} className="space-y-3">
          <div className="grid gap-2 sm:grid-cols-3">
            {PRESETS.map(({ name, label, hint, permissions }) => {
              const given = permissions.filter(mayGive);
              return (
                <button
                  key={name}
                  type="button"
                  aria-pressed={present === name}
                  disabled={given.length === 0}
                  onClick={() => onChange(new Set(given))}
                  className={clsx(
                    "flex flex-col rounded-md border px-3 py-2 text-left disabled:opacity-50",
                    present === name ? "border-accent bg-accent-soft" : "border-line hover:border-line-strong",
                  )}
                >
                  <span className="block text-sm font-medium">{label}</span>
                  <span className="block text-[13px] text-text-2">{hint}</span>
                </button>
              );
            })}
          </div>
          <div className="grid gap-x-6 gap-y-2.5 rounded-md border border-line px-4 py-3 sm:grid-cols-2">
            {PERMISSIONS.map(({ permission, label, allows }) => (
              <Checkbox
                key={permission}
                label={label}
                hint={mayGive(permission) ? allows : "Your role does not have it."}
                checked={chosen.has(permission)}
                disabled={!mayGive(permission) && !chosen.has(permission)}
                onChange={(on) => set(permission, on)}
              />
            ))}
          </div>
        </div>
      )}
    </Field>
  );
}
