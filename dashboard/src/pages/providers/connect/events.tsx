import { useQueryClient } from "@tanstack/react-query";
import type { FirstEventWebhook, ProviderAccount } from "waypost";
import { providerName } from "@/format";
import { Button } from "@/ui/button";
import { Card, Notice } from "@/ui/page";
import { EventsState, Register, SecretForm, WebhookUrl } from "../account-events";
import { EVENT_STEPS, Steps } from "../guides";
import { kindOf } from "../kinds";
import { isType } from "../types";
import { firstWebhookKey } from "../queries";

interface Props {
  account: ProviderAccount;
  onNext(): void;
}

/** How the provider reports what became of the mail. */
export function EventsStep({ account, onNext }: Props) {
  const first = useQueryClient().getQueryData<FirstEventWebhook | null>(firstWebhookKey(account.id));
  const kind = kindOf(account.providerType);
  if (account.providerType === "SMTP") return <NoEvents onNext={onNext} />;
  if (first?.registered) return <Registered account={account} onNext={onNext} />;
  const provider = providerName(account.providerType);
  return (
    <div className="grid grid-cols-1 items-start gap-5 lg:grid-cols-2">
      <Card title="Event webhook" description={`${provider} tells Waypost by it whether a mail was delivered, bounced, or reported as spam.`}>
        <div className="space-y-5">
          {first?.reason ? (
            <Notice kind="warning">
              {provider} did not let Waypost set it up: {first.reason}. The account sends, but its mail stays “Sent” until events arrive.
            </Notice>
          ) : (
            <EventsState account={account} />
          )}
          <WebhookUrl account={account} />
          {kind?.registers && <Register account={account} first={first !== undefined} />}
          {kind?.eventSecret && (
            <div className="border-t border-line pt-5">
              <SecretForm account={account} secret={kind.eventSecret} />
            </div>
          )}
        </div>
      </Card>
      <div className="space-y-5">
        <Card title={account.providerType === "SES" ? "In AWS" : `In ${provider}`}>
          {first && kind?.registers && first.steps.length > 0 ? (
            <Steps steps={first.steps} />
          ) : (
            isType(account.providerType) && <Steps steps={EVENT_STEPS[account.providerType]} />
          )}
        </Card>
        <Next onNext={onNext} later={!account.eventsVerified} />
      </div>
    </div>
  );
}

function Next({ onNext, later }: { onNext(): void; later: boolean }) {
  return (
    <div className="flex flex-wrap items-center gap-3">
      <Button kind="primary" onClick={onNext}>
        Continue with domains
      </Button>
      {later && <p className="text-[13px] text-text-3">Events can also be set up later, on the account's page.</p>}
    </div>
  );
}

function Registered({ account, onNext }: Props) {
  const provider = providerName(account.providerType);
  return (
    <Card title="Event webhook">
      <div className="space-y-5">
        <Notice kind="success">
          Done: Waypost has told {provider} where to post events, and stored what verifies them. The first mail proves that they arrive.
        </Notice>
        <WebhookUrl account={account} />
        <Next onNext={onNext} later={false} />
      </div>
    </Card>
  );
}

function NoEvents({ onNext }: Pick<Props, "onNext">) {
  return (
    <Card title="Events">
      <div className="space-y-5">
        <Notice kind="info">
          A mail server reports no events. Waypost knows from its answer whether it took the mail; a bounce after that comes back as mail to the
          sender. Opens and clicks are recorded by Waypost itself.
        </Notice>
        <Next onNext={onNext} later={false} />
      </div>
    </Card>
  );
}
