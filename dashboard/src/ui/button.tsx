import { clsx } from "clsx";
import { LoaderCircle } from "lucide-react";
import type { ButtonHTMLAttributes, ReactNode } from "react";
import { Tooltip } from "./tooltip";

type Kind = "primary" | "secondary" | "quiet" | "danger";

const KINDS: Record<Kind, string> = {
  primary: "bg-accent text-on-accent hover:bg-accent-hover border-transparent",
  secondary: "bg-surface text-text border-line hover:bg-hover",
  quiet: "border-transparent text-text-2 hover:bg-hover hover:text-text",
  danger: "bg-red-solid text-white border-transparent hover:brightness-95",
};

/** The look of a button, also for links: `<Link className={buttonClass("primary")}>`. */
export const buttonClass = (kind: Kind = "secondary", small = false): string =>
  clsx(
    "inline-flex shrink-0 items-center justify-center gap-2 rounded-md border font-medium whitespace-nowrap transition-colors",
    "disabled:opacity-50 [&_svg]:size-4 [&_svg]:shrink-0",
    small ? "h-7 px-2.5 text-[13px]" : "h-9 px-3.5 text-sm",
    KINDS[kind],
  );

interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  kind?: Kind;
  small?: boolean;
  /** Shows that the action runs, and takes no further click. */
  busy?: boolean | undefined;
}

export function Button({ kind, small, busy, className, children, disabled, type = "button", ...rest }: ButtonProps) {
  return (
    <button {...rest} type={type} disabled={disabled || busy} className={clsx(buttonClass(kind, small), className)}>
      {busy && <LoaderCircle className="animate-spin" aria-hidden />}
      {children}
    </button>
  );
}

interface IconButtonProps extends Omit<ButtonProps, "children"> {
  /** What it does; shown as a tooltip and read aloud. */
  label: string;
  icon: ReactNode;
}

export function IconButton({ label, icon, kind = "quiet", className, ...rest }: IconButtonProps) {
  return (
    <Tooltip text={label}>
      <Button {...rest} kind={kind} aria-label={label} className={clsx("size-8! px-0!", className)}>
        {icon}
      </Button>
    </Tooltip>
  );
}
