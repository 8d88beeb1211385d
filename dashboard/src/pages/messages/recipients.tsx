import { useInfiniteQuery } from "@tanstack/react-query";
import type { RecipientDetail } from "waypost";
import { count, words } from "@/format";
import { Badge, Status } from "@/ui/badge";
import { Card, Empty } from "@/ui/page";
import { pagedOf, PagedTable } from "@/ui/paged";
import type { Column } from "@/ui/table";
import { recipientsQuery } from "./data";
import { explainEvent } from "./explain";
import type { MessageView } from "./message";

/** Each recipient, and how far the mail to them is. */
export function Recipients({ view, onChoose }: { view: MessageView; onChoose(hash: string): void }) {
  const query = useInfiniteQuery(recipientsQuery(view.message.id));
  const list = pagedOf(query);
  return (
    <Card title="Recipients" description="Waypost shows no addresses: it names recipients by their place, and in the API by the hash of the address." flush>
      <PagedTable
        list={list}
        columns={columnsFor(view, onChoose)}
        rowKey={(recipient) => recipient.toHash}
        label="Recipients"
        empty={<Empty title="No recipients are stored">The recipients of this message were erased.</Empty>}
      />
    </Card>
  );
}

function columnsFor(view: MessageView, onChoose: (hash: string) => void): readonly Column<RecipientDetail>[] {
  return [
    {
      head: "Recipient",
      width: "minmax(0, 1.2fr)",
      cell: (recipient) => (
        <span className="inline-flex max-w-full items-center gap-2">
          <button type="button" onClick={() => onChoose(recipient.toHash)} className="truncate font-medium hover:underline" title={`SHA-256 ${recipient.toHash}`}>
            {view.people.name(recipient.toHash)}
          </button>
          {recipient.kind !== "TO" && <Badge>{recipient.kind === "BCC" ? "Bcc" : words(recipient.kind)}</Badge>}
        </span>
      ),
    },
    { head: "Status", width: "6.75rem", cell: (recipient) => <Status status={recipient.status} /> },
    { head: "Latest", width: "minmax(0, 2fr)", wide: true, cell: (recipient) => <Latest view={view} recipient={recipient} /> },
    { head: "Account", width: "minmax(0, 1fr)", wide: true, cell: (recipient) => <span className="text-text-2">{recipient.providerAccountId ? view.accountName(recipient.providerAccountId) : "–"}</span> },
    { head: "Tries", width: "3rem", align: "right", cell: (recipient) => count(recipient.attempts) },
  ];
}

function Latest({ view, recipient }: { view: MessageView; recipient: RecipientDetail }) {
  const event = recipient.events.at(-1);
  if (!event) return null;
  const { title, quote } = explainEvent(event, view.accountName(event.providerAccountId));
  return (
    <span className="text-text-2" title={quote ?? recipient.lastError ?? undefined}>
      {title}
    </span>
  );
}
