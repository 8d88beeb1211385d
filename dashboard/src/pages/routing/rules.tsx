import { useMutation, useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { clsx } from "clsx";
import { ArrowDown, ArrowUp, GripVertical, Pencil, Plus, Power, Signpost, Trash2 } from "lucide-react";
import { useRef, useState } from "react";
import { toast } from "sonner";
import type { ProviderAccount, RoutingRule } from "waypost";
import { errorText, queries, waypost } from "@/api";
import { accountsQuery, rulesQuery } from "@/pages/providers/queries";
import { useMay } from "@/session";
import { Badge } from "@/ui/badge";
import { buttonClass } from "@/ui/button";
import { Menu } from "@/ui/menu";
import { Card, Empty, LoadError, SkeletonRows } from "@/ui/page";
import { AccountChip, RoutePath } from "./path";
import { RemoveRule } from "./remove";
import { senderIds, sendersOf } from "./senders";
import { useDrag } from "./use-drag";
import { useOrder } from "./use-order";
import { capsText, conditionText, ON_UNKNOWN, shadowedBy, STICKY } from "./words";

/** The rules in the order in which they are checked, and what happens to mail that none matches. */
export function Rules() {
  const may = useMay();
  const rules = useQuery(rulesQuery);
  const accounts = useQuery(accountsQuery);
  const error = rules.error ?? accounts.error;
  if (error) {
    return (
      <Card flush>
        <LoadError
          error={error}
          retry={() => {
            void rules.refetch();
            void accounts.refetch();
          }}
        />
      </Card>
    );
  }
  if (!rules.data || !accounts.data) {
    return (
      <Card flush>
        <SkeletonRows />
      </Card>
    );
  }
  return (
    <Card flush>
      {rules.data.length === 0 ? (
        <Empty
          icon={<Signpost />}
          title="No rule yet"
          action={
            may("PROVIDERS_WRITE") &&
            accounts.data.length > 0 && (
              <Link to="/routing/new" className={buttonClass("primary")}>
                <Plus aria-hidden />
                Add a rule
              </Link>
            )
          }
        >
          A rule chooses the account by the sender, the tags, the recipients and more, and names accounts that stand in. Until there is one, the oldest active
          account sends all mail, without a fallback.
        </Empty>
      ) : (
        <RuleList rules={rules.data} accounts={accounts.data} />
      )}
      <Otherwise accounts={accounts.data} hasRules={rules.data.length > 0} />
    </Card>
  );
}

function RuleList({ rules, accounts }: { rules: readonly RoutingRule[]; accounts: readonly ProviderAccount[] }) {
  const list = useRef<HTMLOListElement>(null);
  const { move, said } = useOrder(rules);
  const { drag, handle } = useDrag(list, move);
  const isActive = (id: string) => accounts.some((account) => account.id === id && account.isActive);
  return (
    <>
      <p className="sr-only" aria-live="polite">
        {said}
      </p>
      <ol ref={list} aria-label="Rules, in the order in which they are checked" className={clsx(drag && "select-none")}>
        {rules.map((rule, at) => (
          <li
            key={rule.id}
            className={clsx(
              "relative border-b border-line first:rounded-t-lg",
              drag?.from === at && "opacity-40",
              drag && drag.from !== drag.to && drag.to === at && MARK[drag.to < drag.from ? "above" : "below"],
            )}
          >
            <Row
              rule={rule}
              at={at}
              count={rules.length}
              accounts={accounts}
              shadow={shadowedBy(rules, at, isActive)}
              move={move}
              handle={handle(at)}
            />
          </li>
        ))}
      </ol>
    </>
  );
}

/** A line where the dragged rule would go. */
const MARK = {
  above: "before:absolute before:inset-x-0 before:-top-px before:z-10 before:h-0.5 before:bg-accent",
  below: "after:absolute after:inset-x-0 after:-bottom-px after:z-10 after:h-0.5 after:bg-accent",
};

interface RowProps {
  rule: RoutingRule;
  at: number;
  count: number;
  accounts: readonly ProviderAccount[];
  shadow: RoutingRule | undefined;
  move(from: number, to: number): void;
  handle: ReturnType<ReturnType<typeof useDrag>["handle"]>;
}

function Row({ rule, at, count, accounts, shadow, move, handle }: RowProps) {
  const may = useMay();
  const canWrite = may("PROVIDERS_WRITE");
  const isActive = (id: string) => accounts.some((account) => account.id === id && account.isActive);
  return (
    <div className="grid grid-cols-[auto_minmax(0,1fr)_auto] items-start gap-x-3 gap-y-2 py-3 pr-2 pl-2 sm:pr-3 lg:grid-cols-[auto_minmax(0,5fr)_minmax(0,6fr)_auto] lg:items-center">
      <div className="flex items-center">
        {canWrite && count > 1 && (
          <button
            {...handle}
            type="button"
            aria-label={`Move ${rule.name}, ${at + 1} of ${count}: drag, or press the arrow keys`}
            title="Drag, or press the arrow keys"
            className="flex h-8 w-6 cursor-grab touch-none items-center justify-center rounded text-text-3 hover:bg-hover hover:text-text active:cursor-grabbing"
            onKeyDown={(event) => {
              const to = { ArrowUp: at - 1, ArrowDown: at + 1, Home: 0, End: count - 1 }[event.key];
              if (to === undefined) return;
              event.preventDefault();
              move(at, to);
            }}
          >
            <GripVertical className="size-4" aria-hidden />
          </button>
        )}
        <span className="w-7 text-center text-[13px] text-text-3 tabular">{at + 1}</span>
      </div>
      <div className={clsx("min-w-0", !rule.isActive && "text-text-3")}>
        <div className="flex flex-wrap items-center gap-x-2">
          <Link to="/routing/$ruleId" params={{ ruleId: rule.id }} className="min-w-0 font-medium break-words hover:underline">
            {rule.name}
          </Link>
          {!rule.isActive && <Badge>Off</Badge>}
        </div>
        <p className={clsx("text-[13px] break-words", rule.isActive ? "text-text-2" : "text-text-3")}>{conditionText(rule)}</p>
        <Remarks rule={rule} accounts={accounts} shadow={shadow} />
      </div>
      <div className="max-lg:order-last max-lg:col-span-2 max-lg:col-start-2">
        <RoutePath senders={sendersOf(rule, isActive)} fallbacks={rule.fallbackProviderAccountIds} accounts={accounts} />
      </div>
      {canWrite ? <RowMenu rule={rule} at={at} count={count} move={move} /> : <span />}
    </div>
  );
}

function Remarks({ rule, accounts, shadow }: Pick<RowProps, "rule" | "accounts" | "shadow">) {
  const lost = rule.onUnknown !== "wait" && ON_UNKNOWN.find(([value]) => value === rule.onUnknown);
  const sticky = rule.targets.length > 1 && rule.sticky !== "none" && STICKY.find(([value]) => value === rule.sticky);
  const paused = accounts.filter((account) => !account.isActive && senderIds(rule).includes(account.id)).map((account) => account.displayName);
  return (
    <>
      {sticky && <p className="text-[13px] text-text-3">{sticky[1]}</p>}
      <Caps rule={rule} accounts={accounts} />
      {lost && <p className="text-[13px] text-text-3">If an answer is lost: {lost[1].toLowerCase()}</p>}
      {rule.isActive && paused.length > 0 && <p className="text-[13px] text-amber">{pausedText(rule, paused)}</p>}
      {rule.isActive && shadow && <p className="text-[13px] text-amber">Never reached: “{shadow.name}” above takes all mail.</p>}
    </>
  );
}

function pausedText(rule: RoutingRule, paused: readonly string[]): string {
  const names = new Intl.ListFormat("en").format(paused);
  if (paused.length < senderIds(rule).length) return `${names} ${paused.length === 1 ? "is" : "are"} paused: the other accounts send its mail.`;
  return `Passed over, since ${names} ${paused.length === 1 ? "is" : "are"} paused.`;
}

/** How much accounts take at most, and what follows then. */
function Caps({ rule, accounts }: Pick<RowProps, "rule" | "accounts">) {
  const caps = rule.targets.flatMap((target) => {
    const name = accounts.find((account) => account.id === target.providerAccountId)?.displayName ?? "a removed account";
    const text = capsText(target);
    return text ? [`${name} ${text}`] : [];
  });
  if (caps.length === 0) return null;
  return (
    <p className="text-[13px] break-words text-text-3">
      At most: {caps.join("; ")}. {rule.overCap === "wait" ? "Over a cap, mail waits." : "Over a cap, the next account sends."}
    </p>
  );
}

function RowMenu({ rule, at, count, move }: Pick<RowProps, "rule" | "at" | "count" | "move">) {
  const navigate = useNavigate();
  const [removing, setRemoving] = useState(false);
  const toggle = useMutation({
    mutationFn: () => waypost.routingRules.update(rule.id, { isActive: !rule.isActive }),
    onSuccess: async ({ isActive }) => {
      await queries.invalidateQueries({ queryKey: ["routing-rules"] });
      toast.success(`${rule.name} is ${isActive ? "on" : "off"}`);
    },
    onError: (error) => toast.error(errorText(error)),
  });
  return (
    <>
      <Menu
        label={`Actions of ${rule.name}`}
        items={[
          { label: "Edit", icon: <Pencil aria-hidden />, onSelect: () => void navigate({ to: "/routing/$ruleId", params: { ruleId: rule.id } }) },
          { label: "Move up", icon: <ArrowUp aria-hidden />, onSelect: () => move(at, at - 1), disabled: at === 0 },
          { label: "Move down", icon: <ArrowDown aria-hidden />, onSelect: () => move(at, at + 1), disabled: at === count - 1 },
          { label: rule.isActive ? "Switch off" : "Switch on", icon: <Power aria-hidden />, onSelect: () => toggle.mutate() },
          { label: "Remove", icon: <Trash2 aria-hidden />, onSelect: () => setRemoving(true), danger: true },
        ]}
      />
      <RemoveRule rule={rule} open={removing} onClose={() => setRemoving(false)} />
    </>
  );
}

/** What becomes of mail that no rule matches. */
function Otherwise({ accounts, hasRules }: { accounts: readonly ProviderAccount[]; hasRules: boolean }) {
  // The API lists the oldest account first.
  const account = accounts.find((one) => one.isActive);
  if (!hasRules && !account) return null;
  return (
    <div className={clsx("flex flex-wrap items-center gap-x-4 gap-y-2 rounded-b-lg bg-sunken px-4 py-3 text-[13px] sm:px-5", !hasRules && "border-t border-line")}>
      <p className="min-w-0 flex-1 basis-64 text-text-2">
        {account ? (
          <>
            <span className="font-medium text-text">{hasRules ? "Mail that no rule matches" : "All mail"}</span> is sent by the oldest active account,
            without a fallback.
          </>
        ) : (
          <>
            <span className="font-medium text-text">Mail that no rule matches</span> is refused: no account is active.
          </>
        )}
      </p>
      {account && <AccountChip id={account.id} account={account} />}
    </div>
  );
}
