import { useState } from "react";
import type { Settings } from "waypost";
import { Field, Input, Select, Switch } from "@/ui/form";
import { optionalNumber, wholeNumber } from "./numbers";
import { Section } from "./section";
import { useSaveSettings } from "./settings";

interface Props {
  settings: Settings;
}

/** Open and click tracking. */
export function TrackingSection({ settings }: Props) {
  const [trackOpens, setOpens] = useState(settings.trackOpens);
  const [trackClicks, setClicks] = useState(settings.trackClicks);
  const save = useSaveSettings(() => ({ trackOpens, trackClicks }));
  return (
    <Section
      title="Tracking"
      description="A message that sets tracking itself is not affected."
      changed={trackOpens !== settings.trackOpens || trackClicks !== settings.trackClicks}
      save={save}
      note="Applies to messages that are accepted from now on."
    >
      <Switch
        label="Track opens"
        hint="Adds an invisible image to HTML bodies. Opens by mail programs that load images by themselves are recorded, and not counted."
        checked={trackOpens}
        onChange={setOpens}
      />
      <Switch
        label="Track clicks"
        hint="Leads the links of HTML bodies through Waypost. Links with the attribute data-waypost-no-track stay as they are."
        checked={trackClicks}
        onChange={setClicks}
      />
    </Section>
  );
}

const UNVERIFIED = [
  ["reject", "Reject the message"],
  ["accept", "Accept it, and say so in the answer"],
] as const;

/** Senders whose domain no provider has verified. */
export function UnverifiedSection({ settings }: Props) {
  const [unverifiedDomains, choose] = useState(settings.unverifiedDomains);
  const save = useSaveSettings(() => ({ unverifiedDomains }));
  return (
    <Section
      title="Unverified domains"
      description="What happens to a message whose sender domain is not verified on the provider account that would send it."
      changed={unverifiedDomains !== settings.unverifiedDomains}
      save={save}
      note="Takes effect at once."
    >
      <Field
        label="Messages from unverified domains"
        path="unverifiedDomains"
        hint={
          unverifiedDomains === "reject"
            ? "The send is answered with 422, and nothing is sent."
            : "The send is answered with 202 and domainVerified: false. The provider may still refuse the message."
        }
      >
        {(control) => (
          <Select
            {...control}
            className="w-full sm:w-80"
            value={unverifiedDomains}
            onChange={(event) => choose(event.target.value as Settings["unverifiedDomains"])}
            options={UNVERIFIED}
          />
        )}
      </Field>
    </Section>
  );
}

const text = (number: number | null): string => (number === null ? "" : String(number));

/** How many requests a second the organization takes. */
export function RateLimitsSection({ settings }: Props) {
  const before = settings.rateLimits;
  const [send, setSend] = useState(text(before.sendPerSecond));
  const [other, setOther] = useState(text(before.otherPerSecond));
  const save = useSaveSettings(() => ({
    rateLimits: {
      sendPerSecond: optionalNumber("rateLimits.sendPerSecond", send),
      otherPerSecond: optionalNumber("rateLimits.otherPerSecond", other),
    },
  }));
  return (
    <Section
      title="Rate limits"
      description="The requests that Waypost takes from this organization in a second. More are answered with 429."
      changed={send !== text(before.sendPerSecond) || other !== text(before.otherPerSecond)}
      save={save}
      note="Takes effect within a few seconds."
    >
      <div className="grid gap-5 sm:grid-cols-2">
        <Field label="Sends per second" path="rateLimits.sendPerSecond" hint="POST /v1/send. Empty: the operator's limit.">
          {(control) => (
            <Input {...control} inputMode="numeric" value={send} onChange={(event) => setSend(event.target.value)} placeholder="The operator's limit" />
          )}
        </Field>
        <Field label="Other requests per second" path="rateLimits.otherPerSecond" hint="All other operations together. Empty: the operator's limit.">
          {(control) => (
            <Input {...control} inputMode="numeric" value={other} onChange={(event) => setOther(event.target.value)} placeholder="The operator's limit" />
          )}
        </Field>
      </div>
    </Section>
  );
}

/** When repeated soft bounces suppress an address. */
export function SoftBouncesSection({ settings }: Props) {
  const [limit, setLimit] = useState(String(settings.softBounceLimit));
  const [days, setDays] = useState(String(settings.softBounceWindowDays));
  const save = useSaveSettings(() => ({
    softBounceLimit: wholeNumber("softBounceLimit", limit),
    softBounceWindowDays: wholeNumber("softBounceWindowDays", days),
  }));
  return (
    <Section
      title="Soft bounces"
      description="A soft bounce is for now only, such as a full mailbox. An address that bounces again and again is suppressed like after a hard bounce."
      changed={limit !== String(settings.softBounceLimit) || days !== String(settings.softBounceWindowDays)}
      save={save}
    >
      <div className="grid gap-5 sm:grid-cols-2">
        <Field label="Soft bounces until an address is suppressed" path="softBounceLimit" hint="0: soft bounces never suppress.">
          {(control) => <Input {...control} inputMode="numeric" value={limit} onChange={(event) => setLimit(event.target.value)} />}
        </Field>
        <Field label="Counted within, in days" path="softBounceWindowDays" hint="Older soft bounces of the address do not count.">
          {(control) => <Input {...control} inputMode="numeric" value={days} onChange={(event) => setDays(event.target.value)} />}
        </Field>
      </div>
    </Section>
  );
}
