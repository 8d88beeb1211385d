import { createFileRoute } from "@tanstack/react-router";
import { RulePage } from "@/pages/routing/rule-page";

export const Route = createFileRoute("/_app/routing/$ruleId")({ component: Rule });

function Rule() {
  return <RulePage id={Route.useParams().ruleId} />;
}
