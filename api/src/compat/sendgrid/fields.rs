//! What Waypost does with each field of SendGrid.

use crate::compat::fields::Support::{self, Full, Partial, Refused};
use crate::compat::fields::VendorField;

const fn field(path: &'static str, support: Support, note: &'static str) -> VendorField {
    VendorField {
        path,
        support,
        note,
    }
}

const ADDRESS: &str = "an address without a display name";
const NAME: &str = "the display name";
const NO_BYPASS: &str = "Waypost sends to no suppressed address; only `enable: false`";
const NO_FOOTER: &str = "Waypost adds no footer; only `enable: false`";
const NO_SUBSCRIPTION: &str = "`asm` adds an unsubscribe link; only `enable: false`";
const NO_ANALYTICS: &str = "Waypost adds no parameters to links; only `enable: false`";

/// The fields of `POST /v3/mail/send`.
pub(in crate::compat) const FIELDS: &[VendorField] = &[
    field(
        "personalizations",
        Full,
        "1 to 1,000, all accepted or none. Those with one address each and nothing of their own but data become one message of private recipients; any other is a message of its own",
    ),
    field("personalizations[].from", Full, "`from`"),
    field("personalizations[].from.email", Full, ADDRESS),
    field("personalizations[].from.name", Full, NAME),
    field(
        "personalizations[].to",
        Partial,
        "`to`; several addresses share one mail and see each other, up to 50 with `cc` and `bcc`",
    ),
    field("personalizations[].to[].email", Full, ADDRESS),
    field("personalizations[].to[].name", Full, NAME),
    field("personalizations[].cc", Partial, "`cc`; as `to`"),
    field("personalizations[].cc[].email", Full, ADDRESS),
    field("personalizations[].cc[].name", Full, NAME),
    field("personalizations[].bcc", Partial, "`bcc`; as `to`"),
    field("personalizations[].bcc[].email", Full, ADDRESS),
    field("personalizations[].bcc[].name", Full, NAME),
    field("personalizations[].subject", Full, "`subject`"),
    field(
        "personalizations[].headers",
        Partial,
        "replace those of the request with the same names; refused names as in `headers`",
    ),
    field(
        "personalizations[].substitutions",
        Partial,
        "replaced in the subject and the content at acceptance; not in `reply_to`, and not together with `template_id`",
    ),
    field(
        "personalizations[].dynamic_template_data",
        Full,
        "`variables`; only with `template_id`",
    ),
    field(
        "personalizations[].custom_args",
        Full,
        "`metadata`; strings, each replaces that of the request with the same name",
    ),
    field("personalizations[].send_at", Partial, "as `send_at`"),
    field("from", Full, "`from`"),
    field("from.email", Full, ADDRESS),
    field("from.name", Full, NAME),
    field("reply_to", Full, "`replyTo`"),
    field("reply_to.email", Full, ADDRESS),
    field("reply_to.name", Full, NAME),
    field("reply_to_list", Partial, "`replyTo`, up to 10 addresses"),
    field("reply_to_list[].email", Full, ADDRESS),
    field("reply_to_list[].name", Full, NAME),
    field(
        "subject",
        Full,
        "`subject`; that of the template wins, as with SendGrid",
    ),
    field(
        "content",
        Full,
        "`text` and `html`; those of the template win, as with SendGrid",
    ),
    field(
        "content[].type",
        Partial,
        "`text/plain` and `text/html`, each once",
    ),
    field("content[].value", Full, "`text` or `html`"),
    field("attachments", Partial, "`attachments`, up to 50"),
    field("attachments[].content", Full, "`content`"),
    field("attachments[].type", Full, "`contentType`"),
    field("attachments[].filename", Full, "`filename`"),
    field(
        "attachments[].disposition",
        Partial,
        "`inline` needs a `content_id`",
    ),
    field(
        "attachments[].content_id",
        Full,
        "`contentId`, if `disposition` is `inline`",
    ),
    field(
        "template_id",
        Partial,
        "`templateId`: the id of a template in Waypost, with or without `d-` before it (the client for Node.js sends data only with it), or the id at SendGrid of a dynamic template that was imported; no legacy templates",
    ),
    field(
        "headers",
        Partial,
        "`headers`; those that Waypost or the provider sets are refused",
    ),
    field(
        "categories",
        Partial,
        "`tags`, up to 10 of up to 100 characters",
    ),
    field("custom_args", Full, "`metadata`; strings"),
    field(
        "send_at",
        Full,
        "`scheduledAt`; up to a year ahead. A time that is past is at once, as with SendGrid",
    ),
    field(
        "batch_id",
        Refused,
        "Waypost has no batches of scheduled mail; cancel single messages by their ids",
    ),
    field(
        "asm",
        Partial,
        "the mail gets an unsubscribe link, and those who unsubscribed get none",
    ),
    field(
        "asm.group_id",
        Partial,
        "`unsubscribeGroupId`: the id of an unsubscribe group in Waypost, a string; a number is refused",
    ),
    field(
        "asm.groups_to_display",
        Refused,
        "a recipient sees the group of the message alone",
    ),
    field(
        "ip_pool_name",
        Refused,
        "routing rules and provider accounts decide where mail is sent from",
    ),
    field(
        "sections",
        Refused,
        "use substitutions, or a template with conditions",
    ),
    field(
        "mail_settings",
        Partial,
        "`sandbox_mode`; the others only if they are off",
    ),
    field("mail_settings.bypass_list_management", Partial, NO_BYPASS),
    field(
        "mail_settings.bypass_list_management.enable",
        Partial,
        NO_BYPASS,
    ),
    field("mail_settings.bypass_spam_management", Partial, NO_BYPASS),
    field(
        "mail_settings.bypass_spam_management.enable",
        Partial,
        NO_BYPASS,
    ),
    field("mail_settings.bypass_bounce_management", Partial, NO_BYPASS),
    field(
        "mail_settings.bypass_bounce_management.enable",
        Partial,
        NO_BYPASS,
    ),
    field(
        "mail_settings.bypass_unsubscribe_management",
        Partial,
        NO_BYPASS,
    ),
    field(
        "mail_settings.bypass_unsubscribe_management.enable",
        Partial,
        NO_BYPASS,
    ),
    field("mail_settings.footer", Partial, NO_FOOTER),
    field("mail_settings.footer.enable", Partial, NO_FOOTER),
    field("mail_settings.footer.text", Partial, NO_FOOTER),
    field("mail_settings.footer.html", Partial, NO_FOOTER),
    field(
        "mail_settings.bcc",
        Refused,
        "name the address in `bcc` of the personalizations",
    ),
    field(
        "mail_settings.spam_check",
        Refused,
        "Waypost checks no mail for spam",
    ),
    field("mail_settings.sandbox_mode", Partial, "`test`"),
    field(
        "mail_settings.sandbox_mode.enable",
        Partial,
        "`test`: the message is stored and has events, but no provider is called; the answer is 200, as with SendGrid",
    ),
    field("tracking_settings", Partial, "`tracking`"),
    field(
        "tracking_settings.click_tracking",
        Full,
        "`tracking.clicks`",
    ),
    field(
        "tracking_settings.click_tracking.enable",
        Full,
        "`tracking.clicks`",
    ),
    field(
        "tracking_settings.click_tracking.enable_text",
        Partial,
        "Waypost tracks no links of texts: true only without a text",
    ),
    field("tracking_settings.open_tracking", Full, "`tracking.opens`"),
    field(
        "tracking_settings.open_tracking.enable",
        Full,
        "`tracking.opens`",
    ),
    field(
        "tracking_settings.open_tracking.substitution_tag",
        Refused,
        "the pixel is at the end of the HTML body",
    ),
    field(
        "tracking_settings.subscription_tracking",
        Partial,
        NO_SUBSCRIPTION,
    ),
    field(
        "tracking_settings.subscription_tracking.enable",
        Partial,
        NO_SUBSCRIPTION,
    ),
    field(
        "tracking_settings.subscription_tracking.text",
        Partial,
        NO_SUBSCRIPTION,
    ),
    field(
        "tracking_settings.subscription_tracking.html",
        Partial,
        NO_SUBSCRIPTION,
    ),
    field(
        "tracking_settings.subscription_tracking.substitution_tag",
        Partial,
        NO_SUBSCRIPTION,
    ),
    field("tracking_settings.ganalytics", Partial, NO_ANALYTICS),
    field("tracking_settings.ganalytics.enable", Partial, NO_ANALYTICS),
    field(
        "tracking_settings.ganalytics.utm_source",
        Partial,
        NO_ANALYTICS,
    ),
    field(
        "tracking_settings.ganalytics.utm_medium",
        Partial,
        NO_ANALYTICS,
    ),
    field(
        "tracking_settings.ganalytics.utm_term",
        Partial,
        NO_ANALYTICS,
    ),
    field(
        "tracking_settings.ganalytics.utm_content",
        Partial,
        NO_ANALYTICS,
    ),
    field(
        "tracking_settings.ganalytics.utm_campaign",
        Partial,
        NO_ANALYTICS,
    ),
];
