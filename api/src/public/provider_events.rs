//! The route that providers post events to. It requires no API key: the token in its path
//! finds the account, and the account's event secrets verify the request.
//!
//! The statuses follow the way that providers treat them. 200 means committed. A request
//! that may succeed later gets a status after which the provider repeats it: 503, or 401
//! while a secret is not configured here yet. It never gets 403 or 406, after which
//! Postmark and Mailgun give up. (SNS gives up after any 4xx, but it sends events only
//! after a verified request confirmed the subscription.) A verified request that cannot
//! be parsed would fail again, so it is acknowledged and counted.

use std::sync::Arc;

use poem::http::{HeaderValue, header};
use poem::web::Json;
use poem::{IntoResponse, Request, RequestBody, Response};
use poem_openapi::param::Path;
use poem_openapi::registry::{
    MetaMediaType, MetaRequest, MetaResponse, MetaResponses, MetaSchema, MetaSchemaRef, Registry,
};
use poem_openapi::types::Type;
use poem_openapi::{ApiExtractor, ApiExtractorType, ApiResponse, ExtractParamOptions, OpenApi};
use serde_json::json;
use waypost_core::audit::Actor;
use waypost_core::provider_event::receiver::ReceiveRefusal;

use crate::context::Context;
use crate::error::{ErrorBody, Failure};
use crate::middleware::auth::origin;
use crate::middleware::rate_limits;
use crate::request::body::read_bytes;
use crate::response::Success;
use crate::v1::Section;

/// The largest request of a provider, in bytes: ten times the largest batch of SendGrid,
/// whose requests are the largest.
const EVENTS_BYTES_MAX: usize = 5 << 20;

/// A body of any content type, byte for byte: signatures cover the bytes.
struct RawBody(Result<Vec<u8>, Failure>);

impl<'a> ApiExtractor<'a> for RawBody {
    const TYPES: &'static [ApiExtractorType] = &[ApiExtractorType::RequestObject];
    type ParamType = ();
    type ParamRawType = ();

    fn request_meta() -> Option<MetaRequest> {
        let content = ["application/json", "text/plain"].map(|content_type| MetaMediaType {
            content_type,
            schema: MetaSchemaRef::Inline(Box::new(MetaSchema {
                description: Some("The events, in the provider's own format."),
                ..MetaSchema::ANY
            })),
        });
        Some(MetaRequest {
            description: None,
            content: content.into(),
            required: true,
        })
    }

    async fn from_request(
        request: &'a Request,
        body: &mut RequestBody,
        _options: ExtractParamOptions<()>,
    ) -> poem::Result<Self> {
        Ok(Self(read_bytes(request, body, EVENTS_BYTES_MAX).await))
    }
}

/// The response to a provider.
struct Acknowledgement(Result<(), Failure>);

impl IntoResponse for Acknowledgement {
    fn into_response(self) -> Response {
        match self.0 {
            Ok(()) => Json(json!({ "success": true })).into_response(),
            Err(failure) => {
                let is_unverified = matches!(failure, Failure::Unverified);
                let mut response = failure.into_response();
                if is_unverified {
                    // Basic is the only scheme that one of the providers uses: Postmark.
                    let scheme = HeaderValue::from_static("Basic realm=\"Waypost\"");
                    response
                        .headers_mut()
                        .insert(header::WWW_AUTHENTICATE, scheme);
                }
                response
            }
        }
    }
}

impl ApiResponse for Acknowledgement {
    fn meta() -> MetaResponses {
        let errors = [
            (400, "`VALIDATION_ERROR`: the body could not be read."),
            (
                401,
                "`AUTHENTICATION_ERROR`: the request is not verified as the provider's. Nothing is recorded.",
            ),
            (404, "`NOT_FOUND`: no account has this token."),
            (413, "`PAYLOAD_TOO_LARGE`: the body is too large."),
            (
                429,
                "`RATE_LIMIT_EXCEEDED`: the client sent too many requests that are not verified. Try again after `Retry-After` seconds.",
            ),
            (500, "`INTERNAL_ERROR`: an unexpected error occurred."),
            (
                503,
                "`SERVICE_UNAVAILABLE`: the service is not available. Try again after `Retry-After` seconds.",
            ),
        ];
        let row = |status, description, schema| MetaResponse {
            description,
            status: Some(status),
            status_range: None,
            content: vec![MetaMediaType {
                content_type: "application/json",
                schema,
            }],
            headers: vec![],
        };
        let done = "Every event is recorded now, was recorded before, or belongs to a message that is not stored here.";
        let mut responses = vec![row(200, done, Success::schema_ref())];
        responses.extend(
            errors.map(|(status, description)| row(status, description, ErrorBody::schema_ref())),
        );
        MetaResponses { responses }
    }

    fn register(registry: &mut Registry) {
        Success::register(registry);
        ErrorBody::register(registry);
    }
}

pub(crate) struct ProviderEventsApi {
    pub(crate) context: Arc<Context>,
}

#[OpenApi(tag = "Section::ProviderEvents")]
impl ProviderEventsApi {
    /// Receive events from a provider
    ///
    /// For providers, at the account's `webhookUrl`. Requires no API key; the provider's
    /// signature or credentials are verified. An event that arrives again is recorded
    /// once, and events may arrive in any order.
    #[oai(
        path = "/v1/provider-events/:token",
        method = "post",
        operation_id = "receive_provider_events"
    )]
    async fn receive_provider_events(
        &self,
        request: &Request,
        /// The last path segment of the account's `webhookUrl`.
        token: Path<String>,
        body: RawBody,
    ) -> Acknowledgement {
        Acknowledgement(self.receive(request, &token, body).await)
    }
}

impl ProviderEventsApi {
    async fn receive(&self, request: &Request, token: &str, body: RawBody) -> Result<(), Failure> {
        let body = match body.0 {
            Ok(body) => body,
            Err(failure) => return Err(count_unverified(request, failure).await),
        };
        let origin = origin(request, Actor::System);
        let receiver = &self.context.event_receiver;
        let received = receiver
            .receive(token, request.headers(), &body, origin)
            .await;
        let failure = match received {
            Ok(_) => return Ok(()),
            Err(ReceiveRefusal::Fault(fault)) => return Err(fault.into()),
            Err(ReceiveRefusal::UnknownToken) => Failure::NotFound("provider account"),
            Err(ReceiveRefusal::Unverified) => Failure::Unverified,
        };
        Err(count_unverified(request, failure).await)
    }
}

/// Counts a request that is not verified against the anonymous limit.
async fn count_unverified(request: &Request, failure: Failure) -> Failure {
    match rate_limits::count_anonymous(request).await {
        Ok(()) => failure,
        Err(wait) => Failure::RateLimited(wait),
    }
}
