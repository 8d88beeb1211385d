import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Send } from "lucide-react";
import { accountsQuery } from "@/pages/providers/queries";
import { useMay } from "@/session";
import { buttonClass } from "@/ui/button";
import { NotAllowed } from "@/ui/not-allowed";
import { Page } from "@/ui/page";
import { Accounts } from "./accounts";
import { firstMailQuery, type Span } from "./data";
import { FirstSteps } from "./first-steps";
import { Rates } from "./rates";
import { SpanChoice } from "./span";
import { Totals } from "./totals";

export function Overview({ span, onSpan }: { span: Span; onSpan(span: Span): void }) {
  const may = useMay();
  const isFirstRun = useIsFirstRun();
  if (!may("METRICS_READ")) return <NotAllowed what="the overview" />;
  return (
    <Page
      title="Overview"
      actions={
        !isFirstRun &&
        may("SEND") && (
          <Link to="/send" className={buttonClass("primary")}>
            <Send aria-hidden />
            Send a mail
          </Link>
        )
      }
    >
      <div className="space-y-6">
        {isFirstRun && <FirstSteps />}
        <SpanChoice span={span} onSpan={onSpan} />
        <Totals span={span} />
        <div className="grid items-start gap-6 lg:grid-cols-2">
          <Rates span={span} />
          {may("PROVIDERS_READ") && <Accounts />}
        </div>
      </div>
    </Page>
  );
}

/** Whether no mail was delivered yet. A mail server over SMTP reports no deliveries: then a mail that it took counts. */
function useIsFirstRun(): boolean {
  const may = useMay();
  const first = useQuery({ ...firstMailQuery, enabled: may("METRICS_READ") }).data;
  const accounts = useQuery({ ...accountsQuery, enabled: may("PROVIDERS_READ") }).data;
  if (!first || first.delivered) return false;
  const reportsNothing = accounts !== undefined && accounts.length > 0 && accounts.every((one) => one.providerType === "SMTP");
  return !(first.sent && reportsNothing);
}
