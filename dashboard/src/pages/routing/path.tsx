import { Link } from "@tanstack/react-router";
import { clsx } from "clsx";
import { ArrowRight } from "lucide-react";
import { Fragment } from "react";
import type { ProviderAccount } from "waypost";
import { ProviderMark } from "@/pages/providers/parts";
import { accountState } from "@/pages/providers/queries";
import { type Sender, shareText } from "./senders";

interface PathProps {
  /** The account that sends, or those that share the mail. */
  senders: readonly Sender[];
  fallbacks: readonly string[];
  accounts: readonly ProviderAccount[];
}

/** The way of a mail: the account, or those that share the mail, then each fallback in the order in which they are tried. */
export function RoutePath({ senders, fallbacks, accounts }: PathProps) {
  const chip = (id: string, share?: number) => <AccountChip id={id} account={accounts.find((one) => one.id === id)} share={share} />;
  return (
    <ol className="flex flex-wrap items-center gap-x-1.5 gap-y-1.5" aria-label="Account and fallbacks">
      <li className="min-w-0">
        {senders.length === 1 ? (
          chip(senders[0]!.id, senders[0]!.share)
        ) : (
          <ul aria-label="Accounts that share the mail" className="flex flex-wrap gap-1.5 rounded-lg border border-dashed border-line-strong/60 p-1">
            {senders.map(({ id, share }) => (
              <li key={id} className="min-w-0">
                {chip(id, share)}
              </li>
            ))}
          </ul>
        )}
      </li>
      {fallbacks.map((id) => (
        <Fragment key={id}>
          <li aria-hidden className="text-text-3" title="if it cannot">
            <ArrowRight className="size-3.5" />
          </li>
          <li className="min-w-0">{chip(id)}</li>
        </Fragment>
      ))}
    </ol>
  );
}

const DOTS: Record<string, string> = { green: "bg-green", red: "bg-red", gray: "bg-text-3" };

interface ChipProps {
  id: string;
  account: ProviderAccount | undefined;
  /** The part of the mail that it gets, from 0 to 1. */
  share?: number | undefined;
}

/** An account as a small box, with whether it sends. */
export function AccountChip({ id, account, share }: ChipProps) {
  if (!account) return <span className="rounded-md border border-line px-2 py-1 text-[13px] text-text-3">removed account</span>;
  const state = accountState(account);
  return (
    <Link
      to="/providers/$accountId"
      params={{ accountId: id }}
      className={clsx(
        "inline-flex max-w-56 items-center gap-1.5 rounded-md border border-line bg-surface py-0.5 pr-2 pl-1 text-[13px] hover:border-line-strong",
        !account.isActive && "text-text-3",
      )}
    >
      <ProviderMark small type={account.providerType} />
      <span className="truncate">{account.displayName}</span>
      {share !== undefined && <span className="shrink-0 text-text-2 tabular">{shareText(share)}</span>}
      <span className={clsx("size-1.5 shrink-0 rounded-full", DOTS[state.tone] ?? "bg-text-3")} title={state.word}>
        <span className="sr-only">{state.word}</span>
      </span>
    </Link>
  );
}
