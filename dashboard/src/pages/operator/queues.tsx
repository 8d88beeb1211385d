import { count, words } from "@/format";
import { Card, LoadError, Skeleton } from "@/ui/page";
import { useQueues } from "./queries";

const STATES = [
  ["waiting", "Waiting", "No worker has fetched them yet."],
  ["fetched", "In progress", "A worker has them."],
  ["delayed", "Later", "Scheduled, or waiting for their next attempt."],
] as const;

/** How many jobs are in the queues. */
export function Queues() {
  const queues = useQueues();
  return (
    <Card title="Queues" description="Jobs in Redis. A job is up to 100 recipients of one message." flush>
      {queues.error && <LoadError error={queues.error} retry={() => void queues.refetch()} />}
      {queues.isLoading && (
        <div className="p-5">
          <Skeleton className="h-14 w-full" />
        </div>
      )}
      {queues.data?.map((queue) => (
        <div key={queue.name} className="border-b border-line p-4 last:border-0 sm:px-5">
          <h3 className="mb-3 text-[13px] font-medium text-text-2">{words(queue.name)}</h3>
          <dl className="grid grid-cols-3 gap-4">
            {STATES.map(([state, label, what]) => (
              <div key={state}>
                <dt className="text-[13px] text-text-3">{label}</dt>
                <dd>
                  <span className="block text-2xl font-semibold tabular">{count(queue[state])}</span>
                  <span className="hidden text-[13px] text-text-3 sm:block">{what}</span>
                </dd>
              </div>
            ))}
          </dl>
        </div>
      ))}
    </Card>
  );
}
