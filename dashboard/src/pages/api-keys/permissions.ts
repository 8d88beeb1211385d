/** What the permissions of API keys allow, in words, and the usual sets of them. */

import type { Permission } from "waypost";
import { words } from "@/format";

export interface PermissionMeaning {
  permission: Permission;
  label: string;
  allows: string;
}

export const PERMISSIONS: readonly PermissionMeaning[] = [
  { permission: "SEND", label: "Send", allows: "Send, retry, cancel and move messages." },
  { permission: "METRICS_READ", label: "Read messages and metrics", allows: "See messages, their history and metrics, not their content." },
  { permission: "CONTENT_READ", label: "Read content", allows: "See bodies and attachments of messages." },
  { permission: "TEMPLATES_READ", label: "Read templates", allows: "See and preview templates." },
  { permission: "TEMPLATES_WRITE", label: "Change templates", allows: "Make, change and delete templates." },
  { permission: "PROVIDERS_READ", label: "Read providers", allows: "See provider accounts, domains and routing rules." },
  { permission: "PROVIDERS_WRITE", label: "Change providers", allows: "Connect and change accounts, domains and routing rules." },
  {
    permission: "SETTINGS_WRITE",
    label: "Settings",
    allows: "API keys, webhooks, suppressions, unsubscribe groups, settings and the audit log.",
  },
  { permission: "MEMBERS_WRITE", label: "People", allows: "Invite people, change their roles and remove them." },
];

export const permissionLabel = (permission: string): string =>
  PERMISSIONS.find((one) => one.permission === permission)?.label ?? words(permission);

export type PresetName = "send" | "read" | "everything";

export interface Preset {
  name: PresetName;
  label: string;
  hint: string;
  permissions: readonly Permission[];
}

export const PRESETS: readonly Preset[] = [
  { name: "send", label: "Only send", hint: "For an application that sends mail.", permissions: ["SEND"] },
  {
    name: "read",
    label: "Read only",
    hint: "For reports and dashboards. No content of messages.",
    permissions: ["METRICS_READ", "TEMPLATES_READ", "PROVIDERS_READ"],
  },
  {
    name: "everything",
    label: "Everything",
    hint: "For scripts that set Waypost up. Keep it off application servers.",
    permissions: PERMISSIONS.map((one) => one.permission),
  },
];

const isSame = (one: ReadonlySet<string>, other: readonly string[]): boolean =>
  one.size === other.length && other.every((permission) => one.has(permission));

/** The preset that a set of permissions is; what the person may not give does not count. */
export function presetOf(chosen: ReadonlySet<string>, mayGive: (permission: Permission) => boolean): PresetName | undefined {
  return PRESETS.find((preset) => isSame(chosen, preset.permissions.filter(mayGive)))?.name;
}

/** A key's permissions in a few words. */
export function permissionsText(permissions: readonly string[]): string {
  const chosen = new Set(permissions);
  const preset = PRESETS.find((one) => isSame(chosen, one.permissions));
  if (preset) return preset.label;
  // A service without people has one permission less.
  if (PERMISSIONS.every(({ permission }) => chosen.has(permission) || permission === "MEMBERS_WRITE")) return "Everything but people";
  const labels = permissions.map(permissionLabel);
  return labels.length <= 2 ? labels.join(", ") : `${labels[0]} and ${labels.length - 1} more`;
}
