//! The webhook deliveries of a message's events, to all endpoints.

use std::sync::Arc;

use poem_openapi::OpenApi;
use poem_openapi::param::Path;
use poem_openapi::payload::Json;
use waypost_core::ids::MessageId;

use crate::context::Context;
use crate::error::{Failure, MESSAGE};
use crate::fields::{PageLimit, PageNumber};
use crate::middleware::auth::Requires;
use crate::middleware::permission;
use crate::request::cursor::CursorQuery;
use crate::request::path_id::PathId;
use crate::request::query::Query;
use crate::response::Paged;
use crate::v1::Section;
use crate::v1::webhook_deliveries::WebhookDelivery;
use crate::validate::Validated;

pub(crate) struct MessageWebhookDeliveriesApi {
    pub(crate) context: Arc<Context>,
}

#[OpenApi(tag = "Section::Messages")]
impl MessageWebhookDeliveriesApi {
    /// List a message's webhook deliveries
    ///
    /// Requires the permission `SETTINGS_WRITE`. The deliveries of the message's events to all
    /// webhook endpoints, the newest first, each with its attempts.
    #[oai(
        path = "/v1/messages/:id/webhook-deliveries",
        method = "get",
        operation_id = "list_message_webhook_deliveries"
    )]
    async fn list_message_webhook_deliveries(
        &self,
        caller: Requires<permission::SettingsWrite>,

        /// The id of the message.
        id: Path<PathId>,
        /// The page number, from 1.
        page: Query<Validated<Option<PageNumber>>>,
        /// The number of items per page.
        limit: Query<Validated<Option<PageLimit>>>,
        /// The `nextCursor` of the page before, instead of `page`. The pages stay as they are
        /// while the list grows at its beginning.
        cursor: CursorQuery,
    ) -> Result<Json<Paged<WebhookDelivery>>, Failure> {
        let caller = caller.authorize()?;
        let id: MessageId = id.0.of(MESSAGE)?;
        let mut issues = Vec::new();
        let page = cursor
            .read_page(page.0, limit.0, &mut issues)
            .ok_or(Failure::Invalid(issues))?;
        let endpoints = &self.context.webhook_endpoints;
        let found = endpoints
            .list_message_deliveries(caller.organization_id(), id, page)
            .await?
            .ok_or(Failure::NotFound(MESSAGE))?;
        Ok(Json(Paged {
            data: found.rows.into_iter().map(WebhookDelivery::from).collect(),
            pagination: cursor.pagination(page, found.total, found.next),
        }))
    }
}
