import { Link } from "@tanstack/react-router";
import { Plus } from "lucide-react";
import { useMay } from "@/session";
import { buttonClass } from "@/ui/button";
import { NotAllowed } from "@/ui/not-allowed";
import { Page } from "@/ui/page";
import { Tabs } from "@/ui/tabs";
import { Rules } from "./rules";
import { lastQuestion, type Question } from "./question";
import { Where } from "./where";

export interface RoutingSearch extends Question {
  tab?: "where" | undefined;
}

interface Props {
  search: RoutingSearch;
  go(search: RoutingSearch): void;
}

export function RoutingPage({ search, go }: Props) {
  const may = useMay();
  return (
    <Page
      title="Routing"
      description="Which account sends which mail. The first rule that matches decides: one account sends, or several share the mail. If they cannot, the fallbacks send, in their order."
      actions={
        may("PROVIDERS_WRITE") && (
          <Link to="/routing/new" className={buttonClass("primary")}>
            <Plus aria-hidden />
            Add a rule
          </Link>
        )
      }
    >
      {may("PROVIDERS_READ") ? (
        <Tabs
          value={search.tab ?? "rules"}
          onChange={(tab) => go(tab === "where" ? { ...(search.from === undefined ? lastQuestion() : search), tab } : {})}
          tabs={[
            { value: "rules", label: "Rules", content: <Rules /> },
            { value: "where", label: "Where would this mail go?", content: <Where question={search} ask={(question) => go({ ...question, tab: "where" })} /> },
          ]}
        />
      ) : (
        <NotAllowed what="routing rules" />
      )}
    </Page>
  );
}
