import { Link } from "@tanstack/react-router";
import { clsx } from "clsx";
import { ArrowRight } from "lucide-react";
import { Fragment } from "react";
import type { ProviderAccount } from "waypost";
import { ProviderMark } from "@/pages/providers/parts";
import { accountState } from "@/pages/providers/queries";

interface PathProps {
  /** The account that sends, then its fallbacks. */
  ids: readonly string[];
  accounts: readonly ProviderAccount[];
}

/** The way of a mail: the account, then each fallback, in the order in which they are tried. */
export function RoutePath({ ids, accounts }: PathProps) {
  return (
    <ol className="flex flex-wrap items-center gap-x-1.5 gap-y-1.5" aria-label="Account and fallbacks">
      {ids.map((id, at) => (
        <Fragment key={id}>
          {at > 0 && (
            <li aria-hidden className="text-text-3" title="if it cannot">
              <ArrowRight className="size-3.5" />
            </li>
          )}
          <li className="min-w-0">
            <AccountChip id={id} account={accounts.find((one) => one.id === id)} />
          </li>
        </Fragment>
      ))}
    </ol>
  );
}

const DOTS: Record<string, string> = { green: "bg-green", red: "bg-red", gray: "bg-text-3" };

/** An account as a small box, with whether it sends. */
export function AccountChip({ id, account }: { id: string; account: ProviderAccount | undefined }) {
  if (!account) return <span className="rounded-md border border-line px-2 py-1 text-[13px] text-text-3">removed account</span>;
  const state = accountState(account);
  return (
    <Link
      to="/providers/$accountId"
      params={{ accountId: id }}
      className={clsx(
        "inline-flex max-w-52 items-center gap-1.5 rounded-md border border-line bg-surface py-0.5 pr-2 pl-1 text-[13px] hover:border-line-strong",
        !account.isActive && "text-text-3",
      )}
    >
      <ProviderMark small type={account.providerType} />
      <span className="truncate">{account.displayName}</span>
      <span className={clsx("size-1.5 shrink-0 rounded-full", DOTS[state.tone] ?? "bg-text-3")} title={state.word}>
        <span className="sr-only">{state.word}</span>
      </span>
    </Link>
  );
}
