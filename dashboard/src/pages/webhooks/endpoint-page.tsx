import { useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { KeyRound, Pause, Pencil, Play, RotateCcw, Trash2, Zap } from "lucide-react";
import { toast } from "sonner";
import type { WebhookEndpoint } from "waypost";
import { errorText, waypost } from "@/api";
import { Button } from "@/ui/button";
import { Copyable } from "@/ui/copy";
import { Confirm } from "@/ui/dialog";
import { Facts } from "@/ui/facts";
import { Menu, type MenuItem } from "@/ui/menu";
import { Card, Page, PageError, PageLoading } from "@/ui/page";
import { Tabs } from "@/ui/tabs";
import { Time } from "@/ui/time";
import { Deliveries } from "./deliveries";
import { DeliveryDialog } from "./delivery-dialog";
import { EndpointDialog } from "./endpoint-dialog";
import { eventLabel, inOrder } from "./events";
import { endpointQuery, endpointsChanged } from "./queries";
import { ReplayDialog } from "./replay-dialog";
import { RotateDialog } from "./rotate-dialog";
import { EndpointBadge } from "./state";
import { StateNotice } from "./state-notice";
import { useTest } from "./use-test";
import { VerifyHelp } from "./verify";
import type { EndpointSearch } from "./search";

interface PageProps {
  id: string;
  search: EndpointSearch;
  change(change: EndpointSearch): void;
}

export function EndpointPage({ id, search, change }: PageProps) {
  const query = useQuery(endpointQuery(id));
  if (query.isPending) return <PageLoading />;
  if (query.isError) return <PageError error={query.error} retry={() => void query.refetch()} />;
  const endpoint = query.data;
  const close = () => change({ open: undefined });
  return (
    <Page
      title={endpoint.url}
      heading={
        <span className="flex flex-wrap items-center gap-x-3 gap-y-1.5">
          <span className="min-w-0 break-all">{endpoint.url}</span>
          <EndpointBadge endpoint={endpoint} />
        </span>
      }
      back={{ to: "/webhooks", label: "Webhooks" }}
      actions={<Actions endpoint={endpoint} open={(open) => change({ open })} />}
    >
      <StateNotice endpoint={endpoint} />
      <Tabs
        value={search.tab ?? "deliveries"}
        onChange={(tab) => change({ tab: tab === "deliveries" ? undefined : (tab as EndpointSearch["tab"]) })}
        tabs={[
          { value: "deliveries", label: "Deliveries", content: <Deliveries id={id} isActive={endpoint.isActive} search={search} change={change} /> },
          { value: "about", label: "About", content: <About endpoint={endpoint} /> },
          {
            value: "verify",
            label: "Verify signatures",
            content: (
              <Card>
                <VerifyHelp />
              </Card>
            ),
          },
        ]}
      />
      {search.open === "edit" && <EndpointDialog endpoint={endpoint} onClose={close} />}
      {search.open === "replay" && <ReplayDialog endpoint={endpoint} onClose={close} />}
      {search.open === "rotate" && <RotateDialog endpoint={endpoint} onClose={close} />}
      {search.delivery && (
        <DeliveryDialog endpoint={endpoint} id={search.delivery} onClose={() => change({ delivery: undefined })} />
      )}
    </Page>
  );
}

function Actions({ endpoint, open }: { endpoint: WebhookEndpoint; open(name: EndpointSearch["open"]): void }) {
  const test = useTest(endpoint.id);
  const navigate = useNavigate();
  const turn = useMutation({
    mutationFn: (isActive: boolean) => waypost.webhookEndpoints.update(endpoint.id, { isActive }),
    onSuccess: async (changed) => {
      toast.success(changed.isActive ? "The endpoint is on. What waited is delivered now" : "The endpoint is off. What waits keeps waiting");
      await endpointsChanged();
    },
    onError: (error) => toast.error(errorText(error)),
  });
  const remove = async () => {
    await waypost.webhookEndpoints.delete(endpoint.id);
    toast.success("The endpoint was deleted");
    await navigate({ to: "/webhooks" });
    await endpointsChanged();
  };
  const items = (askDelete: () => void): MenuItem[] => [
    { label: "Edit", icon: <Pencil aria-hidden />, onSelect: () => open("edit") },
    endpoint.isActive
      ? { label: "Pause", icon: <Pause aria-hidden />, onSelect: () => turn.mutate(false) }
      : { label: "Switch on", icon: <Play aria-hidden />, onSelect: () => turn.mutate(true) },
    { label: "Rotate the secret", icon: <KeyRound aria-hidden />, onSelect: () => open("rotate") },
    { label: "Delete", icon: <Trash2 aria-hidden />, danger: true, onSelect: askDelete },
  ];
  return (
    <>
      <Confirm
        trigger={(askDelete) => <Menu items={items(askDelete)} />}
        title="Delete the endpoint?"
        action="Delete the endpoint"
        run={remove}
      >
        <span className="break-all">{endpoint.url}</span> gets no events any more. Deliveries that wait are dropped. To stop them only for a
        while, pause it.
      </Confirm>
      <Button onClick={() => test.mutate()} busy={test.isPending}>
        <Zap aria-hidden />
        Send a test
      </Button>
      <Button kind="primary" onClick={() => open("replay")}>
        <RotateCcw aria-hidden />
        Replay
      </Button>
    </>
  );
}

function About({ endpoint }: { endpoint: WebhookEndpoint }) {
  return (
    <Card>
      <Facts
        facts={[
          ["URL", <Copyable key="url" text={endpoint.url} label="Copy the URL" />],
          ["Events", inOrder(endpoint.events).map(eventLabel).join(", ")],
          ["Tags", endpoint.tags.length > 0 ? `Only messages tagged ${endpoint.tags.join(" or ")}` : "Events of all messages"],
          ["Created", <Time key="created" at={endpoint.createdAt} />],
          ["Changed", <Time key="changed" at={endpoint.updatedAt} />],
          ["Id", <Copyable key="id" text={endpoint.id} label="Copy the id" />],
        ]}
      />
    </Card>
  );
}
