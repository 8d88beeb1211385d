import { createFileRoute } from "@tanstack/react-router";
import { DeadJobs } from "@/pages/operator/dead-jobs";
import { Queues } from "@/pages/operator/queues";
import { Tasks } from "@/pages/operator/tasks-card";
import { Workers } from "@/pages/operator/workers";
import { useMay } from "@/session";
import { NotAllowed } from "@/ui/not-allowed";
import { Page } from "@/ui/page";

export const Route = createFileRoute("/_app/operator")({ component: Operator });

function Operator() {
  const may = useMay();
  return (
    <Page title="Operator" description="What belongs to the whole installation, over all organizations. The page is renewed every five seconds.">
      {may("OPERATOR") ? (
        <div className="space-y-6">
          <DeadJobs />
          <Queues />
          <Workers />
          <Tasks />
        </div>
      ) : (
        <NotAllowed what="the operator's page" />
      )}
    </Page>
  );
}
