import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { Plus, Webhook } from "lucide-react";
import { useState } from "react";
import type { WebhookEndpoint, WebhookEndpointWithSecret } from "waypost";
import { plural } from "@/format";
import { Button } from "@/ui/button";
import { Card, Empty, LoadError, Page, SkeletonRows } from "@/ui/page";
import { EndpointDialog } from "./endpoint-dialog";
import { eventsText } from "./events";
import { useFailedToday } from "./failed-count";
import { endpointsQuery } from "./queries";
import { ReplayDialog } from "./replay-dialog";
import { SecretDialog } from "./secret-dialog";
import { EndpointBadge, endpointState } from "./state";

interface PageProps {
  adding: boolean;
  setAdding(adding: boolean): void;
}

export function WebhooksPage({ adding, setAdding }: PageProps) {
  const endpoints = useQuery(endpointsQuery);
  const navigate = useNavigate();
  const [created, setCreated] = useState<WebhookEndpointWithSecret>();
  const show = (id: string) => void navigate({ to: "/webhooks/$id", params: { id } });
  const add = (
    <Button kind="primary" onClick={() => setAdding(true)}>
      <Plus aria-hidden />
      Add an endpoint
    </Button>
  );
  return (
    <Page title="Webhooks" description="URLs of yours that get events as they happen: delivered, bounced, unsubscribed and others." actions={add}>
      <Card flush>
        {endpoints.isPending ? (
          <SkeletonRows rows={3} />
        ) : endpoints.isError ? (
          <LoadError error={endpoints.error} retry={() => void endpoints.refetch()} />
        ) : endpoints.data.length === 0 ? (
          <Empty icon={<Webhook />} title="No webhook endpoint yet" action={<Button onClick={() => setAdding(true)}>Add an endpoint</Button>}>
            Add the URL of your server, and it learns at once what becomes of each message, for instance to mark an address that bounced.
          </Empty>
        ) : (
          <ul>
            {endpoints.data.map((endpoint) => (
              <Row key={endpoint.id} endpoint={endpoint} />
            ))}
          </ul>
        )}
      </Card>
      {adding && !created && <EndpointDialog onClose={() => setAdding(false)} onCreated={setCreated} />}
      {created && <SecretDialog title="The endpoint was added" endpoint={created} onClose={() => show(created.id)} />}
    </Page>
  );
}

function Row({ endpoint }: { endpoint: WebhookEndpoint }) {
  const [replaying, setReplaying] = useState(false);
  const failed = useFailedToday(endpoint.id) ?? 0;
  const { detail } = endpointState(endpoint);
  return (
    <li className="flex flex-wrap items-center gap-x-4 gap-y-2 border-b border-line px-4 py-3 last:border-0 sm:px-5">
      <div className="min-w-0 flex-[1_1_18rem]">
        <Link
          to="/webhooks/$id"
          params={{ id: endpoint.id }}
          className="block truncate rounded-sm font-medium hover:text-accent-text"
          title={endpoint.url}
        >
          {endpoint.url}
        </Link>
        <p className="truncate text-[13px] text-text-3">
          {eventsText(endpoint.events)}
          {endpoint.tags.length > 0 && ` · only tagged ${endpoint.tags.join(", ")}`}
        </p>
      </div>
      {failed > 0 && (
        <Button small onClick={() => setReplaying(true)}>
          {plural(failed, "failed delivery", "failed deliveries")} in 24 h: replay
        </Button>
      )}
      <div className="flex items-center gap-2.5">
        {detail && <span className="text-[13px] text-text-3">{detail}</span>}
        <EndpointBadge endpoint={endpoint} />
      </div>
      {replaying && <ReplayDialog endpoint={endpoint} onClose={() => setReplaying(false)} />}
    </li>
  );
}
