import { Link } from "@tanstack/react-router";
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { clsx } from "clsx";
import { AtSign, ChevronRight, KeyRound, type LucideIcon, Signpost, UserRound } from "lucide-react";
import { type ReactNode, useEffect, useLayoutEffect, useRef, useState } from "react";
import type { AuditLogEntry } from "waypost";
import { date } from "@/format";
import { Button } from "@/ui/button";
import { Details } from "./details";
import { useNames } from "./names";
import { actorName, noun, sentence } from "./sentences";
import { targetPlace } from "./targets";

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

interface EntriesProps {
  entries: readonly AuditLogEntry[];
  /** The id of the entry whose details are shown. */
  open: string | undefined;
  onOpen(id: string | undefined): void;
  more: (() => void) | undefined;
  loadingMore: boolean;
}

/** The entries, the newest first, in days. Only those that are seen are drawn. */
export function Entries({ entries, open, onOpen, more, loadingMore }: EntriesProps) {
  const names = useNames(entries);
  const body = useRef<HTMLDivElement>(null);
  const [margin, setMargin] = useState(0);
  useLayoutEffect(() => setMargin(body.current?.offsetTop ?? 0), []);
  const virtual = useWindowVirtualizer({
    count: entries.length,
    estimateSize: () => 45,
    overscan: 12,
    scrollMargin: margin,
    getItemKey: (at) => entries[at]!.id,
  });
  const items = virtual.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (more && !loadingMore && last >= entries.length - 5) more();
  }, [more, loadingMore, last, entries.length]);
  return (
    <>
      <div ref={body} role="list" aria-label="Changes" className="relative" style={{ height: virtual.getTotalSize() }}>
        {items.map((item) => {
          const entry = entries[item.index]!;
          const before = entries[item.index - 1];
          const day = date(entry.occurredAt);
          return (
            <div
              key={item.key}
              role="listitem"
              data-index={item.index}
              ref={virtual.measureElement}
              className="absolute inset-x-0 top-0"
              style={{ transform: `translateY(${item.start - margin}px)` }}
            >
              {(!before || date(before.occurredAt) !== day) && (
                <h2 className="border-b border-line bg-sunken px-4 py-1.5 text-xs font-medium text-text-2 sm:px-5">{day}</h2>
              )}
              <Entry entry={entry} name={names.get(entry.target.id)} open={open === entry.id} onToggle={(next) => onOpen(next ? entry.id : undefined)} />
            </div>
          );
        })}
      </div>
      {more && (
        <div className="flex justify-center p-3">
          <Button small onClick={more} busy={loadingMore}>
            Show more
          </Button>
        </div>
      )}
    </>
  );
}

interface EntryProps {
  entry: AuditLogEntry;
  name: string | undefined;
  open: boolean;
  onToggle(open: boolean): void;
}

function Entry({ entry, name, open, onToggle }: EntryProps) {
  return (
    <div className={clsx("border-b border-line", open && "bg-sunken/50")}>
      <div className="flex items-start gap-2 py-2.5 pr-4 pl-2 sm:pr-5 sm:pl-3">
        <button
          type="button"
          aria-expanded={open}
          aria-label="Details"
          onClick={() => onToggle(!open)}
          className="-my-0.5 flex size-6 shrink-0 items-center justify-center rounded text-text-3 hover:bg-hover hover:text-text"
        >
          <ChevronRight className={clsx("size-4 transition-transform", open && "rotate-90")} aria-hidden />
        </button>
        <ActorIcon actor={entry.actor} />
        <p className="min-w-0 flex-1 break-words text-text-2">
          <span className="font-medium text-text">{actorName(entry.actor)}</span>{" "}
          {sentence(entry).map((part, at) => (typeof part === "string" ? part : <Target key={at} entry={entry} name={name} />))}
        </p>
        <time dateTime={entry.occurredAt} className="shrink-0 text-[13px] text-text-3 tabular">
          {clock.format(new Date(entry.occurredAt))}
        </time>
      </div>
      {open && <Details entry={entry} />}
    </div>
  );
}

const ICONS: Record<string, readonly [icon: LucideIcon, label: string]> = {
  api_key: [KeyRound, "API key"],
  user: [UserRound, "Person"],
  recipient: [AtSign, "Recipient"],
  system: [Signpost, "Waypost itself"],
};

/** What kind of actor it was: a key may be named like a person. */
function ActorIcon({ actor }: { actor: AuditLogEntry["actor"] }) {
  const [Icon, label] = ICONS[actor.type] ?? [UserRound, "Somebody"];
  return (
    <span title={label} className="mt-0.5 shrink-0 text-text-3">
      <Icon className="size-4" aria-hidden />
      <span className="sr-only">{label}:</span>
    </span>
  );
}

/** The changed record: its kind, and its name as a link to its page. */
function Target({ entry, name }: { entry: AuditLogEntry; name: string | undefined }) {
  const { type, id } = entry.target;
  // People are named without a word for what they are.
  const kind = type === "member" || type === "user" ? "" : noun(type);
  const place = targetPlace(type, id);
  const named: ReactNode = name && <span className="font-medium text-text">{name}</span>;
  if (!place || entry.action.endsWith(".deleted")) return named ? <>{[kind && `${kind} `, named]}</> : <>{kind || "a member"}</>;
  return (
    <>
      {named && kind ? `${kind} ` : ""}
      <Link to={place as string} className="font-medium text-text underline decoration-line-strong underline-offset-2 hover:text-accent-text">
        {name ?? (kind || "a member")}
      </Link>
    </>
  );
}
