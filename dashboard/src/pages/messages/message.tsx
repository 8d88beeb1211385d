import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { type ReactNode, useEffect, useRef } from "react";
import type { MessageDetail, RecipientDetail } from "waypost";
import { queries } from "@/api";
import { plural, words } from "@/format";
import { accountsQuery } from "@/pages/providers/queries";
import { useMay } from "@/session";
import { Badge, Status } from "@/ui/badge";
import { NotAllowed } from "@/ui/not-allowed";
import { Card, LoadError, Notice, Page, PageError, PageLoading } from "@/ui/page";
import { type Tab, Tabs } from "@/ui/tabs";
import { Actions } from "./actions";
import { Attempts } from "./attempts";
import { Content } from "./content";
import { accountNames, addressHash, messageQuery, People, recipientsQuery } from "./data";
import { explainStatus } from "./explain";
import { MessageFacts } from "./message-facts";
import { MESSAGE_TABS, type MessageSearch } from "./message-search";
import { OneRecipient } from "./one-recipient";
import { Recipients } from "./recipients";
import { STATUS_TEXT, STATUSES } from "./search";
import { Timeline } from "./timeline";
import { MessageWebhooks } from "./webhooks";

interface MessagePageProps {
  id: string;
  search: MessageSearch;
  onSearch(change: MessageSearch): void;
}

export function MessagePage({ id, search, onSearch }: MessagePageProps) {
  const may = useMay();
  const message = useQuery({ ...messageQuery(id), enabled: may("METRICS_READ") });
  if (!may("METRICS_READ")) return <NotAllowed what="messages" />;
  if (message.data) return <Loaded message={message.data} search={search} onSearch={onSearch} />;
  return message.error ? <PageError error={message.error} retry={() => void message.refetch()} /> : <PageLoading />;
}

/** What all tabs show of the message. */
export interface MessageView {
  message: MessageDetail;
  people: People;
  /** The one recipient whose history is shown, by the hash of the address. */
  chosen: string | undefined;
  accountName(id: string | null | undefined): string;
}

function Loaded({ message, search, onSearch }: Omit<MessagePageProps, "id"> & { message: MessageDetail }) {
  const may = useMay();
  const recipients = useInfiniteQuery(recipientsQuery(message.id));
  const rows = recipients.data?.pages.flatMap((page) => page.rows) ?? [];
  useFreshRecipients(message);
  const accounts = useQuery({ ...accountsQuery, enabled: may("PROVIDERS_READ") }).data;
  const chosen = useChosen(search.recipient);
  const people = new People(message, rows, chosen && search.recipient?.includes("@") ? { hash: chosen, address: search.recipient } : undefined);
  const view: MessageView = { message, people, chosen, accountName: accountNames(accounts) };
  return (
    <Page
      title={message.subject || "(no subject)"}
      heading={
        <span className="flex flex-wrap items-center gap-x-3 gap-y-1.5">
          {message.subject || "(no subject)"}
          <Status status={message.status} />
          {message.test && <Badge tone="violet">Test</Badge>}
        </span>
      }
      description={summary(message, rows)}
      back={{ to: "/messages", label: "Messages" }}
      actions={<Actions message={message} recipients={rows} />}
    >
      <div className="grid items-start gap-6 lg:grid-cols-[minmax(0,1fr)_19rem]">
        <div className="min-w-0">
          {search.recipient !== undefined && chosen && !isRecipient(message, rows, chosen) && (
            <div className="mb-4">
              <Notice kind="warning">{search.recipient} is no recipient of this message.</Notice>
            </div>
          )}
          <Tabs tabs={tabsOf(view, search, onSearch, may)} value={search.tab ?? MESSAGE_TABS[0]} onChange={(tab) => onSearch({ tab: MESSAGE_TABS.find((one) => one === tab) })} />
        </div>
        <MessageFacts view={view} />
      </div>
      {recipients.error && <LoadError error={recipients.error} retry={() => void recipients.refetch()} />}
    </Page>
  );
}

function tabsOf(view: MessageView, search: MessageSearch, onSearch: MessagePageProps["onSearch"], may: ReturnType<typeof useMay>): Tab[] {
  const { message } = view;
  const withChoice = (content: ReactNode) => (
    <Card flush>
      {message.recipientCount > 1 && <OneRecipient view={view} recipient={search.recipient} onRecipient={(recipient) => onSearch({ recipient })} />}
      {content}
    </Card>
  );
  const tabs: (Tab | false)[] = [
    { value: "timeline", label: "Timeline", content: withChoice(<Timeline view={view} />) },
    { value: "attempts", label: <Counted label="Attempts" count={message.attempts.length} />, content: withChoice(<Attempts view={view} />) },
    {
      value: "recipients",
      label: <Counted label="Recipients" count={message.recipientCount} />,
      content: <Recipients view={view} onChoose={(recipient) => onSearch({ recipient, tab: "timeline" })} />,
    },
    may("CONTENT_READ") && { value: "content", label: "Content", content: <Content message={message} search={search} onSearch={onSearch} /> },
    may("SETTINGS_WRITE") && { value: "webhooks", label: "Webhooks", content: <MessageWebhooks view={view} /> },
  ];
  return tabs.filter((tab) => tab !== false);
}

const Counted = ({ label, count }: { label: string; count: number }) => (
  <>
    {label} <span className="tabular hidden text-text-3 sm:inline">{count}</span>
  </>
);

const isRecipient = (message: MessageDetail, recipients: readonly RecipientDetail[], hash: string): boolean =>
  message.to.includes(hash) || recipients.some((one) => one.toHash === hash);

/** The message is asked for again while it changes; its recipients only when something happened. */
function useFreshRecipients({ id, events }: MessageDetail): void {
  const seen = useRef(events.length);
  useEffect(() => {
    if (seen.current === events.length) return;
    seen.current = events.length;
    void queries.invalidateQueries({ queryKey: recipientsQuery(id).queryKey });
  }, [id, events.length]);
}

/** The hash of the recipient in the URL, which is an address or a hash already. */
function useChosen(recipient: string | undefined): string | undefined {
  const { data } = useQuery({
    queryKey: ["address-hash", recipient],
    queryFn: () => addressHash(recipient!),
    enabled: recipient?.includes("@") === true,
    staleTime: Number.POSITIVE_INFINITY,
  });
  return recipient?.includes("@") ? data : recipient;
}

/** What became of the message, in one sentence. */
function summary(message: MessageDetail, recipients: readonly RecipientDetail[]): string | undefined {
  if (message.status === "QUEUED" && message.scheduledAt && new Date(message.scheduledAt) > new Date()) {
    return "It is scheduled. Nothing is sent before its time.";
  }
  if (recipients.length > 1 && recipients.length === message.recipientCount) {
    const counts = STATUSES.map((status) => [recipients.filter((one) => one.status === status).length, words(status).toLowerCase()] as const);
    return `${plural(recipients.length, "recipient")}: ${counts
      .filter(([number]) => number > 0)
      .map(([number, status]) => `${number} ${status}`)
      .join(", ")}.`;
  }
  const known = STATUSES.find((status) => status === message.status);
  return explainStatus(message) ?? (known && STATUS_TEXT[known]);
}
