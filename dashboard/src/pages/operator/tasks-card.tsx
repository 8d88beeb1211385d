import type { SchedulerTask } from "waypost";
import { duration, words } from "@/format";
import { Badge } from "@/ui/badge";
import { Card, Empty, LoadError, Notice, SkeletonRows } from "@/ui/page";
import { SimpleTable } from "@/ui/table";
import { Time } from "@/ui/time";
import { useTasks } from "./queries";
import { TASKS } from "./tasks";

/** The tasks of the scheduler, the late and failed ones first. */
export function Tasks() {
  const tasks = useTasks();
  const rows = tasks.data?.toSorted((a, b) => Number(isBad(b)) - Number(isBad(a)) || a.name.localeCompare(b.name));
  const late = rows?.filter((task) => task.isLate) ?? [];
  return (
    <Card title="Tasks of the scheduler" description="One scheduler leads and runs them; the others wait to take over." flush>
      {tasks.isLoading && <SkeletonRows rows={8} />}
      {tasks.error && <LoadError error={tasks.error} retry={() => void tasks.refetch()} />}
      {late.length > 0 && (
        <div className="p-4 pb-0 sm:p-5 sm:pb-0">
          <Notice kind="error">
            {late.length === 1 ? "A task is late" : `${late.length} tasks are late`}: no run succeeded for more than ten intervals. Check that a scheduler
            runs, and its log.
          </Notice>
        </div>
      )}
      {rows?.length === 0 && <Empty title="No scheduler has run yet">Start waypost-scheduler. Without it, scheduled messages and lost jobs wait.</Empty>}
      {rows && rows.length > 0 && (
        <SimpleTable label="Tasks of the scheduler" head={["Task", "State", "Last run", "Took", "Every"]}>
          {rows.map((task) => (
            <Row key={task.name} task={task} />
          ))}
        </SimpleTable>
      )}
    </Card>
  );
}

const isBad = (task: SchedulerTask): boolean => task.isLate || task.lastError !== null;

function Row({ task }: { task: SchedulerTask }) {
  const [label, what] = TASKS[task.name] ?? [words(task.name.replaceAll("-", "_")), undefined];
  return (
    <tr>
      <td className="min-w-64">
        <span className="font-medium">{label}</span>
        {what && <span className="block text-[13px] text-text-3">{what}</span>}
        {task.lastError && <span className="block text-[13px] break-words text-red">{task.lastError}</span>}
      </td>
      <td>
        {task.isLate ? <Badge tone="red" dot>{duration(task.lagMs)} late</Badge> : task.lastError ? <Badge tone="amber" dot>Failed</Badge> : <Badge tone="green" dot>On time</Badge>}
      </td>
      <td>
        <Time at={task.lastStartedAt} />
      </td>
      <td className="whitespace-nowrap tabular">{duration(task.tookMs)}</td>
      <td className="whitespace-nowrap tabular">{duration(task.everyMs)}</td>
    </tr>
  );
}
