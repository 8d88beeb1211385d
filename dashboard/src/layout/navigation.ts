import {
  Activity,
  Ban,
  ChartColumn,
  FileText,
  Globe,
  KeyRound,
  LayoutDashboard,
  type LucideIcon,
  Mail,
  ScrollText,
  Send,
  Server,
  Settings,
  Signpost,
  Users,
  UserX,
  Webhook,
} from "lucide-react";
import type { Permission } from "waypost";

export interface Place {
  to: string;
  label: string;
  icon: LucideIcon;
  /** Who may see it; everybody if there is none. */
  permission?: Permission;
  /** Other words by which the palette finds it. */
  words?: string;
}

/** All pages of the menu, in groups. */
export const NAVIGATION: readonly { label?: string; places: readonly Place[] }[] = [
  {
    places: [
      { to: "/", label: "Overview", icon: LayoutDashboard, permission: "METRICS_READ", words: "home start" },
      { to: "/messages", label: "Messages", icon: Mail, permission: "METRICS_READ", words: "emails log activity" },
      { to: "/send", label: "Send", icon: Send, permission: "SEND", words: "compose new test" },
      { to: "/templates", label: "Templates", icon: FileText, permission: "TEMPLATES_READ", words: "mjml html layouts" },
      { to: "/metrics", label: "Metrics", icon: ChartColumn, permission: "METRICS_READ", words: "statistics analytics rates" },
    ],
  },
  {
    label: "Delivery",
    places: [
      { to: "/providers", label: "Providers", icon: Server, permission: "PROVIDERS_READ", words: "accounts sendgrid postmark mailgun ses smtp" },
      { to: "/routing", label: "Routing", icon: Signpost, permission: "PROVIDERS_READ", words: "rules fallbacks" },
      { to: "/domains", label: "Domains", icon: Globe, permission: "PROVIDERS_READ", words: "dns dkim spf dmarc" },
    ],
  },
  {
    label: "Recipients",
    places: [
      { to: "/suppressions", label: "Suppressions", icon: Ban, permission: "SETTINGS_WRITE", words: "bounces complaints blocked" },
      { to: "/unsubscribe-groups", label: "Unsubscribe groups", icon: UserX, permission: "SETTINGS_WRITE", words: "lists preferences" },
    ],
  },
  {
    label: "Developers",
    places: [
      { to: "/webhooks", label: "Webhooks", icon: Webhook, permission: "SETTINGS_WRITE", words: "endpoints deliveries events replay" },
      { to: "/api-keys", label: "API keys", icon: KeyRound, permission: "SETTINGS_WRITE", words: "tokens secrets" },
    ],
  },
  {
    label: "Organization",
    places: [
      { to: "/people", label: "People", icon: Users, permission: "MEMBERS_WRITE", words: "members invitations roles team" },
      { to: "/settings", label: "Settings", icon: Settings, permission: "SETTINGS_WRITE", words: "tracking retention colour" },
      { to: "/audit-log", label: "Audit log", icon: ScrollText, permission: "SETTINGS_WRITE", words: "history changes" },
    ],
  },
  { label: "Operator", places: [{ to: "/operator", label: "Operator", icon: Activity, permission: "OPERATOR", words: "workers tasks queues jobs" }] },
];

