import type { ProviderAccount } from "waypost";
import { providerName } from "@/format";
import { useMay } from "@/session";
import { Button } from "@/ui/button";
import { Notice } from "@/ui/page";
import type { AccountTab } from "./tabs";

/** Says why an account sends nothing, and what to do about it. */
export function Trouble({ account, onTab }: { account: ProviderAccount; onTab(tab: AccountTab): void }) {
  const may = useMay();
  if (!account.isActive) return <Notice kind="warning">This account is paused: it sends nothing until you activate it.</Notice>;
  if (account.sendingPausedReason === null) return null;
  return (
    <Notice
      kind="error"
      action={
        may("PROVIDERS_WRITE") && (
          <Button small onClick={() => onTab("settings")}>
            Replace credentials
          </Button>
        )
      }
    >
      <strong className="font-medium">{providerName(account.providerType)} refuses all mail of this account:</strong> {account.sendingPausedReason}
      <span className="mt-1 block">
        Mail waits, or goes through a fallback. Waypost tries again by itself. If you have mended the cause at the provider, check the credentials:
        then the waiting mail is due at once.
      </span>
    </Notice>
  );
}
