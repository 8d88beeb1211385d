/** The way from an account at a provider to a first mail. Where a person is stands in the URL, so a reload keeps it. */

import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { clsx } from "clsx";
import { Check, ChevronRight } from "lucide-react";
import type { ReactNode } from "react";
import { NotFoundError, type ProviderAccount } from "waypost";
import { providerName } from "@/format";
import { useMay } from "@/session";
import { NotAllowed } from "@/ui/not-allowed";
import { Card, LoadError, NotFound, Page, SkeletonRows } from "@/ui/page";
import { KINDS } from "../kinds";
import { ProviderMark } from "../parts";
import { accountQuery } from "../queries";
import { TYPES } from "../types";
import { CredentialsStep } from "./credentials";
import { DomainsStep } from "./domains";
import { EventsStep } from "./events";
import { FirstMailStep } from "./first-mail";
import { type ConnectSearch, type Step, STEPS } from "./steps";

interface Props {
  search: ConnectSearch;
  go(next: ConnectSearch): void;
}

export function ConnectPage({ search, go }: Props) {
  const may = useMay();
  const at = search.account ? 2 + STEPS.indexOf(search.step ?? "events") : search.type ? 1 : 0;
  return (
    <Page
      title="Connect an account"
      back={{ to: "/providers", label: "Providers" }}
      description={at === 0 ? "An account at an email provider, or a mail server, that delivers your mail." : undefined}
    >
      {may("PROVIDERS_WRITE") ? (
        <>
          <Progress at={at} search={search} />
          {search.account ? (
            <WithAccount id={search.account} step={search.step ?? "events"} go={go} />
          ) : search.type ? (
            <CredentialsStep
              key={search.type}
              type={search.type}
              onConnected={(account) => go({ account: account.id, step: "events" })}
              onBack={() => go({})}
            />
          ) : (
            <Choice />
          )}
        </>
      ) : (
        <NotAllowed what="how to connect an account" />
      )}
    </Page>
  );
}

const NAMES = ["Provider", "Credentials", "Events", "Domains", "First mail"] as const;

function Progress({ at, search }: { at: number; search: ConnectSearch }) {
  return (
    <nav aria-label="Steps" className="mb-6 overflow-x-auto">
      <ol className="flex items-center gap-2 text-[13px] sm:gap-3">
        {NAMES.map((name, index) => (
          <li key={name} className="flex items-center gap-2 sm:gap-3" aria-current={index === at ? "step" : undefined}>
            {index > 0 && <ChevronRight className="size-3.5 shrink-0 text-text-3" aria-hidden />}
            <StepName name={name} index={index} at={at} search={search} />
          </li>
        ))}
      </ol>
    </nav>
  );
}

function StepName({ name, index, at, search }: { name: string; index: number; at: number; search: ConnectSearch }) {
  const step = STEPS[index - 2];
  const face = (
    <span className={clsx("flex items-center gap-1.5 whitespace-nowrap", index === at ? "font-medium text-text" : "text-text-3")}>
      <span
        aria-hidden
        className={clsx(
          "flex size-5 items-center justify-center rounded-full text-xs font-medium tabular",
          index < at ? "bg-green-soft text-green" : index === at ? "bg-accent text-on-accent" : "bg-sunken text-text-3",
        )}
      >
        {index < at ? <Check className="size-3" /> : index + 1}
      </span>
      <span className={clsx(index !== at && "max-sm:sr-only")}>{name}</span>
      {index < at && <span className="sr-only"> (done)</span>}
    </span>
  );
  // With an account, the steps about it can be visited in any order.
  if (search.account && step && index !== at) {
    return (
      <Link to="/providers/connect" search={{ account: search.account, step }} className="hover:underline">
        {face}
      </Link>
    );
  }
  return face;
}

function Choice() {
  return (
    <ul className="grid gap-3 sm:grid-cols-2 lg:grid-cols-3">
      {TYPES.map((type) => (
        <li key={type}>
          <Link
            to="/providers/connect"
            search={{ type }}
            className="flex h-full gap-3.5 rounded-lg border border-line bg-surface p-4 shadow-(--shadow) transition-colors hover:border-line-strong hover:bg-hover"
          >
            <ProviderMark type={type} />
            <span>
              <span className="block font-medium">{providerName(type)}</span>
              <span className="mt-0.5 block text-[13px] text-text-2">{KINDS[type].about}</span>
            </span>
          </Link>
        </li>
      ))}
    </ul>
  );
}

function WithAccount({ id, step, go }: { id: string; step: Step; go: Props["go"] }) {
  const account = useQuery(accountQuery(id));
  if (account.error instanceof NotFoundError) return <NotFound />;
  if (account.data) return <AccountStep account={account.data} step={step} go={go} />;
  return (
    <Card flush>
      {account.error ? <LoadError error={account.error} retry={() => void account.refetch()} /> : <SkeletonRows />}
    </Card>
  );
}

function AccountStep({ account, step, go }: { account: ProviderAccount; step: Step; go: Props["go"] }): ReactNode {
  const to = (next: Step) => () => go({ account: account.id, step: next });
  switch (step) {
    case "events":
      return <EventsStep account={account} onNext={to("domains")} />;
    case "domains":
      return <DomainsStep account={account} onNext={to("mail")} />;
    case "mail":
      return <FirstMailStep account={account} onDomains={to("domains")} />;
  }
}
