import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { RotateCcw } from "lucide-react";
import type { WebhookAttempt, WebhookEndpoint } from "waypost";
import { waypost } from "@/api";
import { duration, exactTime } from "@/format";
import { useMay } from "@/session";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { Code } from "@/ui/code";
import { Copyable } from "@/ui/copy";
import { Dialog } from "@/ui/dialog";
import { Facts } from "@/ui/facts";
import { LoadError, SkeletonRows } from "@/ui/page";
import { NextTry, useReplay } from "./deliveries";
import { deliveryState, isSuccess } from "./delivery";
import { eventLabel } from "./events";
import { deliveriesKey } from "./queries";

interface DialogProps {
  endpoint: WebhookEndpoint;
  id: string;
  onClose(): void;
}

/** One delivery: its state, what was posted, and each call with its answer. */
export function DeliveryDialog({ endpoint, id, onClose }: DialogProps) {
  const query = useQuery({
    queryKey: [...deliveriesKey(endpoint.id), "one", id],
    queryFn: () => waypost.webhookEndpoints.deliveries.get(endpoint.id, id),
    refetchInterval: 5_000,
  });
  const may = useMay();
  const replay = useReplay(endpoint.id, id);
  const delivery = query.data;
  const state = delivery && deliveryState(delivery);
  return (
    <Dialog open onClose={onClose} wide title={delivery ? `Delivery of “${eventLabel(delivery.eventType)}”` : "Delivery"} description={state?.text}>
      {query.isPending ? (
        <SkeletonRows />
      ) : query.isError || !delivery || !state ? (
        <LoadError error={query.error} retry={() => void query.refetch()} />
      ) : (
        <div className="space-y-6">
          <Facts
            facts={[
              [
                "Status",
                <span key="status" className="inline-flex flex-wrap items-center gap-3">
                  <Badge dot tone={state.tone}>
                    {state.label}
                  </Badge>
                  {endpoint.isActive && (
                    <Button small busy={replay.isPending} onClick={() => replay.mutate()}>
                      <RotateCcw aria-hidden />
                      Replay
                    </Button>
                  )}
                </span>,
              ],
              delivery.nextAttemptAt !== null && ["Next try", <NextTry key="next" at={delivery.nextAttemptAt} isActive={endpoint.isActive} />],
              ["Created", exactTime(delivery.createdAt)],
              delivery.endedAt !== null && ["Ended", exactTime(delivery.endedAt)],
              delivery.messageId !== null && ["Message", may("METRICS_READ") ? <MessageLink key="message" id={delivery.messageId} /> : delivery.messageId],
              ["webhook-id", <Copyable key="id" text={delivery.id} label="Copy the webhook-id" />],
            ]}
          />
          <section>
            <h3 className="mb-2 text-sm font-semibold">Calls</h3>
            <Attempts attempts={delivery.attempts} />
          </section>
          <section>
            <h3 className="mb-2 text-sm font-semibold">Body</h3>
            {delivery.payload ? (
              <Code text={JSON.stringify(delivery.payload, null, 2)} />
            ) : (
              <p className="text-text-2">The message or the address is no longer stored, so the body cannot be shown.</p>
            )}
          </section>
        </div>
      )}
    </Dialog>
  );
}

const MessageLink = ({ id }: { id: string }) => (
  <Link to={`/messages/${id}` as string} className="font-mono text-[13px] break-all text-accent-text hover:underline">
    {id}
  </Link>
);

/** The newest first. */
function Attempts({ attempts }: { attempts: readonly WebhookAttempt[] }) {
  if (attempts.length === 0) return <p className="text-text-2">No call was made yet.</p>;
  return (
    <ol className="divide-y divide-line rounded-md border border-line">
      {attempts.toReversed().map((attempt) => (
        <li key={attempt.id} className="px-3 py-2.5 sm:px-4">
          <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
            <Badge tone={isSuccess(attempt) ? "green" : "red"}>{attempt.statusCode ?? "No answer"}</Badge>
            <span className="tabular text-[13px] text-text-2">{duration(attempt.durationMs)}</span>
            <span className="tabular ml-auto text-[13px] text-text-3">{exactTime(attempt.startedAt)}</span>
          </div>
          {attempt.answer && (
            <pre tabIndex={0} className="mt-2 max-h-40 overflow-auto font-mono text-[13px] break-words whitespace-pre-wrap text-text-2">
              {attempt.answer}
            </pre>
          )}
        </li>
      ))}
    </ol>
  );
}
