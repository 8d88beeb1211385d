import { toast } from "sonner";
import { errorText } from "@/api";
import { date } from "@/format";
import { roleLabel } from "@/roles";
import { signOut, useSession } from "@/session";
import { Button } from "@/ui/button";
import { Confirm } from "@/ui/dialog";
import { Facts } from "@/ui/facts";
import { Card } from "@/ui/page";
import { Time } from "@/ui/time";

/** This session, and the end of all of them. */
export function SessionsCard() {
  const { createdAt, expiresAt, organizations } = useSession();
  return (
    <Card title="Sessions" description="A session ends after 12 hours without use, and at the latest on the day below.">
      <div className="space-y-5">
        <Facts
          facts={[
            ["Signed in", <Time at={createdAt} />],
            ["Ends at the latest", date(expiresAt)],
            ["Organizations", organizations.map((one) => `${one.name} (${roleLabel(one.role)})`).join(", ")],
          ]}
        />
        <div className="flex flex-wrap gap-2">
          <Button onClick={() => void signOut().catch((error: unknown) => toast.error(errorText(error)))}>Sign out</Button>
          <Confirm
            trigger={(open) => <Button onClick={open}>Sign out everywhere …</Button>}
            title="Sign out everywhere?"
            action="Sign out everywhere"
            run={() => signOut(true)}
          >
            All your sessions end, in this browser and in all others. You sign in again with your password.
          </Confirm>
        </div>
      </div>
    </Card>
  );
}
