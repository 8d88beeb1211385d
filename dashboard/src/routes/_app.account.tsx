import { createFileRoute } from "@tanstack/react-router";
import { PasswordCard, ProfileCard } from "@/pages/account/profile";
import { SecondFactorCard } from "@/pages/account/second-factor";
import { SessionsCard } from "@/pages/account/sessions";
import { Page } from "@/ui/page";

export const Route = createFileRoute("/_app/account")({ component: Account });

function Account() {
  return (
    <Page title="Your account" description="These settings are yours, in all your organizations." narrow>
      <div className="space-y-6">
        <ProfileCard />
        <PasswordCard />
        <SecondFactorCard />
        <SessionsCard />
      </div>
    </Page>
  );
}
