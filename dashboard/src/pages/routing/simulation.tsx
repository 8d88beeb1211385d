import { useMutation } from "@tanstack/react-query";
import { FlaskConical } from "lucide-react";
import { type CreateRoutingRuleRequest, type ProviderAccount, type RoutingRule, type RoutingSimulation, WaypostError } from "waypost";
import { errorText, waypost } from "@/api";
import { count, plural } from "@/format";
import { Button } from "@/ui/button";
import { Card, Notice } from "@/ui/page";
import { createRequest, type Draft, draftOf } from "./draft";
import { AccountChip } from "./path";

interface TryProps {
  draft: Draft;
  /** The rule that the draft takes the place of; none for a new one. */
  rule: RoutingRule | undefined;
  rules: readonly RoutingRule[];
  accounts: readonly ProviderAccount[];
}

/**
 * The rules as they are, with the draft in the place of its rule. A new one comes last: of equal priorities the first is
 * checked first. Rules that are off do nothing, and may name accounts that are gone.
 */
function rulesWith({ draft, rule, rules, accounts }: TryProps): CreateRoutingRuleRequest[] {
  const own = createRequest(draft);
  const request = (one: RoutingRule) => (one.id === rule?.id ? own : createRequest(draftOf(one, rules, accounts)));
  const others = rules.filter((one) => one.isActive || one.id === rule?.id).map(request);
  return rule ? others : [...others, own];
}

/** Tries the rules with this draft on the mail of the last day. Nothing is sent. */
export function Try(props: TryProps) {
  const trying = useMutation({ mutationFn: (_: Draft) => waypost.routingRules.simulate({ rules: rulesWith(props), period: "day" }) });
  // What was found of another draft says nothing of this one.
  const isOfThis = trying.variables === props.draft;
  return (
    <Card
      title="Before it is saved"
      description="What the accounts would have sent of the last day's mail with this rule. Nothing is sent."
      actions={
        <Button onClick={() => trying.mutate(props.draft)} busy={trying.isPending}>
          <FlaskConical aria-hidden />
          Try on the last day's mail
        </Button>
      }
    >
      {isOfThis && trying.error ? (
        <Notice kind="error">{triedText(trying.error)}</Notice>
      ) : (
        isOfThis && trying.data && <Result result={trying.data} name={props.draft.name.trim()} accounts={props.accounts} />
      )}
    </Card>
  );
}

/** What is wrong, without the place of the rule in the request. */
function triedText(error: unknown): string {
  if (!(error instanceof WaypostError) || error.issues.length === 0) return errorText(error);
  return error.issues.map(({ path, message }) => `${path?.replace(/^rules\.\d+\./, "") ?? ""} ${message}`.trim()).join("; ");
}

function Result({ result, name, accounts }: { result: RoutingSimulation; name: string; accounts: readonly ProviderAccount[] }) {
  if (result.messages === 0) return <p className="text-text-2">There was no mail in the last day.</p>;
  const own = result.rules.find((rule) => rule.name === name);
  const over = own?.targets.reduce((sum, target) => sum + target.overDailyCap + target.overHourlyCap, 0) ?? 0;
  const waited = own?.targets.reduce((sum, target) => sum + target.waited, 0) ?? 0;
  const { noActiveProvider: noAccount, domainNotVerified: unverified } = result.refused;
  const accountOf = (id: string) => accounts.find((account) => account.id === id);
  return (
    <div className="space-y-4" aria-live="polite">
      <p className="text-text-2">
        {own ? `This rule would have taken ${plural(own.messages, "message")} of ${count(result.messages)}` : `Of ${plural(result.messages, "message")}, none for this rule`}
        {result.sampledOneIn > 1 && `, by a sample of one message in ${count(result.sampledOneIn)}`}.
        {over > 0 && ` A cap would have been reached for ${plural(over, "recipient")}${waited > 0 ? `, and ${count(waited)} would have waited` : ""}.`}
      </p>
      {noAccount > 0 && <Notice kind="warning">{plural(noAccount, "message")} would have been refused: no account could have taken them.</Notice>}
      {unverified > 0 && (
        <Notice kind="warning">{plural(unverified, "message")} would have been refused: the sender's domain is not verified on the account.</Notice>
      )}
      {result.unsent > 0 && <Notice kind="warning">{plural(result.unsent, "recipient")} would have waited for a cap until Waypost gives up.</Notice>}
      <table className="w-full text-[13px]">
        <caption className="sr-only">Recipients by account, now and with this rule</caption>
        <thead>
          <tr className="text-left text-text-3">
            <th scope="col" className="pb-1.5 font-normal">
              Account
            </th>
            <th scope="col" className="pb-1.5 text-right font-normal">
              Was
            </th>
            <th scope="col" className="pb-1.5 text-right font-normal">
              Would be
            </th>
          </tr>
        </thead>
        <tbody>
          {result.accounts.map((one) => (
            <tr key={one.providerAccountId} className="border-t border-line">
              <td className="max-w-0 py-1.5 pr-3">
                <AccountChip id={one.providerAccountId} account={accountOf(one.providerAccountId)} />
              </td>
              <td className="w-24 py-1.5 text-right tabular">{count(one.actualRecipients)}</td>
              <td className="w-24 py-1.5 text-right font-medium tabular">{count(one.recipients)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
