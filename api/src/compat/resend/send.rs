//! `POST /emails` and `POST /emails/batch`.

use std::collections::{BTreeMap, BTreeSet};

use poem::Response;
use serde_json::{Value, json};
use waypost_core::acceptance::{Acceptance, IfSuppressed};
use waypost_core::auth::Permission;
use waypost_core::idempotency::StoredAnswer;
use waypost_core::issue::Issue;

use super::{answer, translate};
use crate::compat::Vendor;
use crate::compat::call::{VendorCall, VendorJson};
use crate::compat::paths;
use crate::compat::send::{BatchClaim, accept, accept_each, accept_together};
use crate::compat::templates::NamedTemplates;
use crate::compat::translation::VendorDraft;
use crate::error::Failure;
use crate::middleware::auth::Caller;
use crate::request::body::JsonLimits;
use crate::request::large_text::LargeTexts;

/// The most messages in a batch, as with Resend.
const BATCH_MESSAGES_MAX: usize = 100;
/// The header that says what a mistake in one message of a batch refuses.
const VALIDATION: &str = "x-batch-validation";

/// `POST /emails`
pub(super) async fn send_email(mut call: VendorCall) -> Result<Response, Failure> {
    let caller = call.authorize(Permission::Send)?;
    let VendorJson { value, texts, hash } = call.json(JsonLimits::SEND).await?;
    let mut issues = Vec::new();
    let claim = call
        .key()
        .claim_of(&call.context, &caller, hash, &mut issues);
    let mut messages = [value];
    name_templates(&call, &caller, &mut messages).await?;
    let [value] = messages;
    let draft = match draft(&call, &caller, value, &texts) {
        Ok(draft) if issues.is_empty() => draft,
        Ok(_) => return Err(Failure::Invalid(issues)),
        Err(found) => {
            issues.extend(found);
            return Err(Failure::Invalid(issues));
        }
    };
    let claim = claim.flatten();
    // With Resend too, every accepted message has an id.
    let accepted = accept(&call.context, &caller, claim, draft, IfSuppressed::Refuse).await?;
    Ok(answer(&json!({ "id": id(&accepted) })))
}

/// What a mistake in one message of a batch refuses.
#[derive(Clone, Copy)]
enum BatchValidation {
    /// The batch.
    Strict,
    /// The message.
    Permissive,
}

/// `POST /emails/batch`
pub(super) async fn send_batch(mut call: VendorCall) -> Result<Response, Failure> {
    let caller = call.authorize(Permission::Send)?;
    let VendorJson { value, texts, hash } = call.json(JsonLimits::BATCH).await?;
    let mut issues = Vec::new();
    let claim = call
        .key()
        .claim_of(&call.context, &caller, hash, &mut issues);
    let validation = validation(&call, &mut issues);
    let mut items = items(value, &mut issues);
    if !issues.is_empty() {
        return Err(Failure::Invalid(issues));
    }
    name_templates(&call, &caller, &mut items).await?;
    let drafts = items.into_iter();
    let drafts = drafts.map(|item| draft(&call, &caller, item, &texts));
    let drafts: Vec<Result<VendorDraft, Vec<Issue>>> = drafts.collect();
    let claim = claim.flatten();
    let (claim, body) = match validation {
        BatchValidation::Strict => {
            let drafts = all(drafts).map_err(Failure::Invalid)?;
            let claim = BatchClaim::begin(&call.context, claim).await?;
            let body = strict(&call, &caller, &claim, drafts).await?;
            (claim, body)
        }
        BatchValidation::Permissive => {
            let claim = BatchClaim::begin(&call.context, claim).await?;
            let body = permissive(&call, &caller, &claim, drafts).await?;
            (claim, body)
        }
    };
    let stored = StoredAnswer {
        status: 200,
        body: body.to_string().into_bytes(),
    };
    claim.finish(&stored).await?;
    Ok(answer(&body))
}

/// The drafts, or the mistakes in all of them.
fn all(drafts: Vec<Result<VendorDraft, Vec<Issue>>>) -> Result<Vec<VendorDraft>, Vec<Issue>> {
    let mut issues = Vec::new();
    let mut valid = Vec::with_capacity(drafts.len());
    for (index, draft) in drafts.into_iter().enumerate() {
        match draft {
            Ok(draft) => valid.push(draft),
            Err(found) => {
                let index = index.to_string();
                issues.extend(found.into_iter().map(|issue| issue.under(&index)));
            }
        }
    }
    match issues.is_empty() {
        true => Ok(valid),
        false => Err(issues),
    }
}

async fn strict(
    call: &VendorCall,
    caller: &Caller,
    claim: &BatchClaim<'_>,
    drafts: Vec<VendorDraft>,
) -> Result<Value, Failure> {
    let suppressed = IfSuppressed::Refuse;
    let accepting = accept_together(&call.context, caller, claim, drafts, suppressed);
    let accepted = accepting.await.map_err(|(index, failure)| match index {
        Some(index) => paths::under(&index.to_string(), failure),
        None => failure,
    })?;
    Ok(json!({ "data": ids(&accepted) }))
}

async fn permissive(
    call: &VendorCall,
    caller: &Caller,
    claim: &BatchClaim<'_>,
    drafts: Vec<Result<VendorDraft, Vec<Issue>>>,
) -> Result<Value, Failure> {
    let (mut valid, mut failed) = (BTreeMap::new(), BTreeMap::new());
    for (index, draft) in drafts.into_iter().enumerate() {
        match draft {
            Ok(draft) => {
                valid.insert(index, draft);
            }
            Err(issues) => {
                failed.insert(index, Failure::Invalid(issues));
            }
        }
    }
    let mut accepted = Vec::with_capacity(valid.len());
    for (index, result) in accept_each(&call.context, caller, claim, valid).await? {
        match result {
            Ok(Acceptance::Queued(receipt)) => accepted.push(Acceptance::Queued(receipt)),
            Ok(Acceptance::Suppressed { .. }) => {
                failed.insert(index, Failure::suppressed());
            }
            Err(failure) => {
                failed.insert(index, failure);
            }
        }
    }
    let errors = failed.into_iter();
    let errors =
        errors.map(|(index, failure)| json!({ "index": index, "message": failure.sentence() }));
    let errors: Vec<Value> = errors.collect();
    Ok(json!({ "data": ids(&accepted), "errors": errors }))
}

/// Replaces the ids and aliases of imported templates by the ids of these templates here.
async fn name_templates(
    call: &VendorCall,
    caller: &Caller,
    messages: &mut [Value],
) -> Result<(), Failure> {
    let mut named: Vec<&mut Value> = messages
        .iter_mut()
        .filter_map(|message| message.get_mut("template")?.get_mut("id"))
        .collect();
    let ids = named.iter().filter_map(|id| id.as_str());
    let ids: BTreeSet<String> = ids.map(ToOwned::to_owned).collect();
    let organization_id = caller.organization_id();
    let found = NamedTemplates::find(&call.context, organization_id, Vendor::Resend, ids).await?;
    for id in &mut named {
        if let Some(template) = id.as_str().and_then(|id| found.get(id)) {
            **id = json!(template.0);
        }
    }
    Ok(())
}

fn draft(
    call: &VendorCall,
    caller: &Caller,
    value: Value,
    texts: &LargeTexts,
) -> Result<VendorDraft, Vec<Issue>> {
    let clock = &call.context.clock;
    translate::message(value, clock.now())?.draft(texts, clock, caller)
}

fn validation(call: &VendorCall, issues: &mut Vec<Issue>) -> BatchValidation {
    match call.header(VALIDATION) {
        None | Some("strict") => BatchValidation::Strict,
        Some("permissive") => BatchValidation::Permissive,
        Some(_) => {
            issues.push(Issue::new(VALIDATION, "must be strict or permissive"));
            BatchValidation::Strict
        }
    }
}

/// The messages of a batch.
fn items(value: Value, issues: &mut Vec<Issue>) -> Vec<Value> {
    let Value::Array(items) = value else {
        issues.push(Issue::new("", "must be an array of emails"));
        return Vec::new();
    };
    if items.is_empty() || items.len() > BATCH_MESSAGES_MAX {
        let count = items.len();
        let rule = format!("must have 1 to {BATCH_MESSAGES_MAX} emails; there are {count}");
        issues.push(Issue::new("", rule));
    }
    items
}

fn ids(accepted: &[Acceptance]) -> Vec<Value> {
    let ids = accepted
        .iter()
        .map(|accepted| json!({ "id": id(accepted) }));
    ids.collect()
}

/// The id of an accepted message.
fn id(acceptance: &Acceptance) -> Option<String> {
    match acceptance {
        Acceptance::Queued(receipt) => Some(receipt.message_id.to_string()),
        // Refused before: there would be no id to ask for again.
        Acceptance::Suppressed { .. } => None,
    }
}
