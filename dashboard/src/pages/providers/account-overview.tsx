import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ProviderAccount, RoutingRule } from "waypost";
import { count, duration, percent, providerName } from "@/format";
import { isNamed } from "@/pages/routing/senders";
import { useMay } from "@/session";
import { Badge } from "@/ui/badge";
import { Copyable } from "@/ui/copy";
import { Facts } from "@/ui/facts";
import { Card, LoadError, Notice, SkeletonRows } from "@/ui/page";
import { Time } from "@/ui/time";
import { AccountMail } from "./account-mail";
import { circuitState, failureText, type Health } from "./health";
import { EventsBadge, limitsText } from "./parts";
import { accountState, domainsQuery, rulesQuery, trafficQuery } from "./queries";
import type { AccountTab } from "./tabs";
import { Trouble } from "./trouble";

interface Props {
  account: ProviderAccount;
  health: Health | undefined;
  onTab(tab: AccountTab): void;
}

export function AccountOverview({ account, health, onTab }: Props) {
  const may = useMay();
  return (
    <div className="space-y-5">
      <Trouble account={account} onTab={onTab} />
      <Unverified account={account} onTab={onTab} />
      {health && <HealthCard health={health} />}
      {may("METRICS_READ") && <Traffic account={account} />}
      <AccountMail accountId={account.id} />
      <div className="grid grid-cols-1 gap-5 lg:grid-cols-2">
        <About account={account} health={health} />
        <Rules account={account} />
      </div>
    </div>
  );
}

/** Without events nobody learns what became of the mail. */
function Unverified({ account, onTab }: Pick<Props, "account" | "onTab">) {
  if (account.eventsVerified || account.providerType === "SMTP") return null;
  return (
    <Notice
      kind="info"
      action={
        <button type="button" className="font-medium underline underline-offset-2" onClick={() => onTab("events")}>
          Set up events
        </button>
      }
    >
      No event of {providerName(account.providerType)} has arrived yet. Until one does, mail stays “Sent”: deliveries, bounces and complaints are
      not known.
    </Notice>
  );
}

function HealthCard({ health }: { health: Health }) {
  const circuit = circuitState(health);
  const { calls } = health;
  const total = calls.accepted + calls.rejected + calls.throttled + calls.unavailable + calls.unknown;
  return (
    <Card title="Health now" description="Calls to the provider in the last 15 minutes. Renewed every 10 seconds.">
      <div className="space-y-4" aria-live="polite">
        <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
          {circuit ? (
            <>
              <Badge dot tone={circuit.tone}>
                {circuit.word}
              </Badge>
              <span className="text-text-2">{circuit.text}</span>
              {health.circuit?.until && (
                <span className="text-text-2">
                  Next call <Time at={health.circuit.until} />.
                </span>
              )}
            </>
          ) : (
            <span className="text-text-2">Whether calls are made is not known now: Redis does not answer.</span>
          )}
        </div>
        {health.failures.length > 0 && (
          <ul className="list-disc pl-5 text-red">
            {health.failures.map((failure) => (
              <li key={failure.cause}>
                {failureText(failure.cause)} since <Time at={failure.since} />
              </li>
            ))}
          </ul>
        )}
        {calls.lastFailure && (
          <p className="text-text-2">
            Last failed call <Time at={calls.lastFailure.at} />: {calls.lastFailure.reason ?? `status ${calls.lastFailure.statusCode}`}
          </p>
        )}
        <Numbers
          numbers={[
            ["Calls", count(total), "that have ended"],
            ["Accepted", total ? percent(calls.accepted / total, 1) : "–", `${count(calls.accepted)} mails taken`],
            ["Rejected", count(calls.rejected), "refused by the provider"],
            ["Throttled", count(calls.throttled), "asked to slow down"],
            ["Failed", count(calls.unavailable + calls.unknown), `${count(calls.unknown)} answers lost`],
            ["Half took", duration(calls.medianDurationMs), `95 % took ${duration(calls.p95DurationMs)}`],
          ]}
        />
      </div>
    </Card>
  );
}

/** Numbers beside each other, each with its name and a note. */
export function Numbers({ numbers }: { numbers: readonly (readonly [name: string, value: string, note?: string])[] }) {
  return (
    <dl className="grid grid-cols-2 gap-x-6 gap-y-4 sm:grid-cols-3 lg:grid-cols-6">
      {numbers.map(([name, value, note]) => (
        <div key={name}>
          <dt className="text-[13px] text-text-3">{name}</dt>
          <dd className="text-lg font-semibold tabular">{value}</dd>
          {note && <dd className="text-xs text-text-3">{note}</dd>}
        </div>
      ))}
    </dl>
  );
}

function Traffic({ account }: { account: ProviderAccount }) {
  const traffic = useQuery(trafficQuery);
  const group = traffic.data?.data.find((one) => one.id === account.id);
  const share = (part: number | undefined) => (group && group.sent > 0 && part !== undefined ? percent(part / group.sent) : "–");
  return (
    <Card
      title="Last 24 hours"
      actions={
        <Link to={"/messages" as string} search={{ providerAccountId: account.id } as never} className="text-[13px] text-accent-text hover:underline">
          Messages of this account
        </Link>
      }
    >
      {traffic.error ? (
        <LoadError error={traffic.error} retry={() => void traffic.refetch()} />
      ) : traffic.isPending ? (
        <SkeletonRows rows={2} />
      ) : (
        <Numbers
          numbers={[
            ["Sent", count(group?.sent ?? 0), "taken by the provider"],
            ["Delivered", count(group?.delivered ?? 0), share(group?.delivered)],
            ["Bounced", count(group?.bounced ?? 0), share(group?.bounced)],
            ["Complaints", count(group?.complained ?? 0), share(group?.complained)],
            ["Until sent", duration(group?.acceptToSent?.p50), `95 %: ${duration(group?.acceptToSent?.p95)}`],
            ["Until delivered", duration(group?.sentToDelivered?.p50), `95 %: ${duration(group?.sentToDelivered?.p95)}`],
          ]}
        />
      )}
    </Card>
  );
}

function About({ account, health }: Pick<Props, "account" | "health">) {
  const state = accountState(account);
  const circuit = health && circuitState(health);
  const domains = useQuery(domainsQuery(account.id)).data;
  const verified = domains?.filter((domain) => domain.state === "verified").length ?? 0;
  return (
    <Card title="Account">
      <Facts
        facts={[
          ["Provider", providerName(account.providerType)],
          account.region ? ["Region", account.region.toUpperCase()] : null,
          ["State", state.tone === "green" && circuit ? circuit.text : state.text],
          account.sendingPausedSince !== null && ["Refused since", <Time key="since" at={account.sendingPausedSince} />],
          ["Events", <EventsBadge key="events" account={account} />],
          ["Domains", domains ? `${count(verified)} of ${count(domains.length)} verified` : "…"],
          ["Limits", limitsText(account)],
          ["Connected", <Time key="created" at={account.createdAt} />],
          ["Changed", <Time key="updated" at={account.updatedAt} />],
          ["ID", <Copyable key="id" text={account.id} label="Copy the id" />],
        ]}
      />
    </Card>
  );
}

function Rules({ account }: { account: ProviderAccount }) {
  const rules = useQuery(rulesQuery).data;
  const own = rules?.filter((rule) => isNamed(rule, account.id)) ?? [];
  return (
    <Card title="Routing" description="Rules that name this account." flush>
      {own.length === 0 ? (
        <p className="p-4 text-text-2 sm:p-5">
          No rule names it. It sends mail that no rule matches if it is the oldest active account, and stands in for accounts that are paused.{" "}
          <Link to="/routing" className="text-accent-text underline underline-offset-2">
            Routing
          </Link>
        </p>
      ) : (
        <ul>
          {own.map((rule) => (
            <li key={rule.id} className="flex items-center justify-between gap-3 border-b border-line px-4 py-2.5 last:border-0 sm:px-5">
              <Link to="/routing/$ruleId" params={{ ruleId: rule.id }} className="min-w-0 truncate font-medium hover:underline">
                {rule.name}
              </Link>
              <span className="text-[13px] whitespace-nowrap text-text-3">{roleOf(rule, account.id)}</span>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

function roleOf(rule: RoutingRule, id: string): string {
  const fallback = rule.fallbackProviderAccountIds.indexOf(id);
  const role = fallback >= 0 ? `fallback ${fallback + 1}` : rule.targets.length > 1 ? "shares the mail" : "sends";
  return rule.isActive ? role : `${role}; rule is off`;
}
