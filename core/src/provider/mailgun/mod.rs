//! Mailgun. Sources: Mailgun's OpenAPI document (mailgun/mailgun-mcp-server), its
//! older documentation (mailgun/documentation), its Go client, and what
//! django-anymail observed.
//!
//! Mailgun gets the first three tags (its documented limit of 2024), in ASCII and cut to
//! 128 characters. Our ids travel as `v:` variables; the headers that would show them and
//! the tags to the recipient are suppressed.
//!
//! The domain of the credentials is the sending domain and the only one that this adapter
//! lists; `From` may use another. The records for receiving mail are left out: Waypost
//! only sends.

mod batch;
mod domain_changes;
mod event_webhook;
mod inventory;
mod lookup;
mod suppressions;

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::{HeaderValue, header};
use serde_json::Value;

use super::batch::Batching;
use super::call::{CallStep, ProviderCall, ProviderReply};
use super::credentials::{Credentials, MailgunRegion, UnusableCredentials};
use super::domain::{
    DnsPurpose, DnsRecord, DnsRecordType, DnsStatus, DomainList, DomainState, FoundDomain,
    add_domain,
};
use super::inventory::{Inventory, InventoryPage, ListedTemplate, StoredTemplate, StoredWebhook};
use super::kind::ProviderType;
use super::limits::{FileLimits, HeaderLimits, MailLimits};
use super::lookup::{LookupResult, MessageQuery};
use super::mail::{OutgoingMail, Unsendable, encoded_mailbox_list, header_value, mailbox_list};
use super::management::{DomainResult, EventTarget, Registration};
use super::outcome::{AccountTrouble, Blame, CredentialCheck, SendOutcome, unusable_reply};
use super::retry_after::wait_in_text;
use super::suppression_list::{ListCursor, ListResult};
use super::{AccountAccess, Adapter, BaseUrl};
use crate::clock::Timestamp;
use crate::http::FormFile;
use crate::secret::ExposeSecret;

/// The most tags of one mail.
const TAGS_MAX: usize = 3;
/// The longest tag, in bytes.
const TAG_BYTES_MAX: usize = 128;
/// Mailgun's reply, with 200, on unknown paths.
const WRONG_PATH: &str = "Mailgun Magnificent API";

/// The count and the 16 KB of `o:`, `h:`, `v:` and `t:` are from the OpenAPI document, less
/// what tags and ids take; the size is from the older documentation. The vendor does not
/// say that an `h:` name may repeat.
const LIMITS: MailLimits = MailLimits {
    recipients_max: 1_000,
    mail_bytes_max: Some(25_000_000),
    body_bytes_max: None,
    headers: HeaderLimits {
        total_bytes_max: Some(15_000),
        may_repeat: false,
        ..HeaderLimits::NONE
    },
    files: FileLimits::NONE,
};

/// The Mailgun adapter.
pub(super) struct Mailgun;

#[derive(Clone)]
struct MailgunApi {
    base: BaseUrl,
    authorization: HeaderValue,
    domain: String,
    region: MailgunRegion,
}

impl MailgunApi {
    fn of(access: &AccountAccess<'_>) -> Result<Self, UnusableCredentials> {
        let Credentials::Mailgun {
            api_key,
            domain,
            region,
        } = access.credentials
        else {
            return Err(UnusableCredentials::OTHER_PROVIDER);
        };
        let host = match region {
            MailgunRegion::Us => "api.mailgun.net",
            MailgunRegion::Eu => "api.eu.mailgun.net",
        };
        let pair = BASE64.encode(format!("api:{}", api_key.expose_secret()));
        let mut authorization = HeaderValue::from_str(&format!("Basic {pair}"))
            .map_err(|_| UnusableCredentials("the API key does not fit into a header"))?;
        authorization.set_sensitive(true);
        Ok(Self {
            base: access.endpoints.base(ProviderType::Mailgun, host),
            authorization,
            domain: domain.clone(),
            region: *region,
        })
    }

    /// `GET /v4/domains/{domain}`: proves key, domain and region at once.
    fn get_domain(&self) -> ProviderCall {
        let url = self.base.at(&format!("/v4/domains/{}", self.domain));
        ProviderCall::get(url).with(header::AUTHORIZATION, self.authorization.clone())
    }

    /// `POST /v3/{domain}/messages`. Forms must be multipart: others get a 400.
    fn post_message(&self, fields: Vec<(String, String)>, files: Vec<FormFile>) -> ProviderCall {
        let url = self.base.at(&format!("/v3/{}/messages", self.domain));
        let call = ProviderCall::post_files(url, fields, files);
        call.with(header::AUTHORIZATION, self.authorization.clone())
    }

    fn not_found(&self, reply: &ProviderReply) -> CredentialCheck {
        let (domain, region) = (&self.domain, self.region.as_str());
        let text = format!("the domain {domain} is unknown in the region {region}");
        CredentialCheck::invalid(reply, &text)
    }
}

impl Adapter for Mailgun {
    /// Reads the domain's record. If the key may not read it (a domain's sending key), a
    /// second call sends in test mode without a recipient: a 400 about the parameters shows
    /// that the key is valid. The second call is inferred from the key's description; the
    /// vendor does not document it.
    fn check(&self, access: &AccountAccess<'_>) -> CallStep<CredentialCheck> {
        let api = match MailgunApi::of(access) {
            Ok(api) => api,
            Err(unusable) => return CallStep::Done(unusable.into()),
        };
        CallStep::call(api.get_domain(), move |reply| {
            if let Some(why) = unusable_reply(&reply) {
                return CallStep::Done(CredentialCheck::undecided(&reply, why));
            }
            match reply.status {
                200 if reply
                    .json()
                    .is_some_and(|record| record["domain"].is_object()) =>
                {
                    CallStep::Done(CredentialCheck::Valid)
                }
                401 | 403 => probe_sending(api),
                404 => CallStep::Done(api.not_found(&reply)),
                _ => CallStep::Done(CredentialCheck::undecided(&reply, &error_text(&reply))),
            }
        })
    }

    /// The domain of the credentials.
    fn domains(&self, access: &AccountAccess<'_>) -> CallStep<DomainList> {
        match MailgunApi::of(access) {
            Ok(api) => CallStep::call(api.get_domain(), |reply| {
                CallStep::Done(read_domains(&reply))
            }),
            Err(unusable) => CallStep::Done(unusable.into()),
        }
    }

    /// `POST /v3/{domain}/messages` with one recipient: one invalid address would fail the
    /// whole call.
    fn send(
        &self,
        access: &AccountAccess<'_>,
        mail: &OutgoingMail,
    ) -> Result<ProviderCall, Unsendable> {
        mail.require_sendable()?;
        Ok(MailgunApi::of(access)?.post_message(send_fields(mail), files(mail)))
    }

    fn limits(&self) -> &'static MailLimits {
        &LIMITS
    }

    fn read_send(&self, reply: &ProviderReply, now: Timestamp) -> SendOutcome {
        let text = error_text(reply);
        if reply.status == 200 && text.contains(WRONG_PATH) {
            let why = "the base URL is wrong: Mailgun answered with its page for unknown paths";
            return SendOutcome::refused(None, reply, now, why);
        }
        let outcome = match SendOutcome::common(reply, now, &text, is_api_reply(reply)) {
            Some(outcome) => outcome,
            None if reply.status < 300 => message_id(reply).map_or_else(
                || SendOutcome::unknown(reply, "not a reply to a send"),
                |id| SendOutcome::Accepted {
                    provider_message_id: Some(id),
                },
            ),
            None => read_refusal(reply, now, &text),
        };
        with_wait_in_text(outcome, &text, now)
    }

    /// Mailgun answers 200 on unknown paths too: the body decides.
    fn status_is_proof(&self, _status: u16) -> bool {
        false
    }

    fn batching(&self) -> Option<&dyn Batching> {
        Some(self)
    }

    fn add_domain(&self, access: &AccountAccess<'_>, domain: &str) -> CallStep<DomainResult> {
        CallStep::with(MailgunApi::of(access), |api| {
            domain_changes::add(api, domain.to_owned())
        })
    }

    fn verify_domain(&self, access: &AccountAccess<'_>, domain: &str) -> CallStep<DomainResult> {
        CallStep::with(MailgunApi::of(access), |api| {
            domain_changes::verify(&api, domain)
        })
    }

    fn remove_domain(&self, access: &AccountAccess<'_>, domain: &str) -> CallStep<DomainResult> {
        CallStep::with(MailgunApi::of(access), |api| {
            domain_changes::remove(&api, domain)
        })
    }

    fn register_events(
        &self,
        access: &AccountAccess<'_>,
        target: EventTarget,
    ) -> CallStep<Registration> {
        CallStep::with(MailgunApi::of(access), |api| {
            event_webhook::register(api, target)
        })
    }

    fn look_up(&self, access: &AccountAccess<'_>, query: &MessageQuery) -> CallStep<LookupResult> {
        CallStep::with(MailgunApi::of(access), |api| {
            lookup::look_up(api, query, access.now)
        })
    }

    fn suppressions(
        &self,
        access: &AccountAccess<'_>,
        cursor: &ListCursor,
    ) -> CallStep<ListResult> {
        CallStep::with(MailgunApi::of(access), |api| {
            suppressions::read(&api, cursor)
        })
    }

    fn templates(
        &self,
        access: &AccountAccess<'_>,
        page: Option<&str>,
    ) -> CallStep<Inventory<InventoryPage<ListedTemplate>>> {
        CallStep::with(MailgunApi::of(access), |api| {
            inventory::templates(&api, page, access.now)
        })
    }

    fn template(
        &self,
        access: &AccountAccess<'_>,
        id: &str,
    ) -> CallStep<Inventory<StoredTemplate>> {
        CallStep::with(MailgunApi::of(access), |api| {
            inventory::template(&api, id, access.now)
        })
    }

    fn webhooks(
        &self,
        access: &AccountAccess<'_>,
    ) -> CallStep<Inventory<InventoryPage<StoredWebhook>>> {
        CallStep::with(MailgunApi::of(access), |api| {
            inventory::webhooks(&api, access.now)
        })
    }
}

fn probe_sending(api: MailgunApi) -> CallStep<CredentialCheck> {
    let call = api.post_message(vec![field("o:testmode", "yes")], Vec::new());
    CallStep::call(call, move |reply| {
        if let Some(why) = unusable_reply(&reply) {
            return CallStep::Done(CredentialCheck::undecided(&reply, why));
        }
        CallStep::Done(match reply.status {
            400 => CredentialCheck::Valid,
            401 | 403 => CredentialCheck::invalid(&reply, "the API key was refused"),
            404 => api.not_found(&reply),
            _ => CredentialCheck::undecided(&reply, &error_text(&reply)),
        })
    })
}

fn field(name: &str, value: impl Into<String>) -> (String, String) {
    (name.to_owned(), value.into())
}

fn send_fields(mail: &OutgoingMail) -> Vec<(String, String)> {
    let mut fields = vec![
        field("from", mail.from.to_header()),
        field("to", mailbox_list(&mail.to)),
        field("subject", &mail.subject),
    ];
    for (name, mailboxes) in [("cc", &mail.cc), ("bcc", &mail.bcc)] {
        if !mailboxes.is_empty() {
            fields.push(field(name, mailbox_list(mailboxes)));
        }
    }
    let bodies = [("text", &mail.text), ("html", &mail.html)];
    for (name, body) in bodies {
        if let Some(body) = body.as_deref().filter(|body| !body.is_empty()) {
            fields.push(field(name, body));
        }
    }
    if !mail.reply_to.is_empty() {
        fields.push(field("h:Reply-To", encoded_mailbox_list(&mail.reply_to)));
    }
    for (name, value) in &mail.headers {
        fields.push(field(&format!("h:{name}"), header_value(value)));
    }
    for tag in tags(&mail.tags) {
        fields.push(field("o:tag", tag));
    }
    for (name, id) in mail.correlation() {
        fields.push(field(&format!("v:{name}"), id));
    }
    // Not "all": Mailgun needs X-Mailgun-Sid to assign complaints.
    fields.push(field(
        "o:suppress-headers",
        "X-Mailgun-Variables,X-Mailgun-Tag",
    ));
    for name in ["o:tracking", "o:tracking-opens", "o:tracking-clicks"] {
        fields.push(field(name, "no"));
    }
    fields
}

/// The files as parts of the form. Mailgun knows an inline file by its file name alone, and
/// the HTML body shows it by that (`user_manual.rst`): so its content id is its name.
fn files(mail: &OutgoingMail) -> Vec<FormFile> {
    let files = mail.attachments.iter().map(|file| {
        let (name, filename) = match &file.content_id {
            Some(id) => ("inline", id),
            None => ("attachment", &file.filename),
        };
        FormFile {
            name,
            filename: filename.clone(),
            content_type: file.content_type.clone(),
            content: file.content.clone(),
        }
    });
    files.collect()
}

/// The tags in the form that Mailgun accepts. Tags that become equal are sent once; the
/// message's own tags are not changed.
fn tags(tags: &[String]) -> Vec<String> {
    let mut taken: Vec<String> = Vec::with_capacity(TAGS_MAX);
    for tag in tags {
        let ascii = tag.chars().map(|c| {
            if c.is_ascii_graphic() || c == ' ' {
                c
            } else {
                '_'
            }
        });
        let tag: String = ascii.take(TAG_BYTES_MAX).collect();
        if taken.len() < TAGS_MAX && !tag.is_empty() && !taken.contains(&tag) {
            taken.push(tag);
        }
    }
    taken
}

/// The `id` without its angle brackets, as in the events.
fn message_id(reply: &ProviderReply) -> Option<String> {
    let document = reply.json()?;
    let id = document["id"].as_str()?.trim();
    let bare = id
        .strip_prefix('<')
        .and_then(|id| id.strip_suffix('>'))
        .unwrap_or(id);
    (!bare.is_empty()).then(|| bare.to_owned())
}

/// Replies about limits may name the wait in the text only: "try again after 120 seconds",
/// or a mail date. A header takes precedence.
fn with_wait_in_text(mut outcome: SendOutcome, text: &str, now: Timestamp) -> SendOutcome {
    match &mut outcome {
        SendOutcome::Throttled { retry_after, .. }
        | SendOutcome::AccountUnusable { retry_after, .. }
        | SendOutcome::Unavailable { retry_after, .. } => {
            *retry_after = with_wait(*retry_after, text, now);
        }
        SendOutcome::Accepted { .. }
        | SendOutcome::Rejected { .. }
        | SendOutcome::Deferred { .. }
        | SendOutcome::Unknown { .. } => {}
    }
    outcome
}

/// The wait of a header, else that of the text.
fn with_wait(named: Option<Duration>, text: &str, now: Timestamp) -> Option<Duration> {
    named.or_else(|| wait_in_text(text, now))
}

/// Whether the API itself replied: `{"message"}`, a JSON string, or the plain word of a 401
/// or 403.
fn is_api_reply(reply: &ProviderReply) -> bool {
    match reply.json() {
        Some(document) => document["message"].is_string() || document.is_string(),
        None => matches!(reply.status, 401 | 403) && reply.text() == "Forbidden",
    }
}

/// Classifies a refusal by its wording, then by its status. A limit of the account has the
/// status 420 or 429, or another one with the words of a limit: "You've reached the
/// message limit you set on account" (github.com/glotcode/glot/issues/59).
fn read_refusal(reply: &ProviderReply, now: Timestamp, text: &str) -> SendOutcome {
    if wait_in_text(text, now).is_some() {
        return SendOutcome::throttled(reply, now, text);
    }
    if is_about_limit(text) {
        return SendOutcome::account_unusable(AccountTrouble::Temporary, reply, now, text);
    }
    let blame = match reply.status {
        _ if is_about_test_account(text) => Some(Blame::Recipient),
        400 => blame_for_parameter(text),
        402 if text.to_ascii_lowercase().contains("payment") => None,
        402 => Some(Blame::Message),
        _ => None,
    };
    SendOutcome::refused(blame, reply, now, text)
}

/// Whether a test account or the sandbox may not write to this recipient: "Free accounts
/// are for test purposes only. Please upgrade or add the address to authorized recipients
/// in Account Settings." It may write to others.
fn is_about_test_account(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    text.contains("test purposes only") || text.contains("authorized recipients")
}

/// Whether a refusal is about a limit that the account reached.
fn is_about_limit(text: &str) -> bool {
    const WORDS: [&str; 6] = [
        "limit exceeded",
        "message limit",
        "sending limit",
        "limit reached",
        "quota",
        "temporarily",
    ];
    let text = text.to_ascii_lowercase();
    WORDS.iter().any(|words| text.contains(words))
}

/// What a 400 is about, by its wording ("Domain X is not allowed to send: …", "'to'
/// parameter is not a valid address", "from parameter is missing").
fn blame_for_parameter(text: &str) -> Option<Blame> {
    let text = text.to_ascii_lowercase();
    let mentions = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if mentions(&[
        "not allowed to send",
        "not activated",
        "disabled",
        "suspended",
        "activate your",
    ]) {
        None
    } else if mentions(&["'to' parameter", "to parameter", "recipient address"]) {
        Some(Blame::Recipient)
    } else if mentions(&["'from' parameter", "from parameter"]) {
        Some(Blame::Sender)
    } else {
        Some(Blame::Message)
    }
}

fn read_domains(reply: &ProviderReply) -> DomainList {
    if let Some(why) = unusable_reply(reply) {
        return DomainList::undecided(reply, why);
    }
    let record = reply.json().filter(|record| record["domain"].is_object());
    match (reply.status, record.as_ref().and_then(read_domain)) {
        (200, Some(domain)) => {
            let mut found = Vec::with_capacity(1);
            add_domain(&mut found, domain);
            DomainList::Visible(found)
        }
        (401 | 403, _) => {
            DomainList::not_visible(reply, "the API key may not read the domain's record")
        }
        _ => DomainList::undecided(reply, &error_text(reply)),
    }
}

/// `state` is active, unverified or disabled; only an active domain sends.
fn read_domain(record: &Value) -> Option<FoundDomain> {
    let domain = &record["domain"];
    let state = match domain["state"].as_str() {
        _ if domain["is_disabled"] == true => DomainState::Unverified,
        Some("active") => DomainState::Verified,
        Some("unverified" | "disabled") => DomainState::Unverified,
        _ => DomainState::Unknown,
    };
    let name = domain["name"].as_str()?;
    let records = record["sending_dns_records"].as_array();
    let records = records.into_iter().flatten();
    Some(FoundDomain {
        domain: name.to_owned(),
        state,
        dns_records: records
            .filter_map(|record| read_record(record, name))
            .collect(),
    })
}

/// Only the value `valid` is documented as verified; every other one is pending.
fn read_record(record: &Value, domain: &str) -> Option<DnsRecord> {
    let record_type = DnsRecordType::from_name(record["record_type"].as_str()?)?;
    let name = record["name"].as_str().unwrap_or(domain);
    let value = record["value"].as_str()?;
    let purpose = match record_type {
        _ if name.contains("._domainkey.") => DnsPurpose::Dkim,
        _ if name.starts_with("_dmarc.") => DnsPurpose::Dmarc,
        DnsRecordType::Txt if value.starts_with("v=spf1") => DnsPurpose::Spf,
        DnsRecordType::Txt => DnsPurpose::Ownership,
        DnsRecordType::Cname => DnsPurpose::Tracking,
        DnsRecordType::Mx => DnsPurpose::ReturnPath,
    };
    Some(DnsRecord {
        record_type,
        name: name.to_owned(),
        value: value.to_owned(),
        priority: record["priority"]
            .as_str()
            .and_then(|text| text.parse().ok()),
        purpose,
        status: DnsStatus::from_valid(record["valid"] == "valid"),
    })
}

/// `{"message"}` mostly; "Forbidden" as plain text or as a JSON string on 401.
fn error_text(reply: &ProviderReply) -> String {
    let document = reply.json().unwrap_or_default();
    let message = document["message"].as_str().or_else(|| document.as_str());
    match message {
        Some(message) => message.to_owned(),
        None if reply.is_html() && reply.status != 200 => String::new(),
        None => reply.text(),
    }
}
