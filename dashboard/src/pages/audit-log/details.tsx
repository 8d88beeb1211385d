import { Link } from "@tanstack/react-router";
import type { AuditLogEntry } from "waypost";
import { exactTime } from "@/format";
import { Code } from "@/ui/code";
import { Copyable } from "@/ui/copy";
import { Facts } from "@/ui/facts";
import { noun } from "./sentences";

const ACTORS: Record<string, string> = {
  api_key: "A program with an API key",
  user: "A person who was signed in",
  recipient: "A recipient, by a link in a message",
  system: "Waypost itself",
};

/** All that the log holds of an entry. */
export function Details({ entry }: { entry: AuditLogEntry }) {
  const { actor, target, context, metadata } = entry;
  return (
    <div className="space-y-4 px-4 pt-1 pb-4 sm:pr-5 sm:pl-11">
      <Facts
        facts={[
          ["Time", exactTime(entry.occurredAt)],
          ["Action", <code className="font-mono text-[13px]">{entry.action}</code>],
          ["By", ACTORS[actor.type] ?? actor.type],
          actor.id !== null && ["Id of the actor", <Copyable text={actor.id} label="Copy the id of the actor" />],
          [
            "Record",
            <span className="inline-flex max-w-full flex-wrap items-center gap-x-2">
              <Copyable text={target.id} label="Copy the id of the record" />
              <Link
                to="/audit-log"
                search={{ targetId: target.id }}
                className="text-[13px] text-accent-text hover:underline"
              >
                All changes of {target.type === "settings" ? "the settings" : `this ${noun(target.type)}`}
              </Link>
            </span>,
          ],
          context.ip !== null && ["IP address", <code className="font-mono text-[13px]">{context.ip}</code>],
          context.userAgent !== null && ["Client", context.userAgent],
          ["Request", <Copyable text={context.requestId} label="Copy the id of the request" />],
        ]}
      />
      {Object.keys(metadata).length > 0 && <Code text={JSON.stringify(metadata, null, 2)} />}
    </div>
  );
}
