/** The way of a mail: each rule that is passed over and why, the accounts that send, and those that stand in. */

import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { ArrowDown, Check, Mail as MailIcon, Minus, X } from "lucide-react";
import type { FallbackResolution, ProviderAccount, RouteResolution } from "waypost";
import { bytes, providerName } from "@/format";
import { type Health, useHealths } from "@/pages/providers/health";
import { accountsQuery } from "@/pages/providers/queries";
import { Card, Notice } from "@/ui/page";
import { AccountChip } from "./path";
import { mailOf, type Question } from "./question";
import { CallsNow, Stop } from "./way-stop";
import { Target } from "./way-target";
import { conditionText, type Mail, passedOverText } from "./words";

interface WayProps {
  route: RouteResolution;
  question: Question;
}

export function Way({ route, question }: WayProps) {
  const accounts = useQuery(accountsQuery).data ?? [];
  const healths = useHealths();
  const mail = mailOf(question);
  const { domain } = mail;
  const accountOf = (id: string) => accounts.find((account) => account.id === id);
  const nameOf = (id: string) => accountOf(id)?.displayName ?? "a removed account";
  return (
    <section aria-label="The way of the mail" className="space-y-4">
      <Conclusion route={route} question={question} mail={mail} nameOf={nameOf} />
      <Card flush>
        <ol>
          <Stop icon={<MailIcon />} tone="plain" title={question.from}>
            {mailText(question, mail)}
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
              {passedOverText(passed, mail, nameOf)}
            </Stop>
          ))}
          <Decision route={route} />
          {route.targets.map((target) => (
            <Target
              key={target.providerAccountId}
              target={target}
              account={accountOf(target.providerAccountId)}
              health={healths.get(target.providerAccountId)}
              domain={domain}
              overCap={route.rule?.overCap}
            />
          ))}
          {route.account && route.targets.length === 0 && (
            <Sender route={route} account={route.account} health={healths.get(route.account.id)} domain={domain} />
          )}
          {route.fallbacks.map((fallback, at) => (
            <Fallback
              key={fallback.providerAccountId}
              fallback={fallback}
              number={at + 1}
              account={accountOf(fallback.providerAccountId)}
              health={healths.get(fallback.providerAccountId)}
              domain={domain}
            />
          ))}
        </ol>
      </Card>
    </section>
  );
}

/** What else is known of the mail. */
function mailText({ to, size }: Question, mail: Mail): string {
  return [
    to && `To ${to}`,
    mail.tags.length > 0 ? `Tags: ${mail.tags.join(", ")}` : "No tags",
    mail.messageClass !== "transactional" && `Kind: ${mail.messageClass}`,
    size && typeof mail.sizeBytes === "number" && bytes(mail.sizeBytes),
    mail.test && "A test",
  ]
    .filter(Boolean)
    .join(" · ");
}

interface ConclusionProps extends WayProps {
  mail: Mail;
  nameOf(id: string): string;
}

function Conclusion({ route, question, mail, nameOf }: ConclusionProps) {
  const { domain } = mail;
  if (route.refusal === "NO_ACTIVE_PROVIDER") {
    return (
      <Notice kind="error" action={<NoticeLink to="/providers" text="Providers" />}>
        {route.rule?.region
          ? `The mail would be refused: no active account of ${route.rule.name} is in the region ${route.rule.region.toUpperCase()}.`
          : "The mail would be refused: no account is active. Connect one, or activate one that is paused."}
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
  const standIn = usable === 0 ? "No account would stand in" : usable === 1 ? "One account can stand in" : `${usable} accounts can stand in`;
  const shared = route.targets.filter((target) => target.share > 0);
  if (shared.length > 1 && !isFixed(route, question)) {
    return (
      <Notice kind="success">
        <strong className="font-medium">{names.format(shared.map((target) => nameOf(target.providerAccountId)))}</strong> share such mail. {standIn} for
        them.
      </Notice>
    );
  }
  return (
    <Notice kind="success">
      <strong className="font-medium">{route.account?.displayName}</strong> sends the mail{shared.length > 1 && alsoText(route, question, mail)}
      {usable === 0 ? `. ${standIn} for it.` : `; ${standIn.charAt(0).toLowerCase()}${standIn.slice(1)} for it.`}
    </Notice>
  );
}

const names = new Intl.ListFormat("en");

/** Whether such mail always has the same of several accounts. */
const isFixed = ({ rule }: RouteResolution, { from, to }: Question): boolean =>
  (rule?.sticky === "recipientDomain" && !!to) || (rule?.sticky === "sender" && !!from?.includes("@"));

const alsoText = ({ rule }: RouteResolution, { from }: Question, { recipientDomains }: Mail): string =>
  rule?.sticky === "sender" ? `, and all mail of ${from}` : `, and all mail to ${recipientDomains?.[0]}`;

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
    case "REGION":
      return "Passed over: the account is not in the region of the rule.";
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
