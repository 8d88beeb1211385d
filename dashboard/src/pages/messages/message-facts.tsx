import { Link } from "@tanstack/react-router";
import { count, exactTime } from "@/format";
import { Badge } from "@/ui/badge";
import { Code } from "@/ui/code";
import { Copyable } from "@/ui/copy";
import { Facts } from "@/ui/facts";
import { Card } from "@/ui/page";
import type { MessageView } from "./message";

/** What the message is, beside what became of it. */
export function MessageFacts({ view: { message, accountName } }: { view: MessageView }) {
  const accounts = [...new Set(message.attempts.map((attempt) => attempt.providerAccountId))];
  const accepted = message.events.find((event) => event.eventType === "QUEUED")?.occurredAt;
  const metadata = message.metadata && Object.keys(message.metadata).length > 0 ? JSON.stringify(message.metadata, null, 2) : undefined;
  return (
    <Card title="Message" className="[&_dd]:mb-1! [&_dl]:grid-cols-1! [&_dl]:gap-y-0.5!">
      <Facts
        facts={[
          ["From", message.fromAddress],
          ["Recipients", count(message.recipientCount)],
          accepted !== undefined && ["Accepted", exactTime(accepted)],
          message.scheduledAt !== null && ["Scheduled for", exactTime(message.scheduledAt)],
          accounts.length > 0 && ["Sent through", accounts.map(accountName).join(", then ")],
          message.templateId !== null && ["Template", <TemplateLink key="template" id={message.templateId} version={message.templateVersionNumber} />],
          message.tags.length > 0 && [
            "Tags",
            <span key="tags" className="flex flex-wrap gap-1">
              {message.tags.map((tag) => (
                <Link key={tag} to="/messages" search={{ tag, test: message.test || undefined }} className="hover:opacity-80">
                  <Badge>{tag}</Badge>
                </Link>
              ))}
            </span>,
          ],
          ["Id", <Copyable key="id" text={message.id} label="Copy the id" />],
        ]}
      />
      {metadata && (
        <div className="mt-4">
          <h3 className="mb-1.5 text-[13px] text-text-3">Metadata</h3>
          <Code text={metadata} wrap />
        </div>
      )}
    </Card>
  );
}

function TemplateLink({ id, version }: { id: string; version: number | null }) {
  return (
    <Link to="/templates/$id" params={{ id }} className="text-accent-text hover:underline">
      {version === null ? "Open the template" : `Version ${version}`}
    </Link>
  );
}
