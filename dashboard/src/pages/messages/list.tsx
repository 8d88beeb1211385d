import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Mail, RefreshCw, Send } from "lucide-react";
import type { MessageSummary } from "waypost";
import { count, plural } from "@/format";
import { accountsQuery } from "@/pages/providers/queries";
import { useMay } from "@/session";
import { Badge, Status } from "@/ui/badge";
import { buttonClass, IconButton } from "@/ui/button";
import { NotAllowed } from "@/ui/not-allowed";
import { Card, Empty, Notice, Page } from "@/ui/page";
import { pagedOf, PagedTable } from "@/ui/paged";
import type { Column } from "@/ui/table";
import { Time } from "@/ui/time";
import { accountNames, messagesQuery } from "./data";
import { FilterBar } from "./filter-bar";
import { hasFilters, isCounted, type MessagesSearch, partOfAddress } from "./search";

interface MessagesPageProps {
  search: MessagesSearch;
  onSearch(search: MessagesSearch): void;
}

export function MessagesPage({ search, onSearch }: MessagesPageProps) {
  const may = useMay();
  const part = partOfAddress(search);
  if (!may("METRICS_READ")) return <NotAllowed what="messages" />;
  return (
    <Page
      title="Messages"
      actions={
        may("SEND") && (
          <Link to="/send" className={buttonClass("primary")}>
            <Send aria-hidden />
            Send a mail
          </Link>
        )
      }
    >
      <FilterBar search={search} onSearch={onSearch} />
      {part && (
        <div className="mb-4">
          <Notice>
            “{part}” is not a whole address. Waypost keeps a hash of each address, so it finds messages by the whole address alone, such as ada@example.com.
          </Notice>
        </div>
      )}
      <MessageList search={search} onSearch={onSearch} />
    </Page>
  );
}

function MessageList({ search, onSearch }: MessagesPageProps) {
  const query = useInfiniteQuery(messagesQuery(search));
  const list = pagedOf(query);
  const columns = useColumns(search);
  return (
    <Card flush>
      <div className="flex h-11 items-center justify-between border-b border-line pr-2 pl-4 sm:pl-5">
        <p className="tabular text-[13px] text-text-2" aria-live="polite">
          {list.total !== undefined && totalText(list.total, search)}
        </p>
        <IconButton label="Refresh" icon={<RefreshCw className={query.isRefetching ? "animate-spin" : undefined} />} onClick={() => void query.refetch()} />
      </div>
      <PagedTable
        list={list}
        columns={columns}
        rowKey={(message) => message.id}
        label="Messages"
        empty={<NoMessages test={search.test === true} />}
        filtered={hasFilters(search) ? { what: "message", clear: () => onSearch({ test: search.test }) } : undefined}
      />
    </Card>
  );
}

/** The total stops at the newest 2,000 with some filters. */
function totalText(total: number, search: MessagesSearch): string {
  const what = search.test ? "test" : "message";
  if (isCounted(search) || total < 2_000) return plural(total, what);
  return `${count(total)} ${what}s or more`;
}

function NoMessages({ test }: { test: boolean }) {
  const may = useMay();
  const action = may("SEND") && (
    <Link to="/send" className={buttonClass("primary")}>
      {test ? "Send a test" : "Send a mail"}
    </Link>
  );
  return test ? (
    <Empty icon={<Mail />} title="No tests yet" action={action}>
      A test goes through everything, but no provider is called. Send one with a test key, or with the switch “Test” on the page Send.
    </Empty>
  ) : (
    <Empty icon={<Mail />} title="No messages yet" action={action}>
      Every message that you send is listed here, with all that became of it.
    </Empty>
  );
}

function useColumns(search: MessagesSearch): readonly Column<MessageSummary>[] {
  const may = useMay();
  const accounts = useQuery({ ...accountsQuery, enabled: may("PROVIDERS_READ") }).data;
  const name = accountNames(accounts);
  const columns: (Column<MessageSummary> | false)[] = [
    { head: "Status", width: "6.75rem", cell: (message) => <Status status={message.status} /> },
    {
      head: "Subject",
      width: "minmax(0, 2.2fr)",
      cell: (message) => (
        <>
          <Link
            to="/messages/$id"
            params={{ id: message.id }}
            search={search.recipient ? { recipient: search.recipient } : {}}
            className="font-medium hover:underline"
            title={message.subject}
          >
            {message.subject || "(no subject)"}
          </Link>
          <span className="block text-xs text-text-3 md:hidden">
            <Time at={message.createdAt} />
          </span>
        </>
      ),
    },
    { head: "From", width: "minmax(0, 1.7fr)", wide: true, cell: (message) => <span className="text-text-2" title={message.fromAddress}>{message.fromAddress}</span> },
    {
      head: "Recipients",
      width: "5.5rem",
      wide: true,
      align: "right",
      cell: (message) => count(message.recipientCount),
    },
    may("PROVIDERS_READ") && {
      head: "Account",
      width: "minmax(0, 1fr)",
      wide: true,
      cell: (message) => <span className="text-text-2">{accounts && name(message.providerAccountId)}</span>,
    },
    { head: "Tags", width: "minmax(0, 1fr)", wide: true, cell: (message) => <Tags tags={message.tags} /> },
    { head: "Accepted", width: "6rem", align: "right", wide: true, cell: (message) => <span className="text-text-2"><Time at={message.createdAt} /></span> },
  ];
  return columns.filter((column) => column !== false);
}

function Tags({ tags }: { tags: readonly string[] }) {
  if (tags.length === 0) return null;
  return (
    <span className="inline-flex items-center gap-1" title={tags.join(", ")}>
      <Badge>{tags[0]}</Badge>
      {tags.length > 1 && <span className="text-xs text-text-3">+{tags.length - 1}</span>}
    </span>
  );
}
