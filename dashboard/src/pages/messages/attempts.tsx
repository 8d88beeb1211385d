import { useState } from "react";
import type { SendAttempt } from "waypost";
import { duration, exactTime, plural, providerName } from "@/format";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { Empty } from "@/ui/page";
import { outcome } from "./explain";
import type { MessageView } from "./message";

const SHOWN = 100;
/** The API gives the newest so many. */
const NEWEST = 500;

/** Every call to a provider: which account, what it answered, and where the mail went next. */
export function Attempts({ view }: { view: MessageView }) {
  const [all, setAll] = useState(false);
  const { message, chosen } = view;
  const attempts = chosen ? message.attempts.filter((attempt) => attempt.toHash === chosen) : message.attempts;
  if (attempts.length === 0) {
    return (
      <Empty title="No provider was called">
        {message.status === "QUEUED" ? "The message waits. Each call to a provider will be listed here." : "The message ended before it was sent to a provider."}
      </Empty>
    );
  }
  const shown = all ? attempts : attempts.slice(0, SHOWN);
  return (
    <>
      {message.attempts.length === NEWEST && <p className="border-b border-line px-5 py-2 text-[13px] text-text-2">These are the newest {NEWEST} attempts.</p>}
      <ol className="divide-y divide-line">
        {shown.map((attempt) => (
          <Attempt key={attempt.id} view={view} attempt={attempt} next={nextOf(attempt, message.attempts)} />
        ))}
      </ol>
      {shown.length < attempts.length && (
        <div className="border-t border-line p-3 text-center">
          <Button small onClick={() => setAll(true)}>
            Show {plural(attempts.length - shown.length, "more attempt")}
          </Button>
        </div>
      )}
    </>
  );
}

const nextOf = (attempt: SendAttempt, attempts: readonly SendAttempt[]): SendAttempt | undefined =>
  attempts.slice(attempts.indexOf(attempt) + 1).find((other) => other.toHash === attempt.toHash);

function Attempt({ view, attempt, next }: { view: MessageView; attempt: SendAttempt; next: SendAttempt | undefined }) {
  const { word, tone, text } = outcome(attempt);
  return (
    <li className="px-4 py-3.5 sm:px-5">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <Badge tone={tone} dot>
          {word}
        </Badge>
        <h2 className="font-medium">
          {view.accountName(attempt.providerAccountId)}
          <span className="font-normal text-text-3"> {providerName(attempt.providerType)}</span>
        </h2>
        {view.message.recipientCount > 1 && <span className="text-[13px] text-text-3">{view.people.name(attempt.toHash)}</span>}
        <span className="tabular ml-auto text-xs text-text-3">
          {exactTime(attempt.startedAt)} · {attempt.statusCode !== null && `${attempt.statusCode} · `}
          {attempt.durationMs === null ? "not ended" : `took ${duration(attempt.durationMs)}`}
        </span>
      </div>
      {(text || next) && (
        <p className="mt-1 text-[13px] text-text-2">
          {text} {next && whatNext(view, attempt, next)}
        </p>
      )}
      {attempt.reason && <p className="mt-1 font-mono text-xs break-words text-text-2">{attempt.reason}</p>}
    </li>
  );
}

function whatNext(view: MessageView, attempt: SendAttempt, next: SendAttempt): string {
  const wait = new Date(next.startedAt).getTime() - new Date(attempt.startedAt).getTime() - (attempt.durationMs ?? 0);
  const when = wait < 1_000 ? "at once" : `after ${duration(wait)}`;
  return next.providerAccountId === attempt.providerAccountId
    ? `The same account was tried again ${when}.`
    : `The mail was passed on to ${view.accountName(next.providerAccountId)} ${when}.`;
}
