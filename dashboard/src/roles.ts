/** The roles of members, in words. The API decides what a role may do; this tells people. */

import type { Permission } from "waypost";

export interface Role {
  label: string;
  /** In one sentence. */
  summary: string;
}

export const ROLES = {
  OWNER: { label: "Owner", summary: "May do everything, and decides who belongs to the organization." },
  ADMIN: { label: "Admin", summary: "May do everything except invite, change and remove people." },
  DEVELOPER: { label: "Developer", summary: "Sends, edits templates, and sees messages with their contents, metrics and provider accounts." },
  VIEWER: { label: "Viewer", summary: "Sees messages without their contents, metrics, templates and provider accounts. Changes nothing." },
} as const satisfies Record<string, Role>;

export type RoleName = keyof typeof ROLES;
export const ROLE_NAMES = Object.keys(ROLES) as readonly RoleName[];

export const roleLabel = (role: string): string => (role in ROLES ? ROLES[role as RoleName].label : role);
export const roleSummary = (role: string): string | undefined => (role in ROLES ? ROLES[role as RoleName].summary : undefined);

/** What a role may do, line by line, for the table on the page of people. */
export const ABILITIES: readonly { label: string; permission: Permission; roles: readonly RoleName[] }[] = [
  { label: "See messages, metrics and what became of them", permission: "METRICS_READ", roles: ["OWNER", "ADMIN", "DEVELOPER", "VIEWER"] },
  { label: "See templates", permission: "TEMPLATES_READ", roles: ["OWNER", "ADMIN", "DEVELOPER", "VIEWER"] },
  { label: "See provider accounts, domains and routing rules", permission: "PROVIDERS_READ", roles: ["OWNER", "ADMIN", "DEVELOPER", "VIEWER"] },
  { label: "Send, retry and cancel messages", permission: "SEND", roles: ["OWNER", "ADMIN", "DEVELOPER"] },
  { label: "Edit templates", permission: "TEMPLATES_WRITE", roles: ["OWNER", "ADMIN", "DEVELOPER"] },
  { label: "Read the contents of messages", permission: "CONTENT_READ", roles: ["OWNER", "ADMIN", "DEVELOPER"] },
  { label: "Change provider accounts, domains and routing rules", permission: "PROVIDERS_WRITE", roles: ["OWNER", "ADMIN"] },
  {
    label: "Manage API keys, webhooks, suppressions, settings and erasures, and see the audit log",
    permission: "SETTINGS_WRITE",
    roles: ["OWNER", "ADMIN"],
  },
  { label: "Invite people, change their roles, remove them", permission: "MEMBERS_WRITE", roles: ["OWNER"] },
];
