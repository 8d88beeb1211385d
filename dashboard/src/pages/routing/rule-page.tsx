import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { Trash2 } from "lucide-react";
import { type ReactNode, useState } from "react";
import type { ProviderAccount, RoutingRule } from "waypost";
import { accountsQuery, rulesQuery } from "@/pages/providers/queries";
import { useMay } from "@/session";
import { Badge } from "@/ui/badge";
import { Button, buttonClass } from "@/ui/button";
import { NotAllowed } from "@/ui/not-allowed";
import { Card, Empty, LoadError, NotFound, Page, SkeletonRows } from "@/ui/page";
import { Progress } from "./progress";
import { RemoveRule } from "./remove";
import { RuleForm } from "./rule-form";

const BACK = { to: "/routing", label: "Routing" };

/** What both pages need: the accounts to choose from, and the other rules to be placed among. */
function Loaded({ title, children }: { title: string; children(rules: readonly RoutingRule[], accounts: readonly ProviderAccount[]): ReactNode }) {
  const may = useMay();
  const rules = useQuery(rulesQuery);
  const accounts = useQuery(accountsQuery);
  if (rules.data && accounts.data) return children(rules.data, accounts.data);
  const failed = [rules, accounts].find((query) => query.error);
  return (
    <Page title={title} back={BACK} narrow>
      <Card flush>
        {!may("PROVIDERS_READ") ? (
          <NotAllowed what="routing rules" />
        ) : failed ? (
          <LoadError error={failed.error} retry={() => void failed.refetch()} />
        ) : (
          <SkeletonRows />
        )}
      </Card>
    </Page>
  );
}

export function NewRulePage() {
  const navigate = useNavigate();
  return (
    <Loaded title="New rule">
      {(rules, accounts) => (
        <Page title="New rule" back={BACK} description="Which mail it is for, and which account sends it." narrow>
          {accounts.length > 0 ? (
            <RuleForm rules={rules} accounts={accounts} onSaved={() => void navigate({ to: "/routing" })} />
          ) : (
            <Card flush>
              <Empty
                title="No provider account yet"
                action={
                  <Link to="/providers/connect" className={buttonClass("primary")}>
                    Connect an account
                  </Link>
                }
              >
                A rule chooses between accounts. Connect one first.
              </Empty>
            </Card>
          )}
        </Page>
      )}
    </Loaded>
  );
}

export function RulePage({ id }: { id: string }) {
  const may = useMay();
  const navigate = useNavigate();
  const [removing, setRemoving] = useState(false);
  const [left, leave] = useState(false);
  const toList = () => navigate({ to: "/routing" });
  return (
    <Loaded title="Rule">
      {(rules, accounts) => {
        const rule = rules.find((one) => one.id === id);
        if (!rule) return left ? null : <NotFound />;
        return (
          <Page
            title={rule.name}
            back={BACK}
            narrow
            heading={
              <span className="flex flex-wrap items-center gap-3">
                <span className="min-w-0 break-words">{rule.name}</span>
                {rule.isActive ? <Badge tone="green">On</Badge> : <Badge>Off</Badge>}
              </span>
            }
            actions={
              may("PROVIDERS_WRITE") && (
                <Button onClick={() => setRemoving(true)}>
                  <Trash2 aria-hidden />
                  Remove
                </Button>
              )
            }
          >
            {rule.targets.some((target) => target.dailyCap !== null || target.hourlyCap !== null || target.ramp) && (
              <Progress rule={rule} accounts={accounts} />
            )}
            <RuleForm key={rule.updatedAt} rule={rule} rules={rules} accounts={accounts} onSaved={() => void toList()} />
            <RemoveRule
              rule={rule}
              open={removing}
              onClose={() => setRemoving(false)}
              onRemoved={() => {
                leave(true);
                return toList();
              }}
            />
          </Page>
        );
      }}
    </Loaded>
  );
}
