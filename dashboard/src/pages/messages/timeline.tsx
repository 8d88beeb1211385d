import { clsx } from "clsx";
import { useState } from "react";
import type { HistoryEvent } from "waypost";
import { duration, exactTime, plural } from "@/format";
import type { Tone } from "@/ui/badge";
import { Button } from "@/ui/button";
import { eventsOf } from "./data";
import { explainEvent } from "./explain";
import type { MessageView } from "./message";

/** So many events are drawn at first: a message to 1,000 people has thousands. */
const SHOWN = 100;

const DOTS: Record<Tone, string> = {
  gray: "bg-line-strong",
  green: "bg-green",
  blue: "bg-blue",
  amber: "bg-amber",
  red: "bg-red",
  violet: "bg-violet",
};

/** Everything that happened, in plain words, the oldest first. */
export function Timeline({ view }: { view: MessageView }) {
  const [all, setAll] = useState(false);
  const events = eventsOf(view.message.events, view.chosen);
  const shown = all ? events : events.slice(0, SHOWN);
  return (
    <div className="px-4 py-5 sm:px-5">
      <ol>
        {shown.map((event, at) => (
          <Entry key={at} view={view} event={event} before={events[at - 1]} isLast={at === shown.length - 1} />
        ))}
      </ol>
      {shown.length < events.length && (
        <Button small onClick={() => setAll(true)} className="mt-4">
          Show {plural(events.length - shown.length, "more event")}
        </Button>
      )}
    </div>
  );
}

interface EntryProps {
  view: MessageView;
  event: HistoryEvent;
  before: HistoryEvent | undefined;
  isLast: boolean;
}

function Entry({ view, event, before, isLast }: EntryProps) {
  const { title, text, advice, quote, tone } = explainEvent(event, view.accountName(event.providerAccountId));
  const later = before && new Date(event.occurredAt).getTime() - new Date(before.occurredAt).getTime();
  return (
    <li className="relative flex gap-3.5 pb-5 last:pb-0">
      {!isLast && <span aria-hidden className="absolute top-4 bottom-[-0.3rem] left-[0.3rem] w-px bg-line" />}
      <span aria-hidden className={clsx("mt-1.5 size-2.5 shrink-0 rounded-full", DOTS[tone])} />
      <div className="min-w-0 flex-1">
        <div className="flex flex-wrap items-baseline justify-between gap-x-4">
          <h2 className="font-medium">
            {title}
            {view.message.recipientCount > 1 && event.toHash && <span className="font-normal text-text-3"> · {view.people.name(event.toHash)}</span>}
          </h2>
          <time dateTime={event.occurredAt} className="tabular text-xs text-text-3">
            {exactTime(event.occurredAt)}
            {later !== undefined && later > 0 && <span title="After the event before"> (+{duration(later)})</span>}
          </time>
        </div>
        {text && <p className="text-[13px] text-text-2">{text}</p>}
        {quote && <p className="mt-1 font-mono text-xs break-words text-text-2">{quote}</p>}
        {advice && <p className="mt-1 text-[13px] text-text-2">{advice}</p>}
      </div>
    </li>
  );
}
