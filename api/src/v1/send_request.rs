//! The request to send a message, and what its fields must be together.

use poem_openapi::Object;
use serde_json::Value;
use waypost_core::acceptance::draft::{
    self, DeliveryMode, Draft, DraftRecipient, METADATA_BYTES_MAX, REPLY_TO_MAX,
    SHARED_ADDRESSES_MAX, TemplateUse,
};
use waypost_core::acceptance::headers;
use waypost_core::address::Mailbox;
use waypost_core::clock::{Clock, Timestamp};
use waypost_core::ids::{ProviderAccountId, TemplateId, UnsubscribeGroupId};
use waypost_core::issue::Issue;
use waypost_core::message::{RecipientKind, SimulatedOutcome};
use waypost_core::routing::conditions::MessageClass;
use waypost_core::template::current::VersionChoice;
use waypost_core::text::Subject;
use waypost_core::text::locale::Locale;
use waypost_core::tracking::TrackingChoice;
use waypost_core::unsubscribe::link_insertion;

use crate::fields::Id;
use crate::fields::attachments::AttachmentList;
use crate::fields::content::{BodyText, JsonObject, Tags, Variables};
use crate::fields::headers::Headers;
use crate::fields::recipients::{Mailboxes, Recipients};
use crate::fields::time::FutureTime;
use crate::middleware::auth::Caller;
use crate::validate::Validated;

/// A message to send. It needs at least one of `templateId`, `html` and `text`.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
pub(crate) struct SendMessageRequest {
    /// One address or an array of up to 1,000, each with or without a display name. An item
    /// of the array can be an object with variables and metadata of this recipient. Each
    /// recipient gets a message of their own and does not see the other recipients, unless
    /// the message is shared. A repeated address gets one message.
    to: Validated<Recipients>,
    /// One address or an array of addresses that get a copy and that all recipients see.
    /// With `cc` or `bcc`, the message is shared: all recipients get one mail and see the
    /// addresses of `to` and `cc`. A shared message has up to 50 addresses in all.
    cc: Validated<Option<Mailboxes<SHARED_ADDRESSES_MAX>>>,
    /// One address or an array of addresses that get a copy and that the other recipients do
    /// not see.
    bcc: Validated<Option<Mailboxes<SHARED_ADDRESSES_MAX>>>,
    /// `private`: each recipient of `to` gets a mail of their own. `shared`: all get one
    /// mail and see each other. The default is `shared` with `cc` or `bcc`, and else
    /// `private`. A shared message has no variables of single recipients, and no
    /// `unsubscribeGroupId` unless it has one address.
    delivery: Validated<Option<DeliveryMode>>,
    /// The sender. The domain must be verified on the provider account that sends the
    /// message; the setting `unverifiedDomains` can allow other domains. Required, unless
    /// `templateId` names a template whose version has a sender.
    from: Validated<Option<Mailbox>>,
    /// The subject, on one line. With `templateId` or variables it is a Handlebars
    /// template, and the rendered subject must keep the same length limit. Required, unless
    /// `templateId` names a template whose version has a subject.
    subject: Validated<Option<Subject>>,
    /// The HTML body. With `templateId` it replaces the template's HTML and is not
    /// rendered. With variables and without `templateId` it is a Handlebars template.
    html: Validated<Option<BodyText>>,
    /// The plain-text body. With `templateId` it replaces the template's text and is not
    /// rendered. With variables and without `templateId` it is a Handlebars template.
    text: Validated<Option<BodyText>>,
    /// One address for replies or an array of up to 10. The default is that of the template's
    /// version, or else the sender.
    reply_to: Validated<Option<Mailboxes<REPLY_TO_MAX>>>,
    /// Extra headers: up to 50 names with their values, 8 KiB in all. A name has letters,
    /// digits and hyphens; a value is ASCII on one line (other characters as encoded words,
    /// RFC 2047). Headers that Waypost or the provider sets are refused: `From`, `To`,
    /// `Subject`, `Date`, `Message-ID`, `Content-*`, `DKIM-*`, `X-Waypost-*` and others.
    /// With `unsubscribeGroupId`, so is `List-Unsubscribe`.
    headers: Validated<Option<Headers>>,
    /// Up to 50 files. A file with a `contentId` is shown within the HTML body, which must
    /// not show `cid:` URLs of other ids.
    attachments: Validated<Option<AttachmentList>>,
    /// Up to 10 tags, for routing rules and analytics.
    tags: Validated<Option<Tags>>,
    /// What kind of mail the message is, for routing rules: `transactional` (the default) or
    /// `bulk`.
    message_class: Validated<Option<MessageClass>>,
    /// Any JSON object of up to 64 KiB. It is stored with the message and included in its
    /// webhook events.
    metadata: Validated<Option<JsonObject<METADATA_BYTES_MAX>>>,
    /// The template to render. The current version is rendered when the message is
    /// accepted; later versions do not change the message.
    template_id: Validated<Option<Id>>,
    /// With `templateId`: the language of the version, as a language tag. Without a current
    /// version in this language, the next less exact one counts: `de-AT`, then `de`, then the
    /// default.
    locale: Validated<Option<Locale>>,
    /// The variables of the template: an object of up to 256 KiB. Without `templateId`,
    /// `subject`, `html` and `text` are rendered with these variables (even if the object
    /// is empty). If neither the message nor a recipient has `variables`, they are sent
    /// unchanged.
    variables: Validated<Option<Variables>>,
    /// The unsubscribe group of the message. Recipients who unsubscribed from this group
    /// are dropped, in addition to those suppressed for all messages. Each recipient gets
    /// an unsubscribe link: at `{{unsubscribeUrl}}` in a body, or else at its end, and in
    /// the headers for the unsubscribe button of mail clients. Without a group, a body
    /// must not contain `{{unsubscribeUrl}}`, unless `variables` defines it.
    unsubscribe_group_id: Validated<Option<UnsubscribeGroupId>>,
    /// Which tracking to add to the HTML body: a pixel for opens, redirects for clicks.
    /// The default is the organization's settings. A link with the attribute
    /// `data-waypost-no-track` is not tracked.
    tracking: Validated<Option<TrackingChoice>>,
    /// When to send the message, up to a year ahead: ISO 8601 with an offset from UTC. Until
    /// then its status is QUEUED. Suppressions and the account are decided at that time. The
    /// `Idempotency-Key` is valid until 24 hours after it.
    scheduled_at: Validated<Option<FutureTime>>,
    /// The message is not sent from this time on, up to a year ahead: ISO 8601 with an
    /// offset from UTC, after `scheduledAt`. Recipients to whom it was not sent before are
    /// dropped.
    expires_at: Validated<Option<FutureTime>>,
    /// The only provider account that may send the message, whatever the routing rules say.
    /// It must be active, and the sender's domain must be verified on it.
    provider_account_id: Validated<Option<Id>>,
    /// Whether the message is a test: it goes through everything, but no provider is called,
    /// nobody gets it, and nothing is counted. The default is whether the API key is a test
    /// key; with a test key it must not be false.
    test: Validated<Option<bool>>,
    /// What becomes of a test. `delivered` is the default. `bounced`: a hard bounce.
    /// `complained`: delivered, then reported as spam. `deferred`: deferred, then delivered.
    /// `failed`: the provider refuses it. `suppressed`: all recipients are suppressed.
    /// `unknown`: the provider's answer is lost, and the rule's `onUnknown` decides.
    /// `failover`: the first account fails, and the next one takes it.
    test_outcome: Validated<Option<SimulatedOutcome>>,
}

impl SendMessageRequest {
    /// The draft, or all mistakes in the request.
    pub(crate) fn check(
        self,
        mut issues: Vec<Issue>,
        clock: &Clock,
        caller: &Caller,
    ) -> Result<Draft, Vec<Issue>> {
        if !(self.html.is_given() || self.text.is_given() || self.template_id.is_given()) {
            let message = "is required unless text or templateId is given";
            issues.push(Issue::new("html", message));
        }
        let fields = self.take(&mut issues, clock, caller);
        fields.check_link(&mut issues);
        fields.check_group(&mut issues);
        fields.check_metadata(&mut issues);
        if let Some(schedule) = &fields.schedule
            && !issues.is_empty()
        {
            // Else acceptance decides: the request may be a repetition.
            let (scheduled_at, expires_at) = (schedule.scheduled_at, schedule.expires_at);
            issues.extend(draft::past_times(scheduled_at, expires_at, clock.now()));
        }
        match fields.into_draft() {
            Some(draft) if issues.is_empty() => Ok(draft),
            Some(_) | None => Err(issues),
        }
    }

    /// The fields without mistakes.
    fn take(self, issues: &mut Vec<Issue>, clock: &Clock, caller: &Caller) -> SendFields {
        let to = self.to.take("to", issues);
        let cc = self.cc.take("cc", issues);
        let bcc = self.bcc.take("bcc", issues);
        let delivery = self.delivery.take("delivery", issues);
        let has_template = self.template_id.is_given();
        let scheduled_at = self.scheduled_at.take("scheduledAt", issues);
        let expires_at = self.expires_at.take("expiresAt", issues);
        let test = self.test.take("test", issues);
        let test_outcome = self.test_outcome.take("testOutcome", issues);
        SendFields {
            addressed: Addressed::of(to, cc, bcc, delivery, issues),
            from: unless_template("from", self.from, has_template, issues),
            subject: unless_template("subject", self.subject, has_template, issues),
            html: self.html.take("html", issues),
            text: self.text.take("text", issues),
            reply_to: self.reply_to.take("replyTo", issues),
            headers: self.headers.take("headers", issues),
            attachments: self.attachments.take("attachments", issues),
            tags: self.tags.take("tags", issues),
            class: self.message_class.take("messageClass", issues),
            metadata: self.metadata.take("metadata", issues),
            template_id: self.template_id.take("templateId", issues),
            locale: {
                if self.locale.is_given() && !has_template {
                    issues.push(Issue::new("locale", "must not be given without templateId"));
                }
                self.locale.take("locale", issues)
            },
            variables: self.variables.take("variables", issues),
            group: self.unsubscribe_group_id.take("unsubscribeGroupId", issues),
            tracking: self.tracking.take("tracking", issues),
            schedule: Schedule::of(scheduled_at, expires_at, clock, issues),
            account: self.provider_account_id.take("providerAccountId", issues),
            test: simulated(test, test_outcome, caller, issues),
        }
    }
}

/// A field that only a message with a template may leave out. Whether the template has it shows
/// at acceptance.
fn unless_template<T>(
    path: &str,
    field: Validated<Option<T>>,
    has_template: bool,
    issues: &mut Vec<Issue>,
) -> Option<Option<T>> {
    if !field.is_given() && !has_template {
        let why = "is required unless templateId names a template that has it";
        issues.push(Issue::new(path, why));
    }
    field.take(path, issues)
}

/// The fields of a request; `None` for one with mistakes.
struct SendFields {
    addressed: Option<Addressed>,
    from: Option<Option<Mailbox>>,
    subject: Option<Option<Subject>>,
    html: Option<Option<BodyText>>,
    text: Option<Option<BodyText>>,
    reply_to: Option<Option<Mailboxes<REPLY_TO_MAX>>>,
    headers: Option<Option<Headers>>,
    attachments: Option<Option<AttachmentList>>,
    tags: Option<Option<Tags>>,
    class: Option<Option<MessageClass>>,
    metadata: Option<Option<JsonObject<METADATA_BYTES_MAX>>>,
    template_id: Option<Option<Id>>,
    locale: Option<Option<Locale>>,
    variables: Option<Option<Variables>>,
    group: Option<Option<UnsubscribeGroupId>>,
    tracking: Option<Option<TrackingChoice>>,
    schedule: Option<Schedule>,
    account: Option<Option<Id>>,
    test: Option<Option<SimulatedOutcome>>,
}

impl SendFields {
    /// Whether the message or a recipient has variables.
    fn has_variables(&self) -> bool {
        let of_message = matches!(self.variables, Some(Some(_)));
        of_message
            || self
                .addressed
                .as_ref()
                .is_some_and(Addressed::has_variables)
    }

    /// Bodies with variables are checked after rendering.
    fn check_link(&self, issues: &mut Vec<Issue>) {
        let is_rendered = self.has_variables() && matches!(self.template_id, Some(None));
        let has_link_variable = [&self.html, &self.text].into_iter().any(|body| {
            let body = body.as_ref().and_then(Option::as_ref);
            body.is_some_and(|body| link_insertion::has_placeholder(&body.0))
        });
        if has_link_variable && !is_rendered && matches!(self.group, Some(None)) {
            issues.push(link_insertion::group_required());
        }
    }

    fn check_group(&self, issues: &mut Vec<Issue>) {
        if !matches!(self.group, Some(Some(_))) {
            return;
        }
        if let Some(addressed) = &self.addressed
            && addressed.delivery == DeliveryMode::Shared
            && addressed.to.len() > 1
        {
            issues.push(Issue::new(
                "unsubscribeGroupId",
                "must not be given for a shared message to more than one address: an unsubscribe link belongs to one recipient",
            ));
        }
        if let Some(Some(headers)) = &self.headers {
            let found = headers::issues_of_group(&headers.0).into_iter();
            issues.extend(found.map(|issue| issue.under("headers")));
        }
    }

    /// A webhook event contains the metadata of the message and of the recipient.
    fn check_metadata(&self, issues: &mut Vec<Issue>) {
        let (Some(addressed), Some(of_message)) = (&self.addressed, &self.metadata) else {
            return;
        };
        let mut own = addressed
            .to
            .iter()
            .filter(|to| to.metadata.is_some())
            .peekable();
        if own.peek().is_none() {
            return;
        }
        let bytes = |metadata: &Value| metadata.to_string().len();
        let of_message = of_message.as_ref().map_or(0, |object| bytes(&object.0));
        let is_large = |to: &&DraftRecipient| {
            let own = to.metadata.as_ref().map_or(0, bytes);
            own + of_message > METADATA_BYTES_MAX
        };
        let found = own.filter(is_large).map(|to| {
            let message = format!(
                "must not be larger than {METADATA_BYTES_MAX} bytes, together with that of the message"
            );
            Issue::new(format!("to.{}.metadata", to.index), message)
        });
        issues.extend(found.take(Issue::SHOWN_MAX));
    }

    /// The draft, if no field has a mistake.
    fn into_draft(self) -> Option<Draft> {
        let is_rendered = self.has_variables() || matches!(self.template_id, Some(Some(_)));
        let (template_id, variables) = (self.template_id?, self.variables?);
        let locale = self.locale?;
        let Addressed { to, delivery } = self.addressed?;
        let Schedule {
            scheduled_at,
            expires_at,
        } = self.schedule?;
        Some(Draft {
            to,
            delivery,
            from: self.from?,
            subject: self.subject?,
            html: self.html?.map(|body| body.0),
            text: self.text?.map(|body| body.0),
            template: is_rendered.then(|| TemplateUse {
                template_id: template_id.map(|id| TemplateId(id.0)),
                choice: VersionChoice::Current(locale),
                variables: variables.unwrap_or_default().0,
                is_test_send: false,
            }),
            reply_to: self.reply_to?.map(|given| given.0),
            tags: self.tags?.unwrap_or_default().0,
            class: self.class?.unwrap_or_default(),
            metadata: self.metadata?.map(|object| object.0),
            unsubscribe_group_id: self.group?,
            tracking: self.tracking?.unwrap_or_default(),
            headers: self.headers?.unwrap_or_default().0,
            files: self.attachments?.unwrap_or_default().0,
            attachments: Vec::new(),
            scheduled_at,
            expires_at,
            provider_account_id: self.account?.map(|id| ProviderAccountId(id.0)),
            test_outcome: self.test?,
            claim: None,
        })
    }
}

/// What becomes of the message, if it is a test; `None` for mistakes.
fn simulated(
    test: Option<Option<bool>>,
    test_outcome: Option<Option<SimulatedOutcome>>,
    caller: &Caller,
    issues: &mut Vec<Issue>,
) -> Option<Option<SimulatedOutcome>> {
    let (test, test_outcome) = (test?, test_outcome?);
    if test == Some(false) && caller.is_test() {
        let message = "must not be false: everything that a test key sends is a test";
        issues.push(Issue::new("test", message));
        return None;
    }
    let is_test = test.unwrap_or_else(|| caller.is_test());
    if test_outcome.is_some() && !is_test {
        issues.push(Issue::new(
            "testOutcome",
            "must not be given unless test is true",
        ));
        return None;
    }
    Some(is_test.then(|| test_outcome.unwrap_or_default()))
}

/// The recipients of a message, and who of them gets a mail with whom.
struct Addressed {
    to: Vec<DraftRecipient>,
    delivery: DeliveryMode,
}

type OthersInMail = Mailboxes<SHARED_ADDRESSES_MAX>;

impl Addressed {
    fn of(
        to: Option<Recipients>,
        cc: Option<Option<OthersInMail>>,
        bcc: Option<Option<OthersInMail>>,
        delivery: Option<Option<DeliveryMode>>,
        issues: &mut Vec<Issue>,
    ) -> Option<Self> {
        let (mut to, delivery) = (to?.0.0, delivery?);
        let (cc, bcc) = (cc?.unwrap_or_default().0, bcc?.unwrap_or_default().0);
        let has_others = !cc.is_empty() || !bcc.is_empty();
        if delivery == Some(DeliveryMode::Private) && has_others {
            let message = "must be shared or absent if cc or bcc is given";
            issues.push(Issue::new("delivery", message));
            return None;
        }
        if !has_others && delivery != Some(DeliveryMode::Shared) {
            return Some(Self {
                to,
                delivery: DeliveryMode::Private,
            });
        }
        let others = [(cc, RecipientKind::Cc), (bcc, RecipientKind::Bcc)];
        for (mailboxes, kind) in others {
            to.extend(mailboxes.into_iter().map(|mailbox| DraftRecipient {
                kind,
                ..mailbox.into()
            }));
        }
        let to = draft::distinct(to);
        check_shared(&to, issues);
        Some(Self {
            to,
            delivery: DeliveryMode::Shared,
        })
    }

    fn has_variables(&self) -> bool {
        self.to.iter().any(|to| to.variables.is_some())
    }
}

/// All recipients of a shared message get the same mail.
fn check_shared(to: &[DraftRecipient], issues: &mut Vec<Issue>) {
    if to.len() > SHARED_ADDRESSES_MAX {
        let message = format!(
            "must not have more than {SHARED_ADDRESSES_MAX} addresses, together with cc and bcc, if the message is shared; there are {}",
            to.len()
        );
        issues.push(Issue::new("to", message));
    }
    let with_variables = to.iter().filter(|to| to.variables.is_some());
    let found = with_variables.map(|to| {
        let path = format!("to.{}.variables", to.index);
        let message = "must not be given if the message is shared: all recipients get one mail";
        Issue::new(path, message)
    });
    issues.extend(found.take(Issue::SHOWN_MAX));
}

/// When a message may be sent. The times may be past.
struct Schedule {
    scheduled_at: Option<Timestamp>,
    expires_at: Option<Timestamp>,
}

impl Schedule {
    fn of(
        scheduled_at: Option<Option<FutureTime>>,
        expires_at: Option<Option<FutureTime>>,
        clock: &Clock,
        issues: &mut Vec<Issue>,
    ) -> Option<Self> {
        let (scheduled_at, expires_at) = (scheduled_at?, expires_at?);
        if scheduled_at.is_none() && expires_at.is_none() {
            return Some(Self {
                scheduled_at: None,
                expires_at: None,
            });
        }
        let now = clock.now();
        let mut check = |path, time: Option<FutureTime>| match time?.within_a_year(now) {
            Ok(time) => Some(time),
            Err(rule) => {
                issues.push(Issue::new(path, rule));
                None
            }
        };
        let schedule = Self {
            scheduled_at: check("scheduledAt", scheduled_at),
            expires_at: check("expiresAt", expires_at),
        };
        if let (Some(scheduled_at), Some(expires_at)) = (schedule.scheduled_at, schedule.expires_at)
            && expires_at <= scheduled_at
        {
            issues.push(Issue::new("expiresAt", "must be after scheduledAt"));
        }
        Some(schedule)
    }
}
