import { createFileRoute } from "@tanstack/react-router";
import { DomainsPage, type DomainsSearch } from "@/pages/domains/list";
import { STATES } from "@/pages/domains/state";

export const Route = createFileRoute("/_app/domains/")({
  validateSearch: (search): DomainsSearch => ({
    search: typeof search.search === "string" && search.search ? search.search : undefined,
    state: STATES.find((state) => state === search.state),
  }),
  component: Domains,
});

function Domains() {
  const filter = Route.useSearch();
  const navigate = Route.useNavigate();
  return (
    <DomainsPage
      filter={filter}
      onFilter={(search) => void navigate({ search, replace: true })}
      onOpen={(domain) => void navigate({ to: "/domains/$domain", params: { domain } })}
    />
  );
}
