/**
 * Forms. `<Form>` runs the action and keeps its error; each `<Field path>` shows the API's issues of its path, and what
 * no field claims stands above the buttons.
 */

import { clsx } from "clsx";
import { ChevronDown } from "lucide-react";
import { Checkbox as RadixCheckbox, Switch as RadixSwitch } from "radix-ui";
import {
  createContext,
  type FormEvent,
  type InputHTMLAttributes,
  type ReactNode,
  type SelectHTMLAttributes,
  type TextareaHTMLAttributes,
  useContext,
  useEffect,
  useId,
  useMemo,
  useRef,
  useState,
} from "react";
import { ValidationError, WaypostError } from "waypost";
import { errorText } from "@/api";
import { Button } from "./button";
import { Notice } from "./page";

interface FormState {
  issues: readonly { path?: string; message: string }[];
  claim(path: string): () => void;
}

const FormContext = createContext<FormState>({ issues: [], claim: () => () => {} });

/** Whether an issue's path is that of a field, or of something inside it: `to.3` of `to`. */
const isAt = (issue: string | undefined, path: string): boolean => issue === path || !!issue?.startsWith(`${path}.`);

interface FormProps {
  children: ReactNode;
  onSubmit(): unknown;
  /** The error of the last submission: a mutation's `error`. */
  error: unknown;
  className?: string;
  /** The form's name for those who do not see it. */
  label?: string;
}

export function Form({ children, onSubmit, error, className, label }: FormProps) {
  const [claimed, setClaimed] = useState<readonly string[]>([]);
  const form = useRef<HTMLFormElement>(null);
  const issues = useMemo(() => (error instanceof WaypostError ? error.issues : []), [error]);
  const state = useMemo<FormState>(
    () => ({
      issues,
      claim(path) {
        setClaimed((before) => [...before, path]);
        return () => setClaimed((before) => before.toSpliced(before.indexOf(path), 1));
      },
    }),
    [issues],
  );
  useEffect(() => {
    if (issues.length > 0) form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
  }, [issues]);
  const rest = issues.filter((issue) => !claimed.some((path) => isAt(issue.path, path)));
  const submit = (event: FormEvent) => {
    event.preventDefault();
    // A dialog's form may stand inside another form, by React's tree.
    event.stopPropagation();
    void onSubmit();
  };
  return (
    <FormContext value={state}>
      <form ref={form} onSubmit={submit} className={clsx("space-y-5", className)} noValidate aria-label={label}>
        {children}
        {error && (issues.length === 0 || rest.length > 0) ? (
          <Notice kind="error">
            {rest.length > 0 ? (
              <ul>
                {rest.map((issue) => (
                  <li key={issue.path + issue.message}>
                    {issue.path ? <code className="font-mono">{issue.path}</code> : null} {issue.message}
                  </li>
                ))}
              </ul>
            ) : (
              errorText(error)
            )}
          </Notice>
        ) : null}
      </form>
    </FormContext>
  );
}

/** The row of a form's buttons, the main action first. */
export function FormActions({ children }: { children: ReactNode }) {
  return <div className="flex flex-wrap items-center gap-2 pt-1">{children}</div>;
}

/** The main button of a form. */
export function Submit({ children, busy, disabled }: { children: ReactNode; busy?: boolean; disabled?: boolean }) {
  return (
    <Button kind="primary" type="submit" busy={busy} disabled={disabled}>
      {children}
    </Button>
  );
}

interface Control {
  id: string;
  "aria-describedby": string | undefined;
  "aria-invalid": true | undefined;
}

interface FieldProps {
  label: ReactNode;
  /** Where the API names it in an issue: `credentials.apiKey`. */
  path?: string;
  hint?: ReactNode;
  /** Shown beside the label, such as "optional". */
  aside?: ReactNode;
  className?: string;
  children(control: Control): ReactNode;
}

/** A label, a control, a hint, and the API's issues. */
export function Field({ label, path, hint, aside, className, children }: FieldProps) {
  const { issues, claim } = useContext(FormContext);
  const id = useId();
  useEffect(() => (path ? claim(path) : undefined), [claim, path]);
  const own = path ? issues.filter((issue) => isAt(issue.path, path)) : [];
  const describes = [own.length > 0 && `${id}-error`, hint && `${id}-hint`].filter(Boolean).join(" ") || undefined;
  return (
    <div className={clsx("space-y-1.5", className)}>
      <div className="flex items-baseline justify-between gap-2">
        <label htmlFor={id} className="text-sm font-medium">
          {label}
        </label>
        {aside && <span className="text-xs text-text-3">{aside}</span>}
      </div>
      {children({ id, "aria-describedby": describes, "aria-invalid": own.length > 0 || undefined })}
      {own.length > 0 && (
        <p id={`${id}-error`} className="text-[13px] text-red">
          {own.map((issue) => (issue.path === path ? issue.message : `${issue.path}: ${issue.message}`)).join("; ")}
        </p>
      )}
      {hint && (
        <p id={`${id}-hint`} className="text-[13px] text-text-3">
          {hint}
        </p>
      )}
    </div>
  );
}

export const controlClass =
  "w-full rounded-md border border-line-strong/60 bg-surface px-3 text-sm text-text placeholder:text-text-3 transition-colors " +
  "hover:border-line-strong focus:border-accent focus:outline-2 focus:outline-offset-0 focus:outline-accent/40 " +
  "aria-invalid:border-red-solid disabled:opacity-60";

export function Input({ className, ...rest }: InputHTMLAttributes<HTMLInputElement>) {
  return <input {...rest} className={clsx(controlClass, "h-9", className)} />;
}

export function Textarea({ className, rows = 4, ...rest }: TextareaHTMLAttributes<HTMLTextAreaElement>) {
  return <textarea {...rest} rows={rows} className={clsx(controlClass, "py-2 leading-relaxed", className)} />;
}

interface SelectProps extends SelectHTMLAttributes<HTMLSelectElement> {
  options: readonly (readonly [value: string, label: string])[];
}

/** The browser's own list: it works by keyboard, by touch and for screen readers. */
export function Select({ options, className, ...rest }: SelectProps) {
  return (
    <span className={clsx("relative inline-block", className ?? "w-full")}>
      <select {...rest} className={clsx(controlClass, "h-9 appearance-none pr-8")}>
        {options.map(([value, label]) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
      </select>
      <ChevronDown className="pointer-events-none absolute top-2.5 right-2.5 size-4 text-text-3" aria-hidden />
    </span>
  );
}

interface ToggleProps {
  checked: boolean;
  onChange(checked: boolean): void;
  label: ReactNode;
  hint?: ReactNode;
  disabled?: boolean;
}

export function Checkbox({ checked, onChange, label, hint, disabled }: ToggleProps) {
  const id = useId();
  return (
    <div className="flex gap-2.5">
      <RadixCheckbox.Root
        id={id}
        checked={checked}
        disabled={disabled}
        onCheckedChange={(value) => onChange(value === true)}
        aria-describedby={hint ? `${id}-hint` : undefined}
        className="mt-0.5 size-4 shrink-0 rounded border border-line-strong bg-surface data-[state=checked]:border-accent data-[state=checked]:bg-accent disabled:opacity-50"
      >
        <RadixCheckbox.Indicator className="flex items-center justify-center text-on-accent">
          <svg viewBox="0 0 12 12" className="size-3" fill="none" stroke="currentColor" strokeWidth="2" aria-hidden>
            <path d="M2 6.5 4.8 9 10 3.2" />
          </svg>
        </RadixCheckbox.Indicator>
      </RadixCheckbox.Root>
      <div>
        <label htmlFor={id} className="text-sm">
          {label}
        </label>
        {hint && (
          <p id={`${id}-hint`} className="text-[13px] text-text-3">
            {hint}
          </p>
        )}
      </div>
    </div>
  );
}

export function Switch({ checked, onChange, label, hint, disabled }: ToggleProps) {
  const id = useId();
  return (
    <div className="flex items-start justify-between gap-4">
      <div>
        <label htmlFor={id} className="text-sm font-medium">
          {label}
        </label>
        {hint && (
          <p id={`${id}-hint`} className="text-[13px] text-text-3">
            {hint}
          </p>
        )}
      </div>
      <RadixSwitch.Root
        id={id}
        checked={checked}
        disabled={disabled}
        onCheckedChange={onChange}
        aria-describedby={hint ? `${id}-hint` : undefined}
        className="mt-0.5 h-5 w-9 shrink-0 rounded-full bg-line-strong p-0.5 transition-colors data-[state=checked]:bg-accent disabled:opacity-50"
      >
        <RadixSwitch.Thumb className="block size-4 rounded-full bg-white shadow transition-transform data-[state=checked]:translate-x-4" />
      </RadixSwitch.Root>
    </div>
  );
}

/** Whether an error has issues that a form shows at its fields. */
export const hasIssues = (error: unknown): boolean => error instanceof ValidationError && error.issues.length > 0;

/** The error, if the API has an issue with one of these fields. */
export function issueAt(error: unknown, ...paths: string[]): unknown {
  if (!(error instanceof WaypostError)) return undefined;
  const has = error.issues.some((issue) => paths.some((path) => isAt(issue.path, path)));
  return has ? error : undefined;
}
