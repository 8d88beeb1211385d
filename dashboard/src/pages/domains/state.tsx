import type { DomainVerification } from "waypost";
import { Badge, type Tone } from "@/ui/badge";

export type State = "verified" | "unverified" | "unknown";
export const STATES: readonly State[] = ["verified", "unverified", "unknown"];

export const STATE_WORDS: Record<State, string> = { verified: "Verified", unverified: "Not verified", unknown: "Not known" };
const TONES: Record<State, Tone> = { verified: "green", unverified: "amber", unknown: "gray" };

/** The state of a domain; what a newer Waypost may say counts as not known. */
export const stateOf = (domain: DomainVerification): State => STATES.find((state) => state === domain.state) ?? "unknown";

export function DomainBadge({ state, children }: { state: State; children?: React.ReactNode }) {
  return (
    <Badge dot tone={TONES[state]}>
      {children ?? STATE_WORDS[state]}
    </Badge>
  );
}

/** A domain with its records at all accounts. */
export interface DomainGroup {
  domain: string;
  entries: readonly DomainVerification[];
}

export function groupByDomain(entries: readonly DomainVerification[]): DomainGroup[] {
  const groups = new Map<string, DomainVerification[]>();
  for (const entry of entries) groups.set(entry.domain, [...(groups.get(entry.domain) ?? []), entry]);
  return [...groups]
    .map(([domain, own]) => ({ domain, entries: own }))
    .sort((one, other) => one.domain.localeCompare(other.domain));
}
