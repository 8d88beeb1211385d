import { useMutation, useQuery } from "@tanstack/react-query";
import { toast } from "sonner";
import type { WebhookEndpoint } from "waypost";
import { errorText, waypost } from "@/api";
import { exactTime, relativeTime } from "@/format";
import { Button } from "@/ui/button";
import { Notice } from "@/ui/page";
import { endpointsChanged } from "./queries";
import { disabledAt, endpointState } from "./state";

/** What is wrong with an endpoint, what follows, and what to do. */
export function StateNotice({ endpoint }: { endpoint: WebhookEndpoint }) {
  const { name } = endpointState(endpoint);
  if (name === "active") return null;
  return (
    <div className="mb-5">
      {name === "failing" && endpoint.failingSince ? (
        <Notice kind="warning">
          All deliveries have failed since {exactTime(endpoint.failingSince)}. Waypost now tries one at a time, with pauses of up
          to five minutes; the others wait and lose no tries. If this goes on, the endpoint is switched off{" "}
          {relativeTime(disabledAt(endpoint.failingSince))}. Look at the answers below, then mend your server.
        </Notice>
      ) : (
        <Off endpoint={endpoint} />
      )}
    </div>
  );
}

function Off({ endpoint }: { endpoint: WebhookEndpoint }) {
  // Why it is off stands only in the audit log.
  const { data: entry } = useQuery({
    queryKey: ["webhook-endpoints", endpoint.id, "deactivated"],
    queryFn: async () =>
      (await waypost.auditLogs.list({ targetId: endpoint.id, action: "webhook_endpoint.deactivated", limit: 1 })).data[0] ?? null,
  });
  // An entry of before: it was switched on since, and then off by a person.
  const isOfNow = entry && new Date(entry.occurredAt).getTime() >= new Date(endpoint.updatedAt).getTime() - 1_000;
  const reason = isOfNow ? entry.metadata.reason : undefined;
  const start = useMutation({
    mutationFn: () => waypost.webhookEndpoints.update(endpoint.id, { isActive: true }),
    onSuccess: async () => {
      toast.success("The endpoint is on. What waited is delivered now");
      await endpointsChanged();
    },
    onError: (error) => toast.error(errorText(error)),
  });
  return (
    <Notice
      kind={reason ? "error" : "warning"}
      action={
        <Button small busy={start.isPending} onClick={() => start.mutate()}>
          Switch it on
        </Button>
      }
    >
      {reason === "GONE" && entry
        ? `Waypost switched this endpoint off ${relativeTime(entry.occurredAt)}: its server answered 410 (gone). `
        : reason === "FAILING"
          ? "Waypost switched this endpoint off: all deliveries had failed for five days. "
          : "This endpoint is off and gets no new events. "}
      Deliveries that waited are made when you switch it on again; what failed can be replayed then.
    </Notice>
  );
}
