import { createFileRoute } from "@tanstack/react-router";
import { DomainPage } from "@/pages/domains/domain";

export const Route = createFileRoute("/_app/domains/$domain")({ component: Domain });

function Domain() {
  return <DomainPage domain={Route.useParams().domain} />;
}
