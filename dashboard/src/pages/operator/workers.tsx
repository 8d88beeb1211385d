import { count } from "@/format";
import { Badge } from "@/ui/badge";
import { Copyable } from "@/ui/copy";
import { Card, Empty, LoadError, SkeletonRows } from "@/ui/page";
import { SimpleTable } from "@/ui/table";
import { Time } from "@/ui/time";
import { useWorkers } from "./queries";

/** The workers that send, and what they hold. */
export function Workers() {
  const workers = useWorkers();
  return (
    <Card title="Workers" description="A worker that sends no sign of life loses its jobs to the others when its lease ends." flush>
      {workers.isLoading && <SkeletonRows rows={2} />}
      {workers.error && <LoadError error={workers.error} retry={() => void workers.refetch()} />}
      {workers.data?.length === 0 && <Empty title="No worker runs">Nothing is sent until one does. Start waypost-worker.</Empty>}
      {workers.data && workers.data.length > 0 && (
        <SimpleTable label="Workers" head={["Worker", "State", "Jobs", "Started", "Lease ends"]}>
          {workers.data.map((worker) => (
            <tr key={worker.name}>
              <td className="max-w-80">
                <Copyable text={worker.name} label="Copy the name of the worker" />
              </td>
              <td>{worker.isDead ? <Badge tone="red" dot>Dead</Badge> : <Badge tone="green" dot>Alive</Badge>}</td>
              <td className="tabular">{count(worker.chunks)}</td>
              <td>
                <Time at={worker.startedAt} />
              </td>
              <td>
                <Time at={worker.leasedUntil} />
              </td>
            </tr>
          ))}
        </SimpleTable>
      )}
    </Card>
  );
}
