//! `PATCH /emails/{id}` and `POST /emails/{id}/cancel`.

use poem::Response;
use serde_json::{Value, json};
use waypost_core::auth::Permission;
use waypost_core::ids::MessageId;
use waypost_core::issue::Issue;

use super::{UPDATE_FIELDS, answer, translate};
use crate::compat::call::VendorCall;
use crate::compat::given::Given;
use crate::compat::paths::FieldPaths;
use crate::error::{Failure, MESSAGE};
use crate::fields::time::FutureTime;
use crate::request::body::JsonLimits;
use crate::v1::message_changes::require_may_send;
use crate::validate::Field as _;

/// `PATCH /emails/{id}`
pub(super) async fn update_email(mut call: VendorCall) -> Result<Response, Failure> {
    let caller = call.authorize(Permission::Send)?;
    let id: MessageId = call.path_id("id", MESSAGE)?;
    let json = call.json(JsonLimits::OTHER).await?;
    let context = &call.context;
    let now = context.clock.now();
    let mut given = Given::body(UPDATE_FIELDS, json.value).map_err(Failure::Invalid)?;
    let mut issues = Vec::new();
    if given.take("id").is_some_and(|given| !is(id, &given)) {
        issues.push(Issue::new("id", "must be the id of the path"));
    }
    let at = match given.take("scheduled_at") {
        Some(time) => FutureTime::read(translate::scheduled_at(time, now)),
        None => Err(vec![Issue::new("", "is required")]),
    };
    let at = at.and_then(|time| time.after(now).map_err(|rule| vec![Issue::new("", rule)]));
    given.finish(&mut issues);
    let at = match at {
        Ok(at) if issues.is_empty() => at,
        Ok(_) => return Err(Failure::Invalid(issues)),
        Err(found) => {
            issues.extend(found.into_iter().map(|issue| issue.under("scheduled_at")));
            return Err(Failure::Invalid(issues));
        }
    };
    require_may_send(context, &caller, id).await?;
    let changes = &context.message_changes;
    let organization_id = caller.organization_id();
    let moving = changes.reschedule(organization_id, caller.origin(), id, Some(at));
    let mut paths = FieldPaths::default();
    paths.add("scheduledAt", "scheduled_at");
    moving
        .await
        .map_err(|refusal| paths.failure(refusal.into()))?;
    Ok(answer(&json!({ "object": "email", "id": id.to_string() })))
}

/// `POST /emails/{id}/cancel`
pub(super) async fn cancel_email(mut call: VendorCall) -> Result<Response, Failure> {
    let caller = call.authorize(Permission::Send)?;
    call.without_fields().await?;
    let id: MessageId = call.path_id("id", MESSAGE)?;
    let context = &call.context;
    require_may_send(context, &caller, id).await?;
    let changes = &context.message_changes;
    let organization_id = caller.organization_id();
    changes.cancel(organization_id, caller.origin(), id).await?;
    Ok(answer(&json!({ "object": "email", "id": id.to_string() })))
}

fn is(id: MessageId, given: &Value) -> bool {
    given
        .as_str()
        .is_some_and(|given| given.eq_ignore_ascii_case(&id.to_string()))
}
