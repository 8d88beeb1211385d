import { createFileRoute } from "@tanstack/react-router";
import { WebhooksPage } from "@/pages/webhooks/list";
import { useMay } from "@/session";
import { NotAllowed } from "@/ui/not-allowed";
import { wordParam } from "@/ui/search-params";

export const Route = createFileRoute("/_app/webhooks/")({
  validateSearch: (search): { open?: "add" | undefined } => ({ open: wordParam(search.open, ["add"] as const) }),
  component: Webhooks,
});

function Webhooks() {
  const navigate = Route.useNavigate();
  const may = useMay();
  const { open } = Route.useSearch();
  if (!may("SETTINGS_WRITE")) return <NotAllowed what="webhooks" />;
  return (
    <WebhooksPage
      adding={open === "add"}
      setAdding={(adding) => void navigate({ search: { open: adding ? "add" : undefined }, replace: true })}
    />
  );
}
