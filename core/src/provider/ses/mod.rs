//! Amazon SES, API v2. Sources: the service model in boto/botocore (`sesv2`), called MODEL
//! here, the Amazon SES developer guide (DG), and botocore's parsers for the place of an
//! error's name.
//!
//! SES gets all tags of a message, as `EmailTags` named `waypost_tag_0`, `waypost_tag_1` …,
//! with every character except letters, digits, `_` and `-` replaced by `_` (SES accepts
//! nothing else): enough for statistics at SES, while the message keeps its own tags. Our
//! ids travel as `EmailTags` too; events return them only if a configuration set publishes
//! the events.
//!
//! The error's name classifies a reply, not the status: 400 covers refusals and limits.

mod domain_changes;
mod domains;
mod errors;
mod event_topic;
mod inventory;
mod signing;
mod suppressions;

use serde_json::{Value, json};

use super::call::{CallStep, ProviderCall, ProviderReply};
use super::credentials::{Credentials, UnusableCredentials};
use super::domain::DomainList;
use super::files::placeholder;
use super::identities::blame_named;
use super::inventory::{Inventory, InventoryPage, ListedTemplate, StoredTemplate, StoredWebhook};
use super::kind::ProviderType;
use super::limits::{FileLimits, HeaderLimits, MailLimits};
use super::mail::{MailAttachment, OutgoingMail, Unsendable, header_value};
use super::management::{DomainResult, EventTarget, Registration};
use super::outcome::{CredentialCheck, SendOutcome, unusable_reply};
use super::suppression_list::{ListCursor, ListResult};
use super::{AccountAccess, Adapter, BaseUrl};
use crate::address::Mailbox;
use crate::clock::Timestamp;
use crate::secret::Secret;
use errors::{
    clock_text, error_name, error_text, identity_text, is_access_denied, is_clock_error,
    is_identity_refused,
};
pub use signing::{SigningKey, sign};

/// The service name in signatures (`signingName` in MODEL): not `email`.
const SERVICE: &str = "ses";
/// The longest tag value, in characters (MODEL).
const TAG_CHARS_MAX: usize = 256;
/// The longest encoded mailbox ("Address length is more than 320 bytes long", as SES answers
/// over SMTP; MODEL has no limit).
const ENCODED_MAILBOX_BYTES_MAX: usize = 320;

/// Headers and texts of files are MODEL; recipients and the size DG "Quotas"; the refused
/// types DG "Unsupported attachment types".
const LIMITS: MailLimits = MailLimits {
    recipients_max: 50,
    mail_bytes_max: Some(40_000_000),
    body_bytes_max: None,
    headers: HeaderLimits {
        count_max: Some(15),
        name_bytes_max: Some(126),
        value_bytes_max: Some(995),
        bytes_max: Some(996),
        ..HeaderLimits::NONE
    },
    files: FileLimits {
        refused_extensions: &[
            "ade", "adp", "app", "asp", "bas", "bat", "cer", "chm", "cmd", "com", "cpl", "crt",
            "csh", "der", "exe", "fxp", "gadget", "hlp", "hta", "inf", "ins", "isp", "its", "js",
            "jse", "ksh", "lib", "lnk", "mad", "maf", "mag", "mam", "maq", "mar", "mas", "mat",
            "mau", "mav", "maw", "mda", "mdb", "mde", "mdt", "mdw", "mdz", "msc", "msh", "msh1",
            "msh2", "mshxml", "msh1xml", "msh2xml", "msi", "msp", "mst", "ops", "pcd", "pif",
            "plg", "prf", "prg", "reg", "scf", "scr", "sct", "shb", "shs", "sys", "ps1", "ps1xml",
            "ps2", "ps2xml", "psc1", "psc2", "tmp", "url", "vb", "vbe", "vbs", "vps", "vsmacros",
            "vss", "vst", "vsw", "vxd", "ws", "wsc", "wsf", "wsh", "xnk",
        ],
        name_chars_max: Some(255),
        content_type_chars_max: Some(78),
        content_id_chars_max: Some(78),
        ..FileLimits::NONE
    },
};

/// The SES adapter.
pub(super) struct Ses;

/// The API of one account in one region, at one time: signatures carry the time.
#[derive(Clone)]
struct SesApi {
    base: BaseUrl,
    region: String,
    access_key_id: Secret,
    secret_access_key: Secret,
    session_token: Option<Secret>,
    now: Timestamp,
}

impl SesApi {
    fn of(access: &AccountAccess<'_>) -> Result<Self, UnusableCredentials> {
        let Credentials::Ses {
            access_key_id,
            secret_access_key,
            region,
            session_token,
            configuration_set: _,
        } = access.credentials
        else {
            return Err(UnusableCredentials::OTHER_PROVIDER);
        };
        let region = region.as_str();
        let china = if region.starts_with("cn-") { ".cn" } else { "" };
        let host = format!("email.{region}.amazonaws.com{china}");
        Ok(Self {
            base: access.endpoints.base(ProviderType::Ses, &host),
            region: region.to_owned(),
            access_key_id: access_key_id.clone(),
            secret_access_key: secret_access_key.clone(),
            session_token: session_token.clone(),
            now: access.now,
        })
    }

    /// Signs a call. It must not be changed afterwards.
    fn signed(&self, mut call: ProviderCall) -> Result<ProviderCall, UnusableCredentials> {
        let key = SigningKey {
            access_key_id: &self.access_key_id,
            secret_access_key: &self.secret_access_key,
            session_token: self.session_token.as_ref(),
            region: &self.region,
            service: SERVICE,
        };
        sign(&mut call, &key, self.now)?;
        Ok(call)
    }

    /// A signed `GET` call, continued by `then`.
    fn get<T: From<UnusableCredentials>>(
        &self,
        url: url::Url,
        then: impl FnOnce(ProviderReply) -> CallStep<T> + Send + 'static,
    ) -> CallStep<T> {
        self.call(ProviderCall::get(url), then)
    }

    /// A signed call, continued by `then`.
    fn call<T: From<UnusableCredentials>>(
        &self,
        call: ProviderCall,
        then: impl FnOnce(ProviderReply) -> CallStep<T> + Send + 'static,
    ) -> CallStep<T> {
        match self.signed(call) {
            Ok(call) => CallStep::call(call, then),
            Err(unusable) => CallStep::Done(unusable.into()),
        }
    }
}

impl Adapter for Ses {
    /// `GET /v2/email/account`. `AccessDenied` proves that the key is valid: it may only
    /// send.
    fn check(&self, access: &AccountAccess<'_>) -> CallStep<CredentialCheck> {
        match SesApi::of(access) {
            Ok(api) => {
                let url = api.base.at("/v2/email/account");
                api.get(url, |reply| CallStep::Done(read_check(&reply)))
            }
            Err(unusable) => CallStep::Done(unusable.into()),
        }
    }

    /// `GET /v2/email/identities`, then each domain's record.
    fn domains(&self, access: &AccountAccess<'_>) -> CallStep<DomainList> {
        CallStep::with(SesApi::of(access), domains::list)
    }

    /// `POST /v2/email/outbound-emails` with one recipient: one bad recipient rejects the
    /// whole call (DG).
    fn send(
        &self,
        access: &AccountAccess<'_>,
        mail: &OutgoingMail,
    ) -> Result<ProviderCall, Unsendable> {
        mail.require_sendable()?;
        let api = SesApi::of(access)?;
        let mut body = send_body(mail);
        if let Credentials::Ses {
            configuration_set: Some(name),
            ..
        } = access.credentials
        {
            body["ConfigurationSetName"] = json!(name);
        }
        let url = api.base.at("/v2/email/outbound-emails");
        Ok(api.signed(ProviderCall::post_mail(url, &body, mail))?)
    }

    fn limits(&self) -> &'static MailLimits {
        &LIMITS
    }

    fn read_send(&self, reply: &ProviderReply, now: Timestamp) -> SendOutcome {
        let document = reply.json().unwrap_or_default();
        if let (200..=299, Some(id)) = (reply.status, document["MessageId"].as_str()) {
            return SendOutcome::Accepted {
                provider_message_id: Some(id.to_owned()),
            };
        }
        let Some(name) = error_name(reply, &document).filter(|_| !reply.is_html()) else {
            let text = error_text(reply, &document);
            // Every refusal of SES has a name; a reply without one is not from SES.
            return SendOutcome::common(reply, now, &text, false)
                .unwrap_or_else(|| SendOutcome::unknown(reply, "not a reply to a send"));
        };
        errors::read(&name, reply, now)
    }

    /// The named identities tell whether the sender or the recipient is not verified.
    fn read_send_of(
        &self,
        mail: &OutgoingMail,
        reply: &ProviderReply,
        now: Timestamp,
    ) -> SendOutcome {
        let outcome = self.read_send(reply, now);
        let text = error_text(reply, &reply.json().unwrap_or_default());
        match (mail.recipient, mail.first_to()) {
            (Some(_), Some(to)) => {
                blame_named(outcome, &text, mail.from.address().as_str(), to.as_str())
            }
            _ => outcome,
        }
    }

    fn status_is_proof(&self, _status: u16) -> bool {
        false
    }

    fn add_domain(&self, access: &AccountAccess<'_>, domain: &str) -> CallStep<DomainResult> {
        CallStep::with(SesApi::of(access), |api| {
            domain_changes::add(api, domain.to_owned())
        })
    }

    fn verify_domain(&self, access: &AccountAccess<'_>, domain: &str) -> CallStep<DomainResult> {
        CallStep::with(SesApi::of(access), |api| {
            domain_changes::verify(api, domain.to_owned())
        })
    }

    fn remove_domain(&self, access: &AccountAccess<'_>, domain: &str) -> CallStep<DomainResult> {
        CallStep::with(SesApi::of(access), |api| {
            domain_changes::remove(api, domain.to_owned())
        })
    }

    /// Makes no call; returns the steps for the customer.
    fn register_events(
        &self,
        access: &AccountAccess<'_>,
        target: EventTarget,
    ) -> CallStep<Registration> {
        let configuration_set = match access.credentials {
            Credentials::Ses {
                configuration_set, ..
            } => configuration_set.as_deref(),
            Credentials::Sendgrid { .. }
            | Credentials::Postmark { .. }
            | Credentials::Mailgun { .. }
            | Credentials::Smtp(_) => None,
        };
        CallStep::Done(match SesApi::of(access) {
            Ok(api) => event_topic::steps(&api, configuration_set, &target),
            Err(unusable) => unusable.into(),
        })
    }

    fn suppressions(
        &self,
        access: &AccountAccess<'_>,
        cursor: &ListCursor,
    ) -> CallStep<ListResult> {
        CallStep::with(SesApi::of(access), |api| suppressions::read(&api, cursor))
    }

    fn templates(
        &self,
        access: &AccountAccess<'_>,
        page: Option<&str>,
    ) -> CallStep<Inventory<InventoryPage<ListedTemplate>>> {
        CallStep::with(SesApi::of(access), |api| inventory::templates(&api, page))
    }

    fn template(
        &self,
        access: &AccountAccess<'_>,
        id: &str,
    ) -> CallStep<Inventory<StoredTemplate>> {
        CallStep::with(SesApi::of(access), |api| inventory::template(&api, id))
    }

    fn webhooks(
        &self,
        _access: &AccountAccess<'_>,
    ) -> CallStep<Inventory<InventoryPage<StoredWebhook>>> {
        CallStep::Done(Inventory::NotOffered(inventory::NO_WEBHOOKS))
    }
}

fn send_body(mail: &OutgoingMail) -> Value {
    let part = |text: &str| json!({ "Data": text, "Charset": "UTF-8" });
    let mut body = json!({});
    for (name, text) in [("Text", &mail.text), ("Html", &mail.html)] {
        if let Some(text) = text.as_deref().filter(|text| !text.is_empty()) {
            body[name] = part(text);
        }
    }
    let mut simple = json!({ "Subject": part(&mail.subject), "Body": body });
    if !mail.headers.is_empty() {
        let headers = mail.headers.iter();
        simple["Headers"] = headers
            .map(|(name, value)| json!({ "Name": name, "Value": header_value(value) }))
            .collect();
    }
    if !mail.attachments.is_empty() {
        let files = mail.attachments.iter().enumerate();
        simple["Attachments"] = files.map(|(nth, file)| attachment(nth, file)).collect();
    }
    let mut destination = json!({ "ToAddresses": encoded_mailboxes(&mail.to) });
    for (name, mailboxes) in [("CcAddresses", &mail.cc), ("BccAddresses", &mail.bcc)] {
        if !mailboxes.is_empty() {
            destination[name] = encoded_mailboxes(mailboxes);
        }
    }
    let mut request = json!({
        "FromEmailAddress": encoded_mailbox(&mail.from),
        "Destination": destination,
        "Content": { "Simple": simple },
        "EmailTags": email_tags(mail),
    });
    if !mail.reply_to.is_empty() {
        request["ReplyToAddresses"] = encoded_mailboxes(&mail.reply_to);
    }
    request
}

/// A file. Without an encoding SES would write the bytes as 7-bit text.
fn attachment(nth: usize, file: &MailAttachment) -> Value {
    let mut attachment = json!({
        "RawContent": placeholder(nth),
        "FileName": file.filename,
        "ContentType": file.content_type,
        "ContentDisposition": file.disposition().to_ascii_uppercase(),
        "ContentTransferEncoding": "BASE64",
    });
    if let Some(id) = &file.content_id {
        attachment["ContentId"] = json!(id);
    }
    attachment
}

fn encoded_mailboxes(mailboxes: &[Mailbox]) -> Value {
    mailboxes.iter().map(encoded_mailbox).collect()
}

/// A mailbox in ASCII, without its name if SES would refuse it for its length.
fn encoded_mailbox(mailbox: &Mailbox) -> String {
    let header = mailbox.to_encoded_header();
    if header.len() <= ENCODED_MAILBOX_BYTES_MAX {
        header
    } else {
        mailbox.address().as_str().to_owned()
    }
}

fn email_tags(mail: &OutgoingMail) -> Vec<Value> {
    let ids = mail.correlation().into_iter();
    let ids = ids.map(|(name, id)| (name.to_owned(), id));
    let tags = mail.tags.iter().enumerate();
    let tags = tags.map(|(index, tag)| (format!("waypost_tag_{index}"), tag_value(tag)));
    ids.chain(tags.filter(|(_, value)| !value.is_empty()))
        .map(|(name, value)| json!({ "Name": name, "Value": value }))
        .collect()
}

fn tag_value(tag: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let characters = tag.chars().map(|c| if allowed(c) { c } else { '_' });
    characters.take(TAG_CHARS_MAX).collect()
}

fn read_check(reply: &ProviderReply) -> CredentialCheck {
    let document = reply.json().unwrap_or_default();
    let Some(name) = error_name(reply, &document) else {
        let known = document["SendQuota"].is_object() || document["SendingEnabled"].is_boolean();
        return match unusable_reply(reply) {
            Some(why) => CredentialCheck::undecided(reply, why),
            None if reply.status == 200 && known => CredentialCheck::Valid,
            None => CredentialCheck::undecided(reply, "not a reply of SES"),
        };
    };
    let message = error_text(reply, &document);
    if is_clock_error(&name, &message) {
        CredentialCheck::undecided(reply, &clock_text(&name))
    } else if is_access_denied(&name) {
        CredentialCheck::Valid
    } else if is_identity_refused(&name) {
        CredentialCheck::invalid(reply, &identity_text(&name))
    } else {
        CredentialCheck::undecided(reply, &format!("{name}: {message}"))
    }
}
