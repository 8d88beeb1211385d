import { RadioGroup } from "radix-ui";
import { useId } from "react";
import { ROLE_NAMES, ROLES, type RoleName } from "@/roles";

interface RoleChoiceProps {
  value: RoleName;
  onChange(role: RoleName): void;
}

/** One of the roles, each with what it may do. */
export function RoleChoice({ value, onChange }: RoleChoiceProps) {
  const id = useId();
  return (
    <fieldset>
      <legend className="mb-1.5 text-sm font-medium">Role</legend>
      <RadioGroup.Root value={value} onValueChange={(next) => onChange(next as RoleName)} aria-label="Role" className="divide-y divide-line rounded-md border border-line-strong/60">
        {ROLE_NAMES.map((name) => (
          <div key={name} className="flex gap-2.5 px-3 py-2.5 has-data-[state=checked]:bg-accent-soft">
            <RadioGroup.Item
              id={`${id}-${name}`}
              value={name}
              aria-describedby={`${id}-${name}-hint`}
              className="mt-0.5 flex size-4 shrink-0 items-center justify-center rounded-full border border-line-strong bg-surface data-[state=checked]:border-accent data-[state=checked]:bg-accent"
            >
              <RadioGroup.Indicator className="size-1.5 rounded-full bg-on-accent" />
            </RadioGroup.Item>
            <div>
              <label htmlFor={`${id}-${name}`} className="text-sm font-medium">
                {ROLES[name].label}
              </label>
              <p id={`${id}-${name}-hint`} className="text-[13px] text-text-2">
                {ROLES[name].summary}
              </p>
            </div>
          </div>
        ))}
      </RadioGroup.Root>
    </fieldset>
  );
}
