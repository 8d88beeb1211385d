//! `POST /v1/erasures`: erases what is stored of a person.

use std::sync::Arc;

use poem_openapi::payload::Json;
use poem_openapi::{Object, OpenApi};
use uuid::Uuid;
use waypost_core::address::EmailAddress;
use waypost_core::erasure::Erasure;

use crate::context::Context;
use crate::error::Failure;
use crate::middleware::auth::Requires;
use crate::middleware::permission;
use crate::request::body::{JsonBody, OTHER_BYTES_MAX};
use crate::response::Data;
use crate::v1::Section;
use crate::validate::Validated;

pub(crate) struct ErasuresApi {
    pub(crate) context: Arc<Context>,
}

/// A person to erase.
#[derive(Debug, Object)]
struct ErasePersonRequest {
    /// The person's address.
    email: Validated<EmailAddress>,
}

/// What was erased.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct ErasureResult {
    /// The id of the erasure: the target of its entries in the audit log.
    id: Uuid,
    /// The number of messages of which something was erased.
    messages: u64,
    /// The number of events whose details were erased.
    events: u64,
    /// The number of references to attachments that were erased.
    attachments: u64,
    /// The number of messages that are still being sent. They are left as they are; repeat
    /// the request when they are finished.
    pending: u64,
    /// Whether all messages to the person were visited. If not, repeat the request: it
    /// continues.
    complete: bool,
}

impl From<Erasure> for ErasureResult {
    fn from(erasure: Erasure) -> Self {
        let erased = erasure.erased;
        Self {
            id: erasure.id,
            messages: erased.messages,
            events: erased.events,
            attachments: erased.attachments,
            pending: erased.pending,
            complete: erasure.is_complete,
        }
    }
}

#[OpenApi(tag = "Section::Erasures")]
impl ErasuresApi {
    /// Erase a person
    ///
    /// Requires the permission `SETTINGS_WRITE`. Erases the address and the details of
    /// events of all messages to the person, for good. A message to this person alone, and
    /// a message whose recipients see each other, also loses its subject, bodies, headers,
    /// metadata and references to attachments; any other message loses them with its last
    /// recipient. Messages that are still being sent are left as they are and counted in
    /// `pending`. Suppressions of the address stay: only its hash is stored. The audit log
    /// records the hash, too. The request can be repeated.
    #[oai(path = "/v1/erasures", method = "post", operation_id = "erase_person")]
    async fn erase_person(
        &self,
        caller: Requires<permission::SettingsWrite>,
        body: JsonBody<ErasePersonRequest, OTHER_BYTES_MAX>,
    ) -> Result<Json<Data<ErasureResult>>, Failure> {
        let caller = caller.authorize()?;
        let mut issues = Vec::new();
        let request = body.take(&mut issues)?;
        let email = request.email.take("email", &mut issues);
        let (Some(email), true) = (email, issues.is_empty()) else {
            return Err(Failure::Invalid(issues));
        };
        let eraser = &self.context.eraser;
        let erasure = eraser
            .erase(caller.organization_id(), caller.origin(), email.hash())
            .await?;
        Ok(Json(Data {
            data: erasure.into(),
        }))
    }
}
