import { createFileRoute } from "@tanstack/react-router";
import { UserPlus } from "lucide-react";
import { Abilities } from "@/pages/people/abilities";
import { Invitations } from "@/pages/people/invitations";
import { Invite } from "@/pages/people/invite";
import { Members } from "@/pages/people/members";
import { useMay } from "@/session";
import { Button } from "@/ui/button";
import { NotAllowed } from "@/ui/not-allowed";
import { Page } from "@/ui/page";

export const Route = createFileRoute("/_app/people")({
  validateSearch: (search: Record<string, unknown>): { invite?: true } => (search.invite === true ? { invite: true } : {}),
  component: People,
});

function People() {
  const may = useMay();
  const navigate = Route.useNavigate();
  const { invite } = Route.useSearch();
  const show = (invite?: true) => void navigate({ search: invite ? { invite } : {}, replace: true });
  if (!may("MEMBERS_WRITE")) {
    return (
      <Page title="People">
        <NotAllowed what="the people" />
      </Page>
    );
  }
  return (
    <Page
      title="People"
      description="Who may sign in to this organization, and what they may do."
      actions={
        <Button kind="primary" onClick={() => show(true)}>
          <UserPlus aria-hidden />
          Invite
        </Button>
      }
    >
      <div className="space-y-6">
        <Members />
        <Invitations />
        <Abilities />
      </div>
      {invite && <Invite onClose={() => show()} />}
    </Page>
  );
}
