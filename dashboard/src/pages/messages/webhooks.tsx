import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Webhook } from "lucide-react";
import type { WebhookDelivery } from "waypost";
import { waypost } from "@/api";
import { answerText, deliveryState } from "@/pages/webhooks/delivery";
import { eventLabel } from "@/pages/webhooks/events";
import { endpointsQuery } from "@/pages/webhooks/queries";
import { Badge } from "@/ui/badge";
import { Card, Empty } from "@/ui/page";
import { PagedTable, usePaged } from "@/ui/paged";
import type { Column } from "@/ui/table";
import { Time } from "@/ui/time";
import type { MessageView } from "./message";

/** Which of your servers were told what became of the message. */
export function MessageWebhooks({ view }: { view: MessageView }) {
  const { id } = view.message;
  const list = usePaged(
    ["messages", "one", id, "webhooks"],
    (cursor) => waypost.messages.webhookDeliveries.list(id, { limit: 50, cursor }),
    { refetchInterval: 10_000 },
  );
  const endpoints = useQuery(endpointsQuery).data;
  const url = (endpointId: string) => endpoints?.find((endpoint) => endpoint.id === endpointId)?.url ?? (endpoints ? "a removed endpoint" : "");
  return (
    <Card title="Webhook deliveries" description="What your servers were told of this message." flush>
      <PagedTable
        list={list}
        columns={columnsFor(view, url)}
        rowKey={(delivery) => delivery.id}
        label="Webhook deliveries"
        empty={
          <Empty icon={<Webhook />} title="No server was told">
            {endpoints?.length === 0 ? "No webhook endpoint is set up." : "Your endpoints listen to none of the events that this message has had so far, or its deliveries are no longer stored."}
          </Empty>
        }
      />
    </Card>
  );
}

function columnsFor(view: MessageView, url: (endpointId: string) => string): readonly Column<WebhookDelivery>[] {
  return [
    {
      head: "Event",
      width: "minmax(0, 1.1fr)",
      cell: (delivery) => (
        <>
          <Link
            to="/webhooks/$id"
            params={{ id: delivery.webhookEndpointId }}
            search={{ tab: "deliveries", message: view.message.id, delivery: delivery.id }}
            className="font-medium hover:underline"
          >
            {eventLabel(delivery.eventType)}
          </Link>
          {view.message.recipientCount > 1 && delivery.toHash && <span className="block truncate text-xs text-text-3">{view.people.name(delivery.toHash)}</span>}
        </>
      ),
    },
    {
      head: "State",
      width: "6.5rem",
      cell: (delivery) => {
        const { label, tone, text } = deliveryState(delivery);
        return (
          <span title={text}>
            <Badge tone={tone} dot>
              {label}
            </Badge>
          </span>
        );
      },
    },
    { head: "Endpoint", width: "minmax(0, 1.6fr)", wide: true, cell: (delivery) => <span className="text-text-2" title={url(delivery.webhookEndpointId)}>{url(delivery.webhookEndpointId).replace(/^https?:\/\//, "")}</span> },
    { head: "Latest answer", width: "minmax(0, 1.2fr)", wide: true, cell: (delivery) => <span className="text-text-2">{answerText(delivery.attempts.at(-1))}</span> },
    { head: "Since", width: "5.5rem", align: "right", cell: (delivery) => <span className="text-text-2"><Time at={delivery.createdAt} /></span> },
  ];
}
