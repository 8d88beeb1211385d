import type { WebhookEndpointWithSecret } from "waypost";
import { Button } from "@/ui/button";
import { SecretOnce } from "@/ui/copy";
import { Dialog } from "@/ui/dialog";
import { VerifySamples } from "./verify";

interface SecretProps {
  title: string;
  endpoint: WebhookEndpointWithSecret;
  onClose(): void;
}

/** The signing secret, shown once, with the code that uses it. */
export function SecretDialog({ title, endpoint, onClose }: SecretProps) {
  return (
    <Dialog open modal wide onClose={onClose} title={title} description={<span className="break-all">{endpoint.url}</span>}>
      <div className="space-y-5">
        <SecretOnce what="the signing secret" secret={endpoint.secret} />
        <section>
          <h3 className="mb-1 text-sm font-semibold">Verify each request with it</h3>
          <p className="mb-2 text-[13px] text-text-2">Put it where your server reads it as WAYPOST_WEBHOOK_SECRET.</p>
          <VerifySamples />
        </section>
        <Button kind="primary" onClick={onClose}>
          I have kept the secret
        </Button>
      </div>
    </Dialog>
  );
}
