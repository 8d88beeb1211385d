import { Eye, EyeOff } from "lucide-react";
import { type ComponentProps, useState } from "react";
import { IconButton } from "@/ui/button";
import { Field, Input, Select } from "@/ui/form";
import { type CredentialField, type CredentialValues, KINDS } from "./kinds";
import type { Type } from "./types";

/** A field for a secret: hidden unless a person wants to see it, and nothing that a browser offers to keep. */
export function SecretInput(props: ComponentProps<typeof Input>) {
  const [shown, show] = useState(false);
  return (
    <span className="relative block">
      <Input
        {...props}
        type={shown ? "text" : "password"}
        autoComplete="new-password"
        spellCheck={false}
        className="pr-10 font-mono text-[13px]!"
      />
      <span className="absolute top-0.5 right-0.5">
        <IconButton label={shown ? "Hide" : "Show"} icon={shown ? <EyeOff /> : <Eye />} onClick={() => show(!shown)} />
      </span>
    </span>
  );
}

interface Props {
  type: Type;
  values: CredentialValues;
  onChange(values: CredentialValues): void;
}

/** The credentials of one type of account. */
export function CredentialFields({ type, values, onChange }: Props) {
  return KINDS[type].fields.map((field) => (
    <Field
      key={field.name}
      label={field.label}
      path={`credentials.${field.name}`}
      hint={field.hint}
      aside={field.required || field.options ? undefined : "optional"}
    >
      {(control) => {
        const value = values[field.name] ?? "";
        const set = (next: string) => onChange({ ...values, [field.name]: next });
        return <FieldControl field={field} control={control} value={value} set={set} />;
      }}
    </Field>
  ));
}

interface ControlProps {
  field: CredentialField;
  control: { id: string };
  value: string;
  set(value: string): void;
}

function FieldControl({ field, control, value, set }: ControlProps) {
  const shared = { ...control, value, placeholder: field.placeholder, "aria-required": field.required };
  switch (field.kind) {
    case "select":
      return <Select {...control} value={value} options={field.options ?? []} onChange={(event) => set(event.target.value)} />;
    case "secret":
      return <SecretInput {...shared} onChange={(event) => set(event.target.value)} />;
    case "port":
      return <Input {...shared} inputMode="numeric" className="max-w-32" onChange={(event) => set(event.target.value)} />;
    case "text":
      return <Input {...shared} spellCheck={false} autoComplete="off" onChange={(event) => set(event.target.value)} />;
  }
}
