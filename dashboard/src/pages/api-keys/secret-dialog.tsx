import type { ApiKeyWithSecret } from "waypost";
import { baseUrl } from "@/api";
import { Button } from "@/ui/button";
import { Code } from "@/ui/code";
import { SecretOnce } from "@/ui/copy";
import { Dialog } from "@/ui/dialog";

/** A call that the key may make, to see that it works. */
function firstCall({ key, permissions }: ApiKeyWithSecret): readonly [what: string, command: string] {
  const auth = `-H "Authorization: Bearer ${key}"`;
  if (permissions.includes("SEND")) {
    return [
      "Send a first message",
      `curl ${baseUrl}/v1/send \\
  ${auth} \\
  -H "Content-Type: application/json" \\
  -d '{"from": "shop@example.com", "to": "ada@example.org", "subject": "Hello", "text": "It works."}'`,
    ];
  }
  const reads: readonly (readonly [string, string])[] = [
    ["METRICS_READ", "messages?limit=1"],
    ["TEMPLATES_READ", "templates?limit=1"],
    ["PROVIDERS_READ", "providers"],
    ["SETTINGS_WRITE", "settings"],
    ["MEMBERS_WRITE", "members"],
  ];
  const read = reads.find(([permission]) => permissions.includes(permission));
  return ["Try it", `curl "${baseUrl}/v1/${read?.[1] ?? ""}" \\\n  ${auth}`];
}

interface SecretProps {
  title: string;
  created: ApiKeyWithSecret;
  onClose(): void;
}

/** The secret, shown once, with a first call. */
export function SecretDialog({ title, created, onClose }: SecretProps) {
  const [what, command] = firstCall(created);
  return (
    <Dialog open modal wide onClose={onClose} title={title} description={created.name}>
      <div className="space-y-5">
        <SecretOnce what="the key" secret={created.key} />
        <section>
          <h3 className="mb-2 text-sm font-semibold">{what}</h3>
          <Code text={command} wrap />
          <p className="mt-2 text-[13px] text-text-2">The SDKs read the key from WAYPOST_API_KEY, and the address {baseUrl} from WAYPOST_URL.</p>
        </section>
        <Button kind="primary" onClick={onClose}>
          I have kept the key
        </Button>
      </div>
    </Dialog>
  );
}
