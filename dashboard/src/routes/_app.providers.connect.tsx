import { createFileRoute } from "@tanstack/react-router";
import { ConnectPage } from "@/pages/providers/connect/connect";
import { type ConnectSearch, STEPS } from "@/pages/providers/connect/steps";
import { TYPES } from "@/pages/providers/types";
import { textParam, wordParam } from "@/ui/search-params";

export const Route = createFileRoute("/_app/providers/connect")({
  validateSearch: (search): ConnectSearch => ({
    type: wordParam(search.type, TYPES),
    account: textParam(search.account),
    step: wordParam(search.step, STEPS),
  }),
  component: Connect,
});

function Connect() {
  const search = Route.useSearch();
  const navigate = Route.useNavigate();
  return <ConnectPage search={search} go={(next) => void navigate({ search: next })} />;
}
