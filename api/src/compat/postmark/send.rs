//! `POST /email`, `/email/batch`, `/email/withTemplate` and `/email/batchWithTemplates`.

use std::collections::{BTreeMap, HashSet};

use chrono::SecondsFormat;
use poem::Response;
use poem::http::StatusCode;
use serde_json::{Value, json};
use waypost_core::acceptance::draft::Draft;
use waypost_core::acceptance::{Acceptance, IfSuppressed, Receipt};
use waypost_core::address::AddressHash;
use waypost_core::auth::Permission;
use waypost_core::db;
use waypost_core::event::{Event, EventType};
use waypost_core::idempotency::StoredAnswer;
use waypost_core::issue::Issue;
use waypost_core::message::{RecipientKind, store};
use waypost_core::page::PageRequest;
use waypost_core::suppression;

use super::answer;
use super::errors::{self, BATCH_RULE, INACTIVE_RECIPIENTS};
use super::translate::{self, Addressees, ContentFrom};
use crate::compat::Vendor;
use crate::compat::call::{VendorCall, VendorJson};
use crate::compat::send::{BatchClaim, accept, accept_each};
use crate::compat::templates::NamedTemplates;
use crate::compat::translation::VendorDraft;
use crate::error::Failure;
use crate::middleware::auth::Caller;
use crate::request::body::JsonLimits;
use crate::request::large_text::LargeTexts;

/// The most messages in a batch, as with Postmark.
const BATCH_MESSAGES_MAX: usize = 500;
const WHY_INACTIVE: &str = "Inactive recipients are ones that have generated a hard bounce, a spam complaint, or a manual suppression.";

/// `POST /email` and `POST /email/withTemplate`
pub(super) async fn send_email(
    mut call: VendorCall,
    content: ContentFrom,
) -> Result<Response, Failure> {
    let caller = call.authorize(Permission::Send)?;
    let VendorJson { value, texts, hash } = call.json(JsonLimits::SEND).await?;
    let mut issues = Vec::new();
    let claim = call
        .key()
        .claim_of(&call.context, &caller, hash, &mut issues);
    let templates = templates(&call, &caller, std::slice::from_ref(&value)).await?;
    let item = TranslatedMessage::of(&call, &caller, value, (&texts, &templates), content);
    let TranslatedMessage { named, draft } = match item {
        Ok(item) if issues.is_empty() => item,
        Ok(_) => return Err(Failure::Invalid(issues)),
        Err(found) => {
            issues.extend(found);
            return Err(Failure::Invalid(issues));
        }
    };
    let accepting = accept(
        &call.context,
        &caller,
        claim.flatten(),
        draft,
        IfSuppressed::Drop,
    );
    let accepted = accepting.await?;
    let body = named.answer(&call, &caller, &accepted).await?;
    let mut response = answer(&body);
    if let Acceptance::Suppressed { .. } = accepted {
        response.set_status(StatusCode::UNPROCESSABLE_ENTITY);
    }
    Ok(response)
}

/// `POST /email/batch` and `POST /email/batchWithTemplates`
pub(super) async fn send_batch(
    mut call: VendorCall,
    content: ContentFrom,
) -> Result<Response, Failure> {
    let caller = call.authorize(Permission::Send)?;
    let VendorJson { value, texts, hash } = call.json(JsonLimits::BATCH).await?;
    let mut issues = Vec::new();
    let claim = call
        .key()
        .claim_of(&call.context, &caller, hash, &mut issues);
    let items = items(value, content, &mut issues);
    if !issues.is_empty() {
        return Err(Failure::Invalid(issues));
    }
    let templates = templates(&call, &caller, &items).await?;
    let (mut named, mut drafts, mut answers) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for (index, item) in items.into_iter().enumerate() {
        match TranslatedMessage::of(&call, &caller, item, (&texts, &templates), content) {
            Ok(item) => {
                named.insert(index, item.named);
                drafts.insert(index, item.draft);
            }
            Err(found) => {
                answers.insert(index, errors::entry(&Failure::Invalid(found)));
            }
        }
    }
    let claim = BatchClaim::begin(&call.context, claim.flatten()).await?;
    let results = accept_each(&call.context, &caller, &claim, drafts).await?;
    for (index, result) in results {
        let answer = match (result, named.get(&index)) {
            (Ok(accepted), Some(named)) => named.answer(&call, &caller, &accepted).await?,
            (Err(failure), _) => errors::entry(&failure),
            (Ok(_), None) => continue,
        };
        answers.insert(index, answer);
    }
    let body = Value::Array(answers.into_values().collect());
    let stored = StoredAnswer {
        status: StatusCode::OK.as_u16(),
        body: body.to_string().into_bytes(),
    };
    claim.finish(&stored).await?;
    Ok(answer(&body))
}

/// The messages of a batch.
fn items(value: Value, content: ContentFrom, issues: &mut Vec<Issue>) -> Vec<Value> {
    let (path, list) = match (content, value) {
        (ContentFrom::Bodies, list) => ("", Some(list)),
        (ContentFrom::Template, Value::Object(mut members)) => {
            let list = members.remove("Messages");
            let left = members.keys();
            let rule = "is not a known field; a batch has Messages";
            issues.extend(
                left.take(Issue::SHOWN_MAX)
                    .map(|name| Issue::new(name, rule)),
            );
            ("Messages", list)
        }
        (
            ContentFrom::Template,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_),
        ) => ("", None),
    };
    match list {
        Some(Value::Array(items)) => {
            if items.is_empty() || items.len() > BATCH_MESSAGES_MAX {
                let count = items.len();
                issues.push(Issue::new(path, format!("{BATCH_RULE}; there are {count}")));
            }
            items
        }
        Some(_) | None => {
            let rule = match content {
                ContentFrom::Bodies => "must be an array of messages",
                ContentFrom::Template => "must be an object with an array of messages, Messages",
            };
            issues.push(Issue::new("", rule));
            Vec::new()
        }
    }
}

/// The templates that the messages name.
async fn templates(
    call: &VendorCall,
    caller: &Caller,
    messages: &[Value],
) -> Result<NamedTemplates, Failure> {
    let ids = translate::template_ids(messages.iter());
    let organization_id = caller.organization_id();
    let finding = NamedTemplates::find(&call.context, organization_id, Vendor::Postmark, ids);
    Ok(finding.await?)
}

/// A message that can be accepted.
struct TranslatedMessage {
    named: Named,
    draft: VendorDraft,
}

/// Whom a message names.
struct Named {
    addressees: Addressees,
    /// The addresses, in lower case, and where they stand.
    recipients: Vec<(String, AddressHash, RecipientKind)>,
}

impl TranslatedMessage {
    fn of(
        call: &VendorCall,
        caller: &Caller,
        value: Value,
        (texts, templates): (&LargeTexts, &NamedTemplates),
        content: ContentFrom,
    ) -> Result<Self, Vec<Issue>> {
        let addressees = Addressees::of(&value);
        let message = translate::message(value, content, templates)?;
        let draft = message.draft(texts, &call.context.clock, caller)?;
        Ok(Self {
            named: Named {
                addressees,
                recipients: recipients(&draft.draft),
            },
            draft,
        })
    }
}

fn recipients(draft: &Draft) -> Vec<(String, AddressHash, RecipientKind)> {
    let recipients = draft.to.iter().map(|recipient| {
        let address = recipient.mailbox.address();
        let text = address.as_str().to_ascii_lowercase();
        (text, address.hash(), recipient.kind)
    });
    recipients.collect()
}

impl Named {
    /// What Postmark answers to the message.
    async fn answer(
        &self,
        call: &VendorCall,
        caller: &Caller,
        accepted: &Acceptance,
    ) -> Result<Value, Failure> {
        let receipt = match accepted {
            Acceptance::Queued(receipt) => receipt,
            Acceptance::Suppressed { .. } => {
                let to = self.recipients.iter();
                let to = to.filter(|(_, _, kind)| *kind == RecipientKind::To);
                let inactive = listed(to.map(|(address, ..)| address.as_str()));
                let message = format!(
                    "You tried to send to recipient(s) that have been marked as inactive. Found inactive addresses: {inactive}. {WHY_INACTIVE}"
                );
                return Ok(errors::body(INACTIVE_RECIPIENTS, &message));
            }
        };
        let message = match receipt.suppressed_count {
            0 => "OK".to_owned(),
            _ => {
                let inactive = self.inactive(call, caller, receipt).await?;
                format!(
                    "Message OK, but will not deliver to these inactive addresses: {inactive}. {WHY_INACTIVE}"
                )
            }
        };
        let now = call.context.clock.now();
        let Addressees { to, cc, bcc } = &self.addressees;
        let mut body = json!({
            "To": to,
            "SubmittedAt": now.to_rfc3339_opts(SecondsFormat::Micros, false),
            "MessageID": receipt.message_id.to_string(),
            "ErrorCode": 0,
            "Message": message,
        });
        for (name, value) in [("Cc", cc), ("Bcc", bcc)] {
            if let Some(value) = value {
                body[name] = json!(value);
            }
        }
        Ok(body)
    }

    /// The addresses that the message is not sent to.
    async fn inactive(
        &self,
        call: &VendorCall,
        caller: &Caller,
        receipt: &Receipt,
    ) -> Result<String, Failure> {
        // A message of Postmark has fewer.
        let page = PageRequest::new(1, PageRequest::LIMIT_MAX).expect("within its limits");
        let mut connection = db::snapshot(&call.context.pool, "list recipients").await?;
        let organization_id = caller.organization_id();
        let listing =
            store::list_recipients(&mut connection, organization_id, receipt.message_id, page);
        let rows = listing.await?.map(|page| page.rows).unwrap_or_default();
        let is_dropped = |event: &Event| {
            event.event_type == EventType::Dropped
                && event.reason.as_deref() == Some(suppression::REASON)
        };
        let dropped = rows.iter().filter(|row| row.events.iter().any(is_dropped));
        let dropped: HashSet<AddressHash> = dropped.map(|row| row.address_hash).collect();
        let inactive = self.recipients.iter();
        let inactive = inactive.filter(|(_, hash, _)| dropped.contains(hash));
        Ok(listed(inactive.map(|(address, ..)| address.as_str())))
    }
}

fn listed<'a>(addresses: impl Iterator<Item = &'a str>) -> String {
    addresses.collect::<Vec<_>>().join(", ")
}
