import { useMutation, useQueryClient } from "@tanstack/react-query";
import { CircleCheck } from "lucide-react";
import { toast } from "sonner";
import type { DeadJob } from "waypost";
import { errorText, waypost } from "@/api";
import { plural } from "@/format";
import { Button } from "@/ui/button";
import { Copyable } from "@/ui/copy";
import { Confirm } from "@/ui/dialog";
import { Facts } from "@/ui/facts";
import { Card, LoadError, SkeletonRows } from "@/ui/page";
import { Time } from "@/ui/time";
import { OPERATOR, useDeadJobs } from "./queries";

function byMessage(jobs: readonly DeadJob[]): readonly (readonly DeadJob[])[] {
  const found = new Map<string, DeadJob[]>();
  for (const job of jobs) found.set(job.messageId, [...(found.get(job.messageId) ?? []), job]);
  return [...found.values()];
}

/** Jobs that no worker takes any more. */
export function DeadJobs() {
  const jobs = useDeadJobs();
  const messages = byMessage(jobs.data ?? []);
  return (
    <Card
      title="Dead jobs"
      description="Set aside because workers died of them, or because their result could not be recorded. Their recipients wait until you decide."
      flush
    >
      {jobs.isLoading && <SkeletonRows rows={2} />}
      {jobs.error && <LoadError error={jobs.error} retry={() => void jobs.refetch()} />}
      {jobs.data?.length === 0 && (
        <p className="flex items-center gap-2 px-4 py-5 text-text-2 sm:px-5">
          <CircleCheck className="size-4 text-green" aria-hidden />
          No job is dead.
        </p>
      )}
      {messages.length > 0 && (
        <ul className="divide-y divide-line">
          {messages.map((chunks) => (
            <DeadMessage key={chunks[0]!.messageId} chunks={chunks} />
          ))}
        </ul>
      )}
    </Card>
  );
}

/** The dead jobs of one message: they are retried and dropped together. */
function DeadMessage({ chunks }: { chunks: readonly DeadJob[] }) {
  const client = useQueryClient();
  const refresh = () => client.invalidateQueries({ queryKey: OPERATOR });
  const first = chunks[0]!;
  const recipients = chunks.reduce((sum, chunk) => sum + chunk.recipients, 0);
  const retry = useMutation({
    mutationFn: () => waypost.operator.retryDeadJobs(first.messageId),
    onSuccess: async () => {
      toast.success("The jobs are tried again");
      await refresh();
    },
    onError: (error) => toast.error(errorText(error)),
  });
  const drop = async () => {
    await waypost.operator.deleteDeadJobs(first.messageId);
    toast.success("The jobs are dropped");
    await refresh();
  };
  return (
    <li className="flex flex-wrap items-start justify-between gap-4 px-4 py-4 sm:px-5">
      <div className="min-w-0 flex-1 basis-80 space-y-3">
        <p className="font-medium">
          {plural(recipients, "recipient waits", "recipients wait")} in {plural(chunks.length, "dead job")}
        </p>
        <ul className="space-y-0.5 text-red">
          {[...new Set(chunks.map((chunk) => chunk.reason))].map((reason) => (
            <li key={reason} className="break-words">
              {reason}
            </li>
          ))}
        </ul>
        <Facts
          facts={[
            ["Message", <Copyable text={first.messageId} label="Copy the id of the message" />],
            ["Organization", <Copyable text={first.organizationId} label="Copy the id of the organization" />],
            ["Dead since", <Time at={first.deadSince} />],
            ["Workers lost", Math.max(...chunks.map((chunk) => chunk.losses))],
          ]}
        />
      </div>
      <div className="flex gap-2">
        <Button small busy={retry.isPending} onClick={() => retry.mutate()}>
          Try again
        </Button>
        <Confirm
          title="Drop the dead jobs of this message?"
          action="Drop"
          run={drop}
          trigger={(open) => (
            <Button small onClick={open}>
              Drop …
            </Button>
          )}
        >
          {plural(recipients, "recipient gets", "recipients get")} no mail: each becomes failed, with a dropped event. This cannot be taken back.
        </Confirm>
      </div>
    </li>
  );
}
