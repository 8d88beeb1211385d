import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ProviderAccount } from "waypost";
import { duration, percent, providerName } from "@/format";
import { circuitState, failureText, type Health, useHealths } from "@/pages/providers/health";
import { accountState, accountsQuery, type AccountState } from "@/pages/providers/queries";
import { Badge } from "@/ui/badge";
import { Card, LoadError, SkeletonRows } from "@/ui/page";
import { Time } from "@/ui/time";

/** The provider accounts, and whether each can send now. */
export function Accounts() {
  const { data, error, refetch } = useQuery({ ...accountsQuery, refetchInterval: 15_000 });
  const healths = useHealths();
  return (
    <Card
      title="Provider accounts now"
      actions={
        <Link to="/providers" className="text-[13px] font-medium text-accent-text hover:underline">
          All accounts
        </Link>
      }
      flush
    >
      {!data && error ? (
        <LoadError error={error} retry={() => void refetch()} />
      ) : !data ? (
        <SkeletonRows rows={3} />
      ) : data.length === 0 ? (
        <p className="px-5 py-8 text-center text-text-2">No account is connected yet.</p>
      ) : (
        <ul className="divide-y divide-line">
          {data.map((account) => (
            <Account key={account.id} account={account} health={healths.get(account.id)} />
          ))}
        </ul>
      )}
    </Card>
  );
}

function Account({ account, health }: { account: ProviderAccount; health: Health | undefined }) {
  const state = stateNow(account, health);
  return (
    <li className="flex items-start justify-between gap-4 px-4 py-3 sm:px-5">
      <div className="min-w-0">
        <Link to="/providers/$accountId" params={{ accountId: account.id }} className="font-medium hover:underline">
          {account.displayName}
        </Link>
        <span className="ml-2 text-[13px] text-text-3">{providerName(account.providerType)}</span>
        <div className="text-[13px] text-text-2">
          <Details account={account} health={health} state={state} />
        </div>
      </div>
      <Badge tone={state.tone} dot>
        {state.word}
      </Badge>
    </li>
  );
}

/** What is stored of the account comes first; then whether calls to it fail just now. */
function stateNow(account: ProviderAccount, health: Health | undefined): AccountState {
  const stored = accountState(account);
  const circuit = health && circuitState(health);
  return stored.tone === "green" && circuit && circuit.tone !== "green" ? circuit : stored;
}

function Details({ account, health, state }: { account: ProviderAccount; health: Health | undefined; state: AccountState }) {
  if (account.sendingPausedReason !== null) {
    return (
      <>
        <span className="break-words text-red">{account.sendingPausedReason}</span> · since <Time at={account.sendingPausedSince} />
      </>
    );
  }
  const failure = health?.failures[0];
  if (failure) {
    return (
      <>
        {failureText(failure.cause)} · since <Time at={failure.since} />
      </>
    );
  }
  if (state.tone !== "green") return state.text;
  if (!account.eventsVerified && account.providerType !== "SMTP") return "No event has arrived yet, so mail stays at “sent”.";
  return health ? <Calls calls={health.calls} /> : "It sends, and its events arrive.";
}

function Calls({ calls }: { calls: Health["calls"] }) {
  const ended = calls.accepted + calls.rejected + calls.throttled + calls.unavailable + calls.unknown;
  if (ended === 0) return "No calls in the last 15 minutes.";
  return (
    <span className="tabular">
      {percent(calls.accepted / ended, 1)} of calls accepted · half within {duration(calls.medianDurationMs)}, 95 % within {duration(calls.p95DurationMs)}
    </span>
  );
}
