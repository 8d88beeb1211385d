/** What every page is made of: its head, cards, notices, and its empty, loading and error states. */

import { Link } from "@tanstack/react-router";
import { clsx } from "clsx";
import { CircleAlert, CircleCheck, Info, TriangleAlert } from "lucide-react";
import { type ReactNode, useEffect } from "react";
import { NotFoundError, WaypostError } from "waypost";
import { errorText } from "@/api";
import { Button } from "./button";

interface PageProps {
  title: string;
  /** Shown in place of the title, for instance with a badge. The title still names the window. */
  heading?: ReactNode;
  description?: ReactNode;
  /** The page above this one. */
  back?: { to: string; label: string };
  actions?: ReactNode;
  children: ReactNode;
  /** Full width for tables, a reading width for forms. */
  narrow?: boolean;
  /** As wide as the window, for editors. */
  wide?: boolean;
}

export function Page({ title, heading, description, back, actions, children, narrow, wide }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Waypost`;
  }, [title]);
  return (
    <div className={clsx("mx-auto w-full px-4 py-6 sm:px-8 sm:py-8", narrow ? "max-w-3xl" : wide ? "max-w-[100rem]" : "max-w-6xl")}>
      <header className="mb-6">
        {back && (
          <Link to={back.to} className="mb-2 inline-block text-[13px] text-text-3 hover:text-text">
            ← {back.label}
          </Link>
        )}
        <div className="flex flex-wrap items-start justify-between gap-x-6 gap-y-3">
          <div className="min-w-0 flex-1 basis-64">
            <h1 className="text-xl font-semibold tracking-tight break-words">{heading ?? title}</h1>
            {description && <p className="mt-1 max-w-2xl text-text-2">{description}</p>}
          </div>
          {actions && <div className="flex flex-wrap items-center gap-2">{actions}</div>}
        </div>
      </header>
      {children}
    </div>
  );
}

interface CardProps {
  title?: ReactNode;
  description?: ReactNode;
  actions?: ReactNode;
  children?: ReactNode;
  className?: string;
  /** Without inner space, for tables. */
  flush?: boolean;
  /** What it does cannot be taken back. */
  danger?: boolean;
}

export function Card({ title, description, actions, children, className, flush, danger }: CardProps) {
  const line = danger ? "border-red-solid/40" : "border-line";
  return (
    <section className={clsx("rounded-lg border bg-surface shadow-(--shadow)", line, className)}>
      {(title || actions) && (
        <div className={clsx("flex flex-wrap items-center justify-between gap-3 border-b px-4 py-3 sm:px-5", line)}>
          <div className="min-w-0">
            <h2 className="text-sm font-semibold">{title}</h2>
            {description && <p className="text-[13px] text-text-3">{description}</p>}
          </div>
          {actions && <div className="flex flex-wrap items-center gap-2">{actions}</div>}
        </div>
      )}
      {children && <div className={clsx(!flush && "p-4 sm:p-5")}>{children}</div>}
    </section>
  );
}

type NoticeKind = "info" | "success" | "warning" | "error";

const NOTICES: Record<NoticeKind, [string, typeof Info]> = {
  info: ["bg-blue-soft text-blue", Info],
  success: ["bg-green-soft text-green", CircleCheck],
  warning: ["bg-amber-soft text-amber", TriangleAlert],
  error: ["bg-red-soft text-red", CircleAlert],
};

/** A sentence that must be seen: beside a form, above a list. */
export function Notice({ kind = "info", children, action }: { kind?: NoticeKind; children: ReactNode; action?: ReactNode }) {
  const [look, Icon] = NOTICES[kind];
  return (
    <div role={kind === "error" ? "alert" : "status"} className={clsx("flex flex-wrap items-start gap-x-2.5 gap-y-2 rounded-md px-3 py-2.5 text-sm", look)}>
      <Icon className="mt-0.5 size-4 shrink-0" aria-hidden />
      <div className="min-w-0 flex-1 basis-44 break-words">{children}</div>
      {action}
    </div>
  );
}

/** Nothing here yet: what it is for, and the next step. */
export function Empty({ icon, title, children, action }: { icon?: ReactNode; title: string; children?: ReactNode; action?: ReactNode }) {
  return (
    <div className="flex flex-col items-center px-6 py-14 text-center">
      {icon && <div className="mb-3 rounded-full bg-sunken p-3 text-text-3 [&_svg]:size-6">{icon}</div>}
      <h2 className="text-base font-semibold">{title}</h2>
      {children && <p className="mt-1 max-w-md text-text-2">{children}</p>}
      {action && <div className="mt-5 flex flex-wrap justify-center gap-2">{action}</div>}
    </div>
  );
}

export function Skeleton({ className }: { className?: string }) {
  return <div aria-hidden className={clsx("animate-pulse rounded-md bg-sunken", className ?? "h-4 w-full")} />;
}

/** Lines in the place of a list that is not there yet. */
export function SkeletonRows({ rows = 6 }: { rows?: number }) {
  return (
    <div role="status" aria-label="Loading" className="space-y-3 p-5">
      {Array.from({ length: rows }, (_, at) => (
        <Skeleton key={at} className="h-5 w-full" />
      ))}
    </div>
  );
}

export function PageLoading() {
  return (
    <div className="mx-auto w-full max-w-6xl px-4 py-8 sm:px-8">
      <Skeleton className="mb-6 h-7 w-48" />
      <SkeletonRows />
    </div>
  );
}

/** A part of a page that could not be loaded. */
export function LoadError({ error, retry }: { error: unknown; retry?: () => void }) {
  const requestId = error instanceof WaypostError ? error.requestId : undefined;
  return (
    <div className="p-4">
      <Notice
        kind="error"
        action={
          retry && (
            <Button small onClick={retry}>
              Try again
            </Button>
          )
        }
      >
        {errorText(error)}
        {requestId && <span className="mt-0.5 block font-mono text-xs opacity-80">request {requestId}</span>}
      </Notice>
    </div>
  );
}

export function PageError({ error, retry }: { error: unknown; retry?: () => void }) {
  if (error instanceof NotFoundError) return <NotFound />;
  return (
    <Page title="Something went wrong">
      <LoadError error={error} retry={retry} />
    </Page>
  );
}

export function NotFound() {
  return (
    <Page title="Not found">
      <Empty
        title="There is nothing here"
        action={
          <Link to="/" className="text-accent-text underline">
            Go to the overview
          </Link>
        }
      >
        The address is wrong, or what it named was deleted.
      </Empty>
    </Page>
  );
}
