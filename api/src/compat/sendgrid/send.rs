//! `POST /v3/mail/send`.

use poem::Response;
use poem::http::StatusCode;
use serde_json::Value;
use waypost_core::acceptance::{Acceptance, IfSuppressed};
use waypost_core::auth::Permission;
use waypost_core::idempotency::{KeyClaim, StoredAnswer};
use waypost_core::issue::Issue;
use waypost_core::template::TemplateRefusal;

use super::translate::{self, Mail, MailTemplate};
use crate::compat::Vendor;
use crate::compat::call::{VendorCall, VendorJson};
use crate::compat::send::{BatchClaim, accept, accept_together};
use crate::compat::templates::NamedTemplates;
use crate::compat::translation::{Translation, VendorDraft};
use crate::error::Failure;
use crate::middleware::auth::Caller;
use crate::request::body::JsonLimits;
use crate::request::large_text::LargeTexts;

/// The response header with the id of the message.
const MESSAGE_ID: &str = "X-Message-Id";
/// The request header that names a subuser, which Waypost has not.
const SUBUSER: &str = "On-Behalf-Of";

/// `POST /v3/mail/send`
pub(super) async fn send_mail(mut call: VendorCall) -> Result<Response, Failure> {
    let caller = call.authorize(Permission::Send)?;
    let VendorJson { value, texts, hash } = call.json(JsonLimits::SEND).await?;
    let mut issues = Vec::new();
    if call.header(SUBUSER).is_some() {
        let rule = "is not supported: use an API key of the organization";
        issues.push(Issue::new(SUBUSER, rule));
    }
    let claim = call
        .key()
        .claim_of(&call.context, &caller, hash, &mut issues);
    let template = template(&call, &caller, &value).await?;
    let now = call.context.clock.now();
    let mail = translate::mail(value, template, now).map_err(|mut found| {
        found.append(&mut issues);
        Failure::Invalid(found)
    })?;
    let Mail {
        messages,
        is_sandbox,
    } = mail;
    let drafts = drafts(&call, &caller, messages, &texts);
    let drafts = match drafts {
        Ok(drafts) if issues.is_empty() => drafts,
        Ok(_) => return Err(Failure::Invalid(issues)),
        Err(found) => {
            issues.extend(found);
            return Err(Failure::Invalid(issues));
        }
    };
    let status = match is_sandbox {
        true => StatusCode::OK,
        false => StatusCode::ACCEPTED,
    };
    accepted(&call, &caller, claim.flatten(), drafts, status).await
}

/// Accepts the drafts, all or none.
async fn accepted(
    call: &VendorCall,
    caller: &Caller,
    claim: Option<KeyClaim>,
    mut drafts: Vec<VendorDraft>,
    status: StatusCode,
) -> Result<Response, Failure> {
    // With SendGrid too, a suppressed address is no error.
    let suppressed = IfSuppressed::Drop;
    if drafts.len() == 1
        && let Some(draft) = drafts.pop()
    {
        let accepted = accept(&call.context, caller, claim, draft, suppressed).await?;
        return Ok(answer(status, id(&accepted)));
    }
    let claim = match BatchClaim::begin(&call.context, claim).await {
        Ok(claim) => claim,
        Err(Failure::Repeated(stored)) => return Ok(repeated(&stored, status)),
        Err(failure) => return Err(failure),
    };
    let accepting = accept_together(&call.context, caller, &claim, drafts, suppressed);
    let accepted = accepting.await.map_err(|(_, failure)| failure)?;
    let id = accepted.iter().find_map(id);
    let stored = StoredAnswer {
        status: status.as_u16(),
        body: id.clone().unwrap_or_default().into_bytes(),
    };
    match claim.finish(&stored).await {
        Ok(()) => Ok(answer(status, id)),
        Err(Failure::Repeated(stored)) => Ok(repeated(&stored, status)),
        Err(failure) => Err(failure),
    }
}

/// The template that the request names.
async fn template(
    call: &VendorCall,
    caller: &Caller,
    value: &Value,
) -> Result<MailTemplate, Failure> {
    let Some(name) = value.get("template_id").and_then(Value::as_str) else {
        return Ok(MailTemplate::Unknown);
    };
    let organization_id = caller.organization_id();
    let ids = [name.to_owned()].into();
    let named = NamedTemplates::find(&call.context, organization_id, Vendor::Sendgrid, ids).await?;
    let Some(id) = named.get(name) else {
        return Ok(MailTemplate::Unknown);
    };
    match call
        .context
        .templates
        .has_subject(organization_id, id)
        .await
    {
        Ok(has_subject) => Ok(MailTemplate::Known { id, has_subject }),
        Err(TemplateRefusal::NotFound) => Ok(MailTemplate::Unknown),
        Err(TemplateRefusal::Fault(fault)) => Err(fault.into()),
        // Acceptance says why.
        Err(
            TemplateRefusal::VersionNotFound
            | TemplateRefusal::WithoutVersion
            | TemplateRefusal::Invalid(_)
            | TemplateRefusal::Unrenderable(_)
            | TemplateRefusal::IsPart
            | TemplateRefusal::UnknownLayout
            | TemplateRefusal::NameTaken
            | TemplateRefusal::InUse
            | TemplateRefusal::TooManyUses
            | TemplateRefusal::NotComposable { .. },
        ) => Ok(MailTemplate::Known {
            id,
            has_subject: true,
        }),
    }
}

/// The drafts, or the mistakes in them, each once.
fn drafts(
    call: &VendorCall,
    caller: &Caller,
    messages: Vec<Translation>,
    texts: &LargeTexts,
) -> Result<Vec<VendorDraft>, Vec<Issue>> {
    let mut drafts: Vec<VendorDraft> = Vec::with_capacity(messages.len());
    let mut issues: Vec<Issue> = Vec::new();
    for message in messages {
        match message.draft(texts, &call.context.clock, caller) {
            Ok(mut draft) => {
                if let Some(first) = drafts.first() {
                    draft.draft.files.clone_from(&first.draft.files);
                }
                drafts.push(draft);
            }
            Err(found) => {
                for issue in found {
                    if issues.len() <= Issue::SHOWN_MAX && !issues.contains(&issue) {
                        issues.push(issue);
                    }
                }
            }
        }
    }
    match issues.is_empty() {
        true => Ok(drafts),
        false => Err(issues),
    }
}

/// The id of an accepted message; without one, all its recipients are suppressed.
fn id(acceptance: &Acceptance) -> Option<String> {
    match acceptance {
        Acceptance::Queued(receipt) => Some(receipt.message_id.to_string()),
        Acceptance::Suppressed { .. } => None,
    }
}

fn repeated(stored: &StoredAnswer, status: StatusCode) -> Response {
    let id = String::from_utf8(stored.body.clone()).ok();
    answer(status, id.filter(|id| !id.is_empty()))
}

fn answer(status: StatusCode, id: Option<String>) -> Response {
    let mut response = Response::builder().status(status);
    if let Some(id) = id {
        response = response.header(MESSAGE_ID, id);
    }
    response.finish()
}
