/** "Where would this mail go?": each rule that is passed over and why, the account, and its fallbacks. Nothing is sent. */

import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { clsx } from "clsx";
import { ArrowDown, Check, Mail, Minus, X } from "lucide-react";
import { type ReactNode, useEffect, useState } from "react";
import type { FallbackResolution, ProviderAccount, RouteResolution } from "waypost";
import { waypost } from "@/api";
import { providerName } from "@/format";
import { circuitState, type Health, useHealths } from "@/pages/providers/health";
import { accountsQuery } from "@/pages/providers/queries";
import { Field, Form, Input, Submit } from "@/ui/form";
import { Card, Notice, SkeletonRows } from "@/ui/page";
import { AccountChip } from "./path";
import { conditionText, passedOverText } from "./words";

/** The mail that is asked about. */
export interface Question {
  from?: string | undefined;
  /** Separated by commas. */
  tags?: string | undefined;
}

export const tagList = (text: string | undefined): string[] =>
  (text ?? "").split(",").map((tag) => tag.trim()).filter(Boolean);

/** What was asked last, for whoever comes back from a rule that they changed. */
let asked: Question = {};
export const lastQuestion = (): Question => asked;

interface Props {
  question: Question;
  ask(question: Question): void;
}

export function Where({ question, ask }: Props) {
  const [from, setFrom] = useState(question.from ?? "");
  const [tags, setTags] = useState(question.tags ?? "");
  // The browser's back button changes the question too.
  useEffect(() => {
    setFrom(question.from ?? "");
    setTags(question.tags ?? "");
  }, [question.from, question.tags]);
  const route = useQuery({
    // Below the key of the rules: a change of a rule makes the answer stale.
    queryKey: ["routing-rules", "where", question.from, question.tags],
    queryFn: ({ signal }) => waypost.routingRules.resolve({ from: addressOf(question.from ?? ""), tags: tagList(question.tags) }, { signal }),
    enabled: question.from !== undefined,
  });
  const submit = () => {
    asked = { from, tags: tags || undefined };
    if (from === question.from && tags === (question.tags ?? "")) void route.refetch();
    else ask(asked);
  };
  return (
    <div className="grid grid-cols-1 items-start gap-5 lg:grid-cols-[20rem_minmax(0,1fr)]">
      <Card title="The mail" description="Nothing is sent.">
        <Form error={route.error} onSubmit={submit} label="Where would this mail go?">
          <Field label="From" path="from" hint="An address of the sender, or only its domain.">
            {(control) => (
              <Input {...control} value={from} onChange={(event) => setFrom(event.target.value)} placeholder="shop@example.com" spellCheck={false} />
            )}
          </Field>
          <Field label="Tags" path="tags" aside="optional" hint="Separated by commas.">
            {(control) => <Input {...control} value={tags} onChange={(event) => setTags(event.target.value)} placeholder="receipts, eu" />}
          </Field>
          <Submit busy={route.isFetching}>Show the way</Submit>
        </Form>
      </Card>
      <div aria-live="polite">
        {route.data ? (
          <Answer route={route.data} from={question.from ?? ""} tags={tagList(question.tags)} />
        ) : route.isFetching ? (
          <Card flush>
            <SkeletonRows rows={4} />
          </Card>
        ) : (
          <Card>
            <p className="text-text-2">
              Enter a sender, and the tags that your program gives the mail. You see which rules are passed over and why, which account sends, and which
              accounts stand in.
            </p>
          </Card>
        )}
      </div>
    </div>
  );
}

interface AnswerProps {
  route: RouteResolution;
  from: string;
  tags: readonly string[];
}

/** Rules look at the domain alone, so any address of it has the same answer. */
const addressOf = (from: string): string => (from.includes("@") ? from : `anyone@${from.trim()}`);

/** The domain of an address, also of `Ada <ada@example.com>`. */
const domainOf = (from: string): string => from.slice(from.lastIndexOf("@") + 1).replace(/[>\s]+$/, "").toLowerCase();

function Answer({ route, from, tags }: AnswerProps) {
  const accounts = useQuery(accountsQuery).data ?? [];
  const healths = useHealths();
  const domain = domainOf(from);
  const nameOf = (id: string) => accounts.find((account) => account.id === id)?.displayName ?? "a removed account";
  return (
    <section aria-label="The way of the mail" className="space-y-4">
      <Conclusion route={route} domain={domain} />
      <Card flush>
        <ol>
          <Stop icon={<Mail />} tone="plain" title={from}>
            {tags.length > 0 ? `Tags: ${tags.join(", ")}` : "No tags"}
          </Stop>
          {route.passedOver.map((passed) => (
            <Stop
              key={passed.rule.id}
              icon={<Minus />}
              tone="skipped"
              title={
                <Link to="/routing/$ruleId" params={{ ruleId: passed.rule.id }} className="hover:underline">
                  {passed.rule.name}
                </Link>
              }
              aside="passed over"
            >
              {passedOverText(passed, domain, tags, nameOf(passed.rule.providerAccountId))}
            </Stop>
          ))}
          <Decision route={route} />
          {route.account && <Sender route={route} account={route.account} health={healths.get(route.account.id)} domain={domain} />}
          {route.fallbacks.map((fallback, at) => (
            <Fallback
              key={fallback.providerAccountId}
              fallback={fallback}
              number={at + 1}
              account={accounts.find((one) => one.id === fallback.providerAccountId)}
              health={healths.get(fallback.providerAccountId)}
              domain={domain}
            />
          ))}
        </ol>
      </Card>
    </section>
  );
}

function Conclusion({ route, domain }: { route: RouteResolution; domain: string }) {
  if (route.refusal === "NO_ACTIVE_PROVIDER") {
    return (
      <Notice kind="error" action={<NoticeLink to="/providers" text="Providers" />}>
        The mail would be refused: no account is active. Connect one, or activate one that is paused.
      </Notice>
    );
  }
  if (route.refusal === "DOMAIN_NOT_VERIFIED") {
    return (
      <Notice kind="error" action={<NoticeLink to={`/domains/${domain}`} text="The domain" />}>
        The mail would be refused: {domain} is not verified on {route.account?.displayName ?? "the account"}. Verify it there, or choose another
        account by a rule.
      </Notice>
    );
  }
  if (route.refusal !== null) return <Notice kind="error">The mail would be refused: {route.refusal}</Notice>;
  const usable = route.fallbacks.filter((fallback) => fallback.passedOver === null).length;
  return (
    <Notice kind="success">
      <strong className="font-medium">{route.account?.displayName}</strong> sends the mail
      {usable === 0 ? ". No account would stand in for it." : usable === 1 ? "; one account can stand in for it." : `; ${usable} accounts can stand in for it.`}
    </Notice>
  );
}

const NoticeLink = ({ to, text }: { to: string; text: string }) => (
  <Link to={to as string} className="font-medium whitespace-nowrap underline underline-offset-2">
    {text}
  </Link>
);

/** The rule that matched, or that none did. */
function Decision({ route }: { route: RouteResolution }) {
  const { rule } = route;
  if (rule) {
    return (
      <Stop
        icon={<Check />}
        tone="good"
        aside="matches"
        title={
          <Link to="/routing/$ruleId" params={{ ruleId: rule.id }} className="hover:underline">
            {rule.name}
          </Link>
        }
      >
        {conditionText(rule)}
      </Stop>
    );
  }
  return (
    <Stop icon={<Check />} tone="plain" title={route.passedOver.length > 0 ? "No rule matches" : "There is no rule"}>
      The oldest active account sends, without a fallback.
    </Stop>
  );
}

interface SenderProps {
  route: RouteResolution;
  account: ProviderAccount;
  health: Health | undefined;
  domain: string;
}

function Sender({ route, account, health, domain }: SenderProps) {
  return (
    <Stop
      icon={route.refusal === null ? <ArrowDown /> : <X />}
      tone={route.refusal === null ? "good" : "bad"}
      title={<AccountChip id={account.id} account={account} />}
      aside={route.refusal === null ? "sends" : "refuses"}
    >
      {senderText(route, account, domain)}
      <CallsNow account={account} health={health} />
    </Stop>
  );
}

function senderText(route: RouteResolution, account: ProviderAccount, domain: string): string {
  if (route.refusal === "DOMAIN_NOT_VERIFIED") return `${domain} is not verified here, so the mail is refused at once.`;
  if (account.sendingPausedReason !== null) {
    return `Now ${providerName(account.providerType)} refuses its mail (${account.sendingPausedReason}): the fallbacks take it, or it waits.`;
  }
  return route.domainVerified ? `${domain} is verified here.` : `${domain} is not known to be verified here, but the mail is taken.`;
}

/** Says if calls to an account are stopped just now, unless the text beside it says why already. */
function CallsNow({ account, health }: { account: ProviderAccount | undefined; health: Health | undefined }) {
  const circuit = health && circuitState(health);
  if (!account?.isActive || account.sendingPausedReason !== null || !circuit || circuit.tone === "green") return null;
  return (
    <span className="mt-0.5 block text-amber">
      {circuit.word} now. {circuit.text}
    </span>
  );
}

interface FallbackProps {
  fallback: FallbackResolution;
  number: number;
  account: ProviderAccount | undefined;
  health: Health | undefined;
  domain: string;
}

function Fallback({ fallback, number, account, health, domain }: FallbackProps) {
  const isUsed = fallback.passedOver === null;
  return (
    <Stop
      icon={isUsed ? <ArrowDown /> : <Minus />}
      tone={isUsed ? "good" : "skipped"}
      title={<AccountChip id={fallback.providerAccountId} account={account} />}
      aside={`fallback ${number}`}
    >
      {fallbackText(fallback, account, domain)}
      <CallsNow account={account} health={health} />
    </Stop>
  );
}

function fallbackText(fallback: FallbackResolution, account: ProviderAccount | undefined, domain: string): string {
  switch (fallback.passedOver) {
    case "PROVIDER_INACTIVE":
      return "Passed over: the account is paused.";
    case "DOMAIN_NOT_VERIFIED":
      return `Passed over: ${domain} is not verified here.`;
    case null:
      if (account && account.sendingPausedReason !== null) return `Could not take it now: the provider refuses its mail (${account.sendingPausedReason}).`;
      return fallback.domainVerified
        ? `Takes the mail if the accounts before it cannot. ${domain} is verified here.`
        : `Takes the mail if the accounts before it cannot. ${domain} is not known to be verified here.`;
    default:
      return `Passed over: ${fallback.passedOver}`;
  }
}

const TONES = {
  plain: "bg-sunken text-text-2",
  good: "bg-green-soft text-green",
  bad: "bg-red-soft text-red",
  skipped: "bg-sunken text-text-3",
};

interface StopProps {
  icon: ReactNode;
  tone: keyof typeof TONES;
  title: ReactNode;
  aside?: string;
  children: ReactNode;
}

/** One stop on the way, joined to the next by a line. */
function Stop({ icon, tone, title, aside, children }: StopProps) {
  return (
    <li className="group relative flex gap-3 px-4 py-3 sm:px-5">
      <span
        aria-hidden
        className="absolute top-10 bottom-[-0.75rem] left-[calc(1rem+0.8125rem)] w-px bg-line group-last:hidden sm:left-[calc(1.25rem+0.8125rem)]"
      />
      <span aria-hidden className={clsx("relative flex size-[1.625rem] shrink-0 items-center justify-center rounded-full [&_svg]:size-3.5", TONES[tone])}>
        {icon}
      </span>
      <div className="min-w-0 flex-1">
        <div className="flex flex-wrap items-center justify-between gap-x-3">
          <span className={clsx("min-w-0 font-medium break-words", tone === "skipped" && "text-text-2")}>{title}</span>
          {aside && <span className="text-xs text-text-3">{aside}</span>}
        </div>
        <p className="mt-0.5 text-[13px] break-words text-text-2">{children}</p>
      </div>
    </li>
  );
}
