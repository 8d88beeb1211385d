import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { clsx } from "clsx";
import { Check } from "lucide-react";
import type { Permission } from "waypost";
import { accountsQuery } from "@/pages/providers/queries";
import { useMay } from "@/session";
import { buttonClass } from "@/ui/button";
import { Card } from "@/ui/page";
import { anyDomainQuery, anyKeyQuery, firstMailQuery } from "./data";

interface Step {
  title: string;
  text: string;
  to: string;
  action: string;
  permission: Permission;
  /** Undefined while it is not known. */
  done: boolean | undefined;
}

/** What is left to do until the first mail is delivered. */
export function FirstSteps() {
  const steps = useSteps();
  const next = steps.findIndex((step) => step.done === false);
  const done = steps.filter((step) => step.done).length;
  return (
    <Card title="Deliver your first mail" description={`${done} of ${steps.length} steps are done. This goes away once a mail is delivered.`} flush>
      <ol className="divide-y divide-line">
        {steps.map((step, at) => (
          <StepLine key={step.title} step={step} number={at + 1} isNext={at === next} />
        ))}
      </ol>
    </Card>
  );
}

function useSteps(): readonly Step[] {
  const may = useMay();
  const accounts = useQuery({ ...accountsQuery, enabled: may("PROVIDERS_READ"), refetchInterval: 10_000 }).data;
  const ids = accounts?.map((account) => account.id) ?? [];
  const domain = useQuery({ ...anyDomainQuery(ids), enabled: accounts !== undefined, refetchInterval: 10_000 }).data;
  const key = useQuery({ ...anyKeyQuery, enabled: may("SETTINGS_WRITE") }).data;
  const first = useQuery(firstMailQuery).data;
  return [
    {
      title: "Connect a provider account",
      text: "Waypost sends through your account at SendGrid, Postmark, Mailgun, Amazon SES or a mail server.",
      to: "/providers",
      action: "Connect an account",
      permission: "PROVIDERS_WRITE",
      done: accounts && accounts.length > 0,
    },
    {
      title: "Verify your sender domain",
      text: "Publish the DNS records of your domain, so that mailboxes trust mail from it.",
      to: "/domains",
      action: "Verify a domain",
      permission: "PROVIDERS_WRITE",
      done: domain,
    },
    {
      title: "Make an API key",
      text: "Your program sends with it. Waypost shows it once.",
      to: "/api-keys",
      action: "Make a key",
      permission: "SETTINGS_WRITE",
      done: key,
    },
    {
      title: "Send a mail",
      text: first?.sent
        ? "A provider took a mail. It is not reported as delivered yet: see what became of it."
        : "Send one to yourself from here, or from your program with the key.",
      to: first?.sent ? "/messages" : "/send",
      action: first?.sent ? "See the messages" : "Send a mail",
      permission: "SEND",
      done: first?.delivered,
    },
  ];
}

function StepLine({ step, number, isNext }: { step: Step; number: number; isNext: boolean }) {
  const may = useMay();
  return (
    <li className="flex flex-wrap items-center gap-x-4 gap-y-2 px-4 py-3.5 sm:px-5">
      <span
        className={clsx(
          "flex size-6 shrink-0 items-center justify-center rounded-full text-xs font-semibold [&_svg]:size-3.5",
          step.done ? "bg-green-soft text-green" : isNext ? "bg-accent text-on-accent" : "bg-sunken text-text-2",
        )}
      >
        {step.done ? <Check aria-label="Done" /> : number}
      </span>
      <div className="min-w-0 flex-1 basis-52">
        <h3 className={clsx("font-medium", step.done && "text-text-2")}>{step.title}</h3>
        {!step.done && <p className="text-[13px] text-text-2">{step.text}</p>}
      </div>
      {!step.done && may(step.permission) && (
        <Link to={step.to} className={clsx(buttonClass(isNext ? "primary" : "secondary", true), "max-sm:ml-10")}>
          {step.action}
        </Link>
      )}
    </li>
  );
}
