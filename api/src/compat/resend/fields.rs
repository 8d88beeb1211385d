//! What Waypost does with each field of Resend.

use crate::compat::fields::Support::{self, Full, Partial, Refused};
use crate::compat::fields::VendorField;

const fn field(path: &'static str, support: Support, note: &'static str) -> VendorField {
    VendorField {
        path,
        support,
        note,
    }
}

/// The fields of `POST /emails`, and of each message of `POST /emails/batch`.
pub(in crate::compat) const FIELDS: &[VendorField] = &[
    field("from", Full, "`from`"),
    field(
        "to",
        Full,
        "`to`; several addresses share one mail and see each other",
    ),
    field("subject", Full, "`subject`"),
    field("cc", Full, "`cc`"),
    field("bcc", Full, "`bcc`"),
    field("reply_to", Partial, "`replyTo`, up to 10 addresses"),
    field("html", Full, "`html`"),
    field(
        "text",
        Partial,
        "`text`; no text is made from `html`, so an empty text is the same as none",
    ),
    field(
        "template",
        Full,
        "`from`, `subject` and `reply_to` replace those of the template",
    ),
    field(
        "template.id",
        Partial,
        "`templateId`: the id of a template in Waypost, or the id or alias at Resend of one that was imported",
    ),
    field("template.variables", Full, "`variables`"),
    field(
        "headers",
        Partial,
        "`headers`; those that Waypost or the provider sets are refused",
    ),
    field(
        "scheduled_at",
        Partial,
        "`scheduledAt`: ISO 8601 with an offset from UTC, or `in 5 minutes` (seconds, minutes, hours, days, weeks); up to a year ahead",
    ),
    field("attachments", Partial, "`attachments`, up to 50"),
    field(
        "attachments[].content",
        Full,
        "`content`: base64, or the bytes as an array of numbers",
    ),
    field(
        "attachments[].filename",
        Full,
        "`filename`; without it, the last part of `path`",
    ),
    field("attachments[].path", Partial, "`url`: a public `https` URL"),
    field("attachments[].content_type", Full, "`contentType`"),
    field("attachments[].content_id", Full, "`contentId`"),
    field(
        "attachments[].inline_content_id",
        Full,
        "the older name of `content_id`",
    ),
    field(
        "tags",
        Partial,
        "a tag `name:value` in `tags`, and an entry in `metadata`; up to 10",
    ),
    field(
        "tags[].name",
        Partial,
        "up to 100 characters together with the value; each name once",
    ),
    field("tags[].value", Partial, "as the name"),
    field(
        "topic_id",
        Partial,
        "`unsubscribeGroupId`: the id of an unsubscribe group in Waypost; the mail gets an unsubscribe link",
    ),
    field(
        "region",
        Refused,
        "the provider account decides where mail is sent from",
    ),
];

/// The fields of `PATCH /emails/{id}`.
pub(in crate::compat) const UPDATE_FIELDS: &[VendorField] = &[
    field(
        "scheduled_at",
        Partial,
        "as of `POST /emails`; only of a message that was scheduled",
    ),
    field(
        "id",
        Full,
        "the id of the path, which the Python client repeats",
    ),
];
