import { useMay } from "@/session";
import { NotAllowed } from "@/ui/not-allowed";
import { Page } from "@/ui/page";
import { Breakdown } from "./breakdown";
import { Controls } from "./controls";
import type { MetricsSearch } from "./search";
import { Series } from "./series";
import { Summary } from "./summary";

export interface MetricsProps {
  search: MetricsSearch;
  onSearch(change: MetricsSearch): void;
}

export function MetricsPage({ search, onSearch }: MetricsProps) {
  const may = useMay();
  if (!may("METRICS_READ")) return <NotAllowed what="metrics" />;
  return (
    <Page title="Metrics" description="Each recipient counts once for each type of event. Hours count whole, and tests do not count.">
      <div className="space-y-6">
        <Controls search={search} onSearch={onSearch} />
        <Summary search={search} />
        <Series search={search} onSearch={onSearch} />
        <Breakdown search={search} onSearch={onSearch} />
      </div>
    </Page>
  );
}
