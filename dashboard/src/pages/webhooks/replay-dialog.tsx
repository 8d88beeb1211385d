import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { toast } from "sonner";
import type { WebhookDeliveryStatus, WebhookEndpoint } from "waypost";
import { waypost } from "@/api";
import { plural } from "@/format";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { Field, Form, FormActions, Input, Select, Submit } from "@/ui/form";
import { Notice } from "@/ui/page";
import { type Undelivered, useUndelivered } from "./failed-count";
import { type Period, PERIODS, periodOf } from "./period";
import { endpointsChanged } from "./queries";

const WHICH = [
  ["undelivered", "Not delivered: failed, or waiting for the next try"],
  ["failed", "Failed: all tries are used up"],
  ["all", "All, also those that were delivered"],
] as const;
type Which = (typeof WHICH)[number][0];

// What waits comes first: what failed waits too, once it is replayed, and would be counted twice.
const STATUSES: Record<Which, readonly (WebhookDeliveryStatus | undefined)[]> = {
  undelivered: ["PENDING", "FAILED"],
  failed: ["FAILED"],
  all: [undefined],
};

async function replaySpan(id: string, which: Which, { since, until }: { since: string; until: string }): Promise<number> {
  let replayed = 0;
  for (const status of STATUSES[which]) {
    let from: string | null = since;
    while (from !== null) {
      const result: { replayed: number; continueFrom: string | null } = await waypost.webhookEndpoints.replay(id, {
        since: from,
        until,
        ...(status && { status }),
      });
      replayed += result.replayed;
      from = result.continueFrom;
    }
  }
  return replayed;
}

/** Replays the deliveries of a period: as it opens, those of the last day that did not arrive. */
export function ReplayDialog({ endpoint, onClose }: { endpoint: WebhookEndpoint; onClose(): void }) {
  const [which, setWhich] = useState<Which>("undelivered");
  const [period, setPeriod] = useState<Period>("24h");
  const [from, setFrom] = useState("");
  const [to, setTo] = useState("");
  const span = periodOf(period, from, to);
  const { data: undelivered } = useUndelivered(endpoint.id, span.since, span.until);
  const replay = useMutation({
    mutationFn: async () => replaySpan(endpoint.id, which, span),
    onSuccess: async (replayed) => {
      if (replayed > 0) toast.success(`${plural(replayed, "delivery is", "deliveries are")} due again`);
      else toast.info("No delivery of this period is to be replayed");
      await endpointsChanged();
      onClose();
    },
  });
  return (
    <Dialog open onClose={onClose} title="Replay deliveries" description="They are posted again at once, under the same webhook-id.">
      {endpoint.isActive ? (
        <Form error={replay.error} onSubmit={() => replay.mutate()}>
          <Field label="Created" path="since">
            {(control) => (
              <Select {...control} options={PERIODS} value={period} onChange={(event) => setPeriod(event.target.value as Period)} />
            )}
          </Field>
          {period === "own" && (
            <div className="grid gap-4 sm:grid-cols-2">
              <Field label="From">
                {(control) => <Input {...control} type="datetime-local" value={from} onChange={(event) => setFrom(event.target.value)} />}
              </Field>
              <Field label="Until" path="until" hint="Empty is now.">
                {(control) => <Input {...control} type="datetime-local" value={to} onChange={(event) => setTo(event.target.value)} />}
              </Field>
            </div>
          )}
          <Field label="Which">
            {(control) => <Select {...control} options={WHICH} value={which} onChange={(event) => setWhich(event.target.value as Which)} />}
          </Field>
          <p aria-live="polite" className="min-h-5 text-[13px] text-text-2">
            {span.since && undelivered && countText(which, undelivered)}
          </p>
          <FormActions>
            <Submit busy={replay.isPending} disabled={!span.since || (undelivered && countOf(which, undelivered) === 0)}>
              Replay
            </Submit>
            <Button onClick={onClose}>Cancel</Button>
          </FormActions>
        </Form>
      ) : (
        <SwitchOnFirst endpoint={endpoint} onClose={onClose} />
      )}
    </Dialog>
  );
}

/** How many deliveries would be posted again; undefined where that is not counted. */
function countOf(which: Which, { failed, waiting }: Undelivered): number | undefined {
  if (which === "all") return undefined;
  return which === "failed" ? failed : failed + waiting;
}

function countText(which: Which, { failed, waiting }: Undelivered): string {
  if (which === "all") return "Those that were delivered are posted again too. Your server knows them by their webhook-id.";
  const gaveUp = `${plural(failed, "delivery", "deliveries")} failed in this period`;
  if (which === "failed" || waiting === 0) return `${gaveUp}.`;
  return `${gaveUp}, and ${waiting} ${waiting === 1 ? "waits" : "wait"} for the next try.`;
}

function SwitchOnFirst({ endpoint, onClose }: { endpoint: WebhookEndpoint; onClose(): void }) {
  const start = useMutation({
    mutationFn: () => waypost.webhookEndpoints.update(endpoint.id, { isActive: true }),
    onSuccess: endpointsChanged,
  });
  return (
    <Form error={start.error} onSubmit={() => start.mutate()}>
      <Notice kind="warning">The endpoint is off, so nothing can be posted to it. Once it is on, what waited is delivered by itself.</Notice>
      <FormActions>
        <Submit busy={start.isPending}>Switch it on</Submit>
        <Button onClick={onClose}>Cancel</Button>
      </FormActions>
    </Form>
  );
}
