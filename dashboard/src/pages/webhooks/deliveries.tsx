import { useMutation } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Inbox } from "lucide-react";
import { type FormEvent, useEffect, useId, useState } from "react";
import { toast } from "sonner";
import type { ListWebhookDeliveriesParams, WebhookDelivery } from "waypost";
import { errorText, waypost } from "@/api";
import { useMay } from "@/session";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { Input, Select } from "@/ui/form";
import { Card, Empty } from "@/ui/page";
import { PagedTable, usePaged } from "@/ui/paged";
import { SPAN_OPTIONS, type Span, spanStart } from "@/ui/search-params";
import type { Column } from "@/ui/table";
import { Time } from "@/ui/time";
import { answerText, deliveryState } from "./delivery";
import { EVENTS, eventLabel } from "./events";
import { deliveriesKey, endpointsChanged } from "./queries";
import { useTest } from "./use-test";
import type { DeliverySearch } from "./search";

interface DeliveriesProps {
  id: string;
  isActive: boolean;
  search: DeliverySearch;
  change(change: DeliverySearch & { delivery?: string | undefined }): void;
}

type Params = ListWebhookDeliveriesParams & { eventType?: string; messageId?: string; from?: string };

const NO_FILTERS = { status: undefined, event: undefined, message: undefined, since: undefined };

export function Deliveries({ id, isActive, search, change }: DeliveriesProps) {
  const { status, event, message, since } = search;
  const params: Params = {
    ...(status && { status }),
    ...(event && { eventType: event }),
    ...(message && { messageId: message }),
    ...(since && { from: spanStart(since) }),
  };
  const list = usePaged(
    [...deliveriesKey(id), params],
    (cursor) => waypost.webhookEndpoints.deliveries.list(id, { ...params, limit: 50, ...(cursor && { cursor }) }),
    { refetchInterval: 5_000 },
  );
  const may = useMay();
  const test = useTest(id);
  return (
    <div className="space-y-4">
      <DeliveryFilters search={search} change={change} />
      <Card flush>
        <PagedTable
          list={list}
          label="Deliveries"
          rowKey={(row) => row.id}
          onOpen={(row) => change({ delivery: row.id })}
          columns={columns(id, isActive, may("METRICS_READ"))}
          filtered={status || event || message || since ? { what: "delivery", clear: () => change(NO_FILTERS) } : undefined}
          empty={
            <Empty
              icon={<Inbox />}
              title="No delivery yet"
              action={
                <Button onClick={() => test.mutate()} busy={test.isPending}>
                  Send a test
                </Button>
              }
            >
              Each event that is posted to this endpoint stands here, with what your server answered. A test does not.
            </Empty>
          }
        />
      </Card>
    </div>
  );
}

function columns(endpointId: string, isActive: boolean, canRead: boolean): Column<WebhookDelivery>[] {
  return [
    { head: "Event", width: "minmax(0, 1.2fr)", cell: (row) => <span className="font-medium">{eventLabel(row.eventType)}</span> },
    {
      head: "Status",
      width: "minmax(6.5rem, 1fr)",
      cell: (row) => {
        const { label, tone } = deliveryState(row);
        return (
          <Badge dot tone={tone}>
            {label}
          </Badge>
        );
      },
    },
    { head: "Last answer", wide: true, width: "minmax(0, 1.6fr)", cell: (row) => <span className="text-text-2">{answerText(row.attempts.at(-1))}</span> },
    { head: "Message", wide: true, width: "5.5rem", cell: (row) => <MessageCell id={row.messageId} canRead={canRead} /> },
    { head: "Next try", wide: true, width: "6.5rem", cell: (row) => <NextTry at={row.nextAttemptAt} isActive={isActive} /> },
    { head: "Created", wide: true, width: "6.5rem", cell: (row) => <Time at={row.createdAt} /> },
    {
      head: <span className="sr-only">Actions</span>,
      width: "4.5rem",
      align: "right",
      cell: (row) => isActive && row.status !== "DELIVERED" && <ReplayOne endpointId={endpointId} id={row.id} />,
    },
  ];
}

/** When a delivery is tried next. One that is due may still wait: for others before it, or for the endpoint. */
export function NextTry({ at, isActive }: { at: string | null; isActive: boolean }) {
  if (at === null || new Date(at).getTime() > Date.now()) return <Time at={at} />;
  return <span className="text-text-2">{isActive ? "Due" : "When it is on"}</span>;
}

function MessageCell({ id, canRead }: { id: string | null; canRead: boolean }) {
  if (!id) return <span className="text-text-3">–</span>;
  if (!canRead) return <>{id.slice(-8)}</>;
  return (
    <Link
      to={`/messages/${id}` as string}
      onClick={(event) => event.stopPropagation()}
      className="font-mono text-[13px] text-accent-text hover:underline"
      title={id}
    >
      {id.slice(-8)}
    </Link>
  );
}

export function useReplay(endpointId: string, id: string) {
  return useMutation({
    mutationFn: () => waypost.webhookEndpoints.deliveries.replay(endpointId, id),
    onSuccess: async () => {
      toast.success("The delivery is due again");
      await endpointsChanged();
    },
    onError: (error) => toast.error(errorText(error)),
  });
}

function ReplayOne({ endpointId, id }: { endpointId: string; id: string }) {
  const replay = useReplay(endpointId, id);
  return (
    <Button
      small
      kind="quiet"
      busy={replay.isPending}
      onClick={(event) => {
        event.stopPropagation();
        replay.mutate();
      }}
    >
      Replay
    </Button>
  );
}

const STATUS_OPTIONS = [
  ["", "All statuses"],
  ["FAILED", "Failed"],
  ["PENDING", "Waiting"],
  ["DELIVERED", "Delivered"],
] as const;

function DeliveryFilters({ search, change }: Pick<DeliveriesProps, "search" | "change">) {
  const [message, setMessage] = useState(search.message ?? "");
  const id = useId();
  useEffect(() => setMessage(search.message ?? ""), [search.message]);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    change({ message: message.trim() || undefined });
  };
  return (
    <div className="flex flex-wrap gap-2">
      <Select
        aria-label="Status"
        className="min-w-32 flex-1 sm:flex-none"
        options={STATUS_OPTIONS}
        value={search.status ?? ""}
        onChange={(event) => change({ status: (event.target.value || undefined) as DeliverySearch["status"] })}
      />
      <Select
        aria-label="Event"
        className="min-w-32 flex-1 sm:flex-none"
        options={[["", "All events"], ...EVENTS.map((event) => [event.type, event.label] as const)]}
        value={search.event ?? ""}
        onChange={(event) => change({ event: event.target.value || undefined })}
      />
      <Select
        aria-label="Created"
        className="min-w-32 flex-1 sm:flex-none"
        options={SPAN_OPTIONS}
        value={search.since ?? ""}
        onChange={(event) => change({ since: (event.target.value || undefined) as Span | undefined })}
      />
      <form onSubmit={submit} role="search" className="flex w-full gap-2 lg:w-auto lg:flex-1">
        <label htmlFor={id} className="sr-only">
          Id of a message
        </label>
        <Input
          id={id}
          type="search"
          className="min-w-0 flex-1"
          autoComplete="off"
          placeholder="Id of a message"
          value={message}
          onChange={(event) => {
            setMessage(event.target.value);
            if (!event.target.value && search.message) change({ message: undefined });
          }}
        />
        <Button type="submit">Search</Button>
      </form>
    </div>
  );
}
