//! What Waypost does with each field of Postmark.

use crate::compat::fields::Support::{self, Full, Partial, Refused};
use crate::compat::fields::VendorField;

const fn field(path: &'static str, support: Support, note: &'static str) -> VendorField {
    VendorField {
        path,
        support,
        note,
    }
}

/// The fields of a message: of `POST /email` and `/email/withTemplate`, and of each message of a
/// batch.
pub(in crate::compat) const FIELDS: &[VendorField] = &[
    field("From", Full, "`from`"),
    field(
        "To",
        Full,
        "`to`, addresses separated by commas; several share one mail and see each other, up to 50 with `Cc` and `Bcc`",
    ),
    field("Cc", Full, "`cc`; as `To`"),
    field("Bcc", Full, "`bcc`; as `To`"),
    field("ReplyTo", Partial, "`replyTo`, up to 10 addresses"),
    field("Subject", Full, "`subject`; not with a template"),
    field("HtmlBody", Full, "`html`; not with a template"),
    field("TextBody", Full, "`text`; not with a template"),
    field("Tag", Partial, "a tag in `tags`, of up to 100 characters"),
    field("Metadata", Full, "`metadata`; strings"),
    field("TrackOpens", Full, "`tracking.opens`"),
    field(
        "TrackLinks",
        Partial,
        "`tracking.clicks`: `None` and `HtmlOnly`. Waypost tracks no links of texts: `HtmlAndText` only without `TextBody` and template, `TextOnly` never",
    ),
    field(
        "MessageStream",
        Partial,
        "`outbound`, which changes nothing, or the id of an unsubscribe group in Waypost (`unsubscribeGroupId`), whose link the mail gets as that of a broadcast stream",
    ),
    field(
        "Headers",
        Partial,
        "`headers`; those that Waypost or the provider sets are refused, and so is each `X-PM-…`",
    ),
    field("Headers[].Name", Full, "the name"),
    field("Headers[].Value", Full, "the value"),
    field("Attachments", Partial, "`attachments`, up to 50"),
    field("Attachments[].Name", Full, "`filename`"),
    field("Attachments[].Content", Full, "`content`"),
    field("Attachments[].ContentType", Full, "`contentType`"),
    field(
        "Attachments[].ContentID",
        Full,
        "`contentId`, with or without `cid:` before it",
    ),
    field(
        "Attachments[].ContentLength",
        Refused,
        "Waypost counts the bytes itself",
    ),
    field(
        "Attachments[].Disposition",
        Refused,
        "a file with a ContentID is shown within the HTML body",
    ),
    field(
        "TemplateId",
        Partial,
        "`templateId`: the number at Postmark of a template that was imported",
    ),
    field(
        "TemplateAlias",
        Partial,
        "`templateId`: the id of a template in Waypost, or the alias at Postmark of one that was imported",
    ),
    field("TemplateModel", Full, "`variables`"),
    field(
        "InlineCss",
        Partial,
        "without effect: the HTML of a template is sent as it is, so inline its styles once, in the template",
    ),
];
