import { useQuery } from "@tanstack/react-query";
import { createFileRoute } from "@tanstack/react-router";
import type { Settings as SettingsRecord } from "waypost";
import { ErasureSection } from "@/pages/settings/erasure";
import { OrganizationSection } from "@/pages/settings/organization";
import { RetentionSection } from "@/pages/settings/retention";
import { RateLimitsSection, SoftBouncesSection, TrackingSection, UnverifiedSection } from "@/pages/settings/sending";
import { settingsQuery } from "@/pages/settings/settings";
import { useMay } from "@/session";
import { NotAllowed } from "@/ui/not-allowed";
import { LoadError, Page, SkeletonRows } from "@/ui/page";

export const Route = createFileRoute("/_app/settings")({ component: Settings });

function Settings() {
  const may = useMay();
  const settings = useQuery({ ...settingsQuery, enabled: may("SETTINGS_WRITE") });
  return (
    <Page title="Settings" description="What applies to the whole organization." narrow>
      {!may("SETTINGS_WRITE") && <NotAllowed what="the settings" />}
      {settings.isLoading && <SkeletonRows />}
      {settings.error && <LoadError error={settings.error} retry={() => void settings.refetch()} />}
      {settings.data && <Sections settings={settings.data} />}
    </Page>
  );
}

function Sections({ settings }: { settings: SettingsRecord }) {
  return (
    <div className="space-y-6">
      <OrganizationSection settings={settings} />
      <TrackingSection settings={settings} />
      <UnverifiedSection settings={settings} />
      <SoftBouncesSection settings={settings} />
      <RateLimitsSection settings={settings} />
      <RetentionSection settings={settings} />
      <ErasureSection />
    </div>
  );
}
