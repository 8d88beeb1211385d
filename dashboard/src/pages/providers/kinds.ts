/** The five types of accounts: what their credentials are, and what Waypost can do with them. */

import { isType, type Type } from "./types";

export interface CredentialField {
  name: string;
  label: string;
  kind: "secret" | "text" | "select" | "port";
  required?: boolean;
  hint?: string;
  placeholder?: string;
  /** Of a select: the values and their words. The first is the default. */
  options?: readonly (readonly [string, string])[];
}

export interface Kind {
  /** One sentence for the choice of the provider. */
  about: string;
  /** A name to begin with. */
  displayName: string;
  fields: readonly CredentialField[];
  /** The secret that verifies events, if a person can set it. */
  eventSecret?: { name: "publicKey" | "signingKey" | "topicArn"; label: string; hint: string; placeholder: string };
  /** Whether Waypost can tell the provider where to post events. */
  registers: boolean;
  /** The lists that an import reads; none if the provider has none. */
  lists?: string;
}

const SENDGRID: Kind = {
  about: "One API key. Waypost sets up the event webhook and adds domains by itself.",
  displayName: "SendGrid",
  fields: [
    { name: "apiKey", label: "API key", kind: "secret", required: true, placeholder: "SG.…", hint: "It begins with SG. and has 69 characters." },
    {
      name: "region",
      label: "Region",
      kind: "select",
      options: [
        ["global", "Global (api.sendgrid.com)"],
        ["eu", "European Union (api.eu.sendgrid.com)"],
      ],
      hint: "European Union only for the key of an EU subuser.",
    },
  ],
  eventSecret: {
    name: "publicKey",
    label: "Verification key",
    hint: "The key that SendGrid shows when you enable the signature verification of the webhook.",
    placeholder: "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE…",
  },
  registers: true,
  lists: "bounces and invalid addresses, spam reports, and global unsubscribes. Blocks and SendGrid's own unsubscribe groups are not imported.",
};

const POSTMARK: Kind = {
  about: "A server token to send; an account token lets Waypost manage domains too.",
  displayName: "Postmark",
  fields: [
    { name: "serverToken", label: "Server API token", kind: "secret", required: true, hint: "The token of the Postmark server that sends your mail." },
    {
      name: "accountToken",
      label: "Account API token",
      kind: "secret",
      hint: "With it Waypost lists and adds your domains. Without it you manage them in Postmark.",
    },
    { name: "messageStream", label: "Message stream", kind: "text", placeholder: "outbound", hint: "The stream's id. The default is outbound, the transactional stream." },
  ],
  registers: true,
  lists: "the suppressions of the account's message stream: hard bounces, spam complaints and manual suppressions.",
};

const MAILGUN: Kind = {
  about: "An API key and the domain that it sends for. One account for each domain.",
  displayName: "Mailgun",
  fields: [
    {
      name: "apiKey",
      label: "API key",
      kind: "secret",
      required: true,
      hint: "An account key. A domain sending key can only send: it can neither set up events nor read the domain.",
    },
    { name: "domain", label: "Sending domain", kind: "text", required: true, placeholder: "mail.example.com" },
    {
      name: "region",
      label: "Region",
      kind: "select",
      options: [
        ["us", "United States (api.mailgun.net)"],
        ["eu", "European Union (api.eu.mailgun.net)"],
      ],
      hint: "The region in which the domain was added. With the wrong one Mailgun answers “Domain not found”.",
    },
  ],
  eventSecret: {
    name: "signingKey",
    label: "HTTP webhook signing key",
    hint: "It is on the page API Security of your Mailgun account, and is not the API key.",
    placeholder: "",
  },
  registers: true,
  lists: "bounces, complaints and unsubscribes of the account's domain. Unsubscribes from single tags are not imported.",
};

const SES: Kind = {
  about: "An access key of an IAM user. Events come through an SNS topic that you create.",
  displayName: "Amazon SES",
  fields: [
    { name: "accessKeyId", label: "Access key ID", kind: "text", required: true, placeholder: "AKIA…" },
    { name: "secretAccessKey", label: "Secret access key", kind: "secret", required: true },
    {
      name: "region",
      label: "Region",
      kind: "text",
      required: true,
      placeholder: "eu-central-1",
      hint: "Identities, quotas and the sandbox of Amazon SES belong to one region.",
    },
    {
      name: "configurationSet",
      label: "Configuration set",
      kind: "text",
      placeholder: "waypost",
      hint: "Amazon SES reports no events without one. You can create it now, under its final name.",
    },
    { name: "sessionToken", label: "Session token", kind: "secret", hint: "Only for temporary credentials." },
  ],
  eventSecret: {
    name: "topicArn",
    label: "ARN of the SNS topic",
    hint: "Waypost accepts only messages of this topic. It must be in the region of the account.",
    placeholder: "arn:aws:sns:eu-central-1:123456789012:waypost",
  },
  registers: false,
  lists: "the suppression list of the Amazon SES account in its region.",
};

const SMTP: Kind = {
  about: "Any mail server that takes mail over SMTP. It reports no events after that.",
  displayName: "Mail server",
  fields: [
    { name: "host", label: "Host", kind: "text", required: true, placeholder: "smtp.example.com" },
    {
      name: "tls",
      label: "Encryption",
      kind: "select",
      options: [
        ["starttls", "STARTTLS (usual, port 587)"],
        ["implicit", "TLS from the first byte (port 465)"],
        ["none", "None (port 25)"],
      ],
    },
    { name: "port", label: "Port", kind: "port", hint: "Empty: the usual port of the encryption." },
    { name: "username", label: "User name", kind: "text" },
    { name: "password", label: "Password", kind: "secret" },
  ],
  registers: false,
};

export const KINDS: Record<Type, Kind> = { SENDGRID, POSTMARK, MAILGUN, SES, SMTP };

/** The kind of an account; undefined for a type that a newer Waypost knows. */
export const kindOf = (type: string): Kind | undefined => (isType(type) ? KINDS[type] : undefined);

export type CredentialValues = Readonly<Record<string, string>>;

/** The values of an empty form. */
export const emptyCredentials = (type: Type): CredentialValues =>
  Object.fromEntries(KINDS[type].fields.map((field) => [field.name, field.options?.[0]?.[0] ?? ""]));

/** What the API takes: fields without a value are left out, and the port is a number. */
export function credentialsOf(type: Type, values: CredentialValues): Record<string, string | number> {
  const given = KINDS[type].fields.flatMap((field): [string, string | number][] => {
    const value = (values[field.name] ?? "").trim();
    if (value === "") return [];
    return [[field.name, field.kind === "port" && /^\d+$/.test(value) ? Number(value) : value]];
  });
  return Object.fromEntries(given);
}
