/** The types of accounts that these pages know. */

export type Type = "SENDGRID" | "POSTMARK" | "MAILGUN" | "SES" | "SMTP";
export const TYPES: readonly Type[] = ["SENDGRID", "POSTMARK", "MAILGUN", "SES", "SMTP"];
export const isType = (value: unknown): value is Type => TYPES.some((type) => type === value);
