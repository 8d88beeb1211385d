//! The route that providers post to. It needs no key: the token in its path finds
//! the account, and what the account's provider signs with decides whether the
//! request is believed.
//!
//! The answers go by what providers make of them. 200 means committed. What may be
//! right later is answered so that it is sent again: 503, and 401 while a secret is
//! not known here yet; never 403 or 406, on which Postmark and Mailgun give up. (SNS
//! takes any 4xx as final, but sends nothing from a topic whose subscription was
//! not confirmed by a request that we believed.) A genuine request that cannot be
//! read would be the same the next time, and is acknowledged and counted.

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

use crate::auth::origin;
use crate::body::read_bytes;
use crate::context::Context;
use crate::error::{ErrorBody, Failure};
use crate::middleware::rate_limits;
use crate::response::Success;
use crate::v1::Section;

/// The bound of what a provider posts, in bytes: ten times what SendGrid, whose
/// requests are the largest, sends at once.
const EVENTS_BYTES_MAX: usize = 5 << 20;

/// A content byte for byte as it came, of whatever type: signatures cover the bytes.
struct RawBody(Result<Vec<u8>, Failure>);

impl<'a> ApiExtractor<'a> for RawBody {
    const TYPES: &'static [ApiExtractorType] = &[ApiExtractorType::RequestObject];
    type ParamType = ();
    type ParamRawType = ();

    fn request_meta() -> Option<MetaRequest> {
        let content = ["application/json", "text/plain"].map(|content_type| MetaMediaType {
            content_type,
            schema: MetaSchemaRef::Inline(Box::new(MetaSchema {
                description: Some("What the provider documents."),
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

/// What a provider is answered.
struct Acknowledgement(Result<(), Failure>);

impl IntoResponse for Acknowledgement {
    fn into_response(self) -> Response {
        match self.0 {
            Ok(()) => Json(json!({ "success": true })).into_response(),
            Err(failure) => {
                let is_unverified = matches!(failure, Failure::Unverified);
                let mut response = failure.into_response();
                if is_unverified {
                    // The one scheme that a provider of ours knows: Postmark's.
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
                "`AUTHENTICATION_ERROR`: nothing shows that the account's provider sent it. Nothing is recorded.",
            ),
            (404, "`NOT_FOUND`: no account has this token."),
            (413, "`PAYLOAD_TOO_LARGE`: the body is too large."),
            (
                429,
                "`RATE_LIMIT_EXCEEDED`: too many requests that are not genuine came from this address; try again after `Retry-After` seconds.",
            ),
            (500, "`INTERNAL_ERROR`: an unexpected error."),
            (
                503,
                "`SERVICE_UNAVAILABLE`: try again after `Retry-After` seconds.",
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
        let done =
            "All that it told is recorded, was before, or is about messages that are not here.";
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

pub(crate) struct InboundApi {
    pub(crate) context: Arc<Context>,
}

#[OpenApi(tag = "Section::ProviderEvents")]
impl InboundApi {
    /// Receive events from a provider
    ///
    /// Needs no key: what is believed is decided by the provider's signature. For
    /// providers, under the `webhookUrl` of the account. Whatever is told again, or
    /// in another order, counts once.
    #[oai(
        path = "/v1/provider-events/:token",
        method = "post",
        operation_id = "receive_provider_events"
    )]
    async fn receive_provider_events(
        &self,
        request: &Request,
        /// The last part of the account's `webhookUrl`.
        token: Path<String>,
        body: RawBody,
    ) -> Acknowledgement {
        Acknowledgement(self.receive(request, &token, body).await)
    }
}

impl InboundApi {
    async fn receive(&self, request: &Request, token: &str, body: RawBody) -> Result<(), Failure> {
        let body = match body.0 {
            Ok(body) => body,
            Err(failure) => return Err(turned_away(request, failure).await),
        };
        let origin = origin(request, Actor::System);
        let inbox = &self.context.inbox;
        let taken = inbox.take(token, request.headers(), &body, origin).await;
        let failure = match taken {
            Ok(_) => return Ok(()),
            Err(ReceiveRefusal::Fault(fault)) => return Err(fault.into()),
            Err(ReceiveRefusal::UnknownToken) => Failure::NotFound("provider account"),
            Err(ReceiveRefusal::Unverified) => Failure::Unverified,
        };
        Err(turned_away(request, failure).await)
    }
}

/// Counts a request that did not come from a provider, as far as we know.
async fn turned_away(request: &Request, failure: Failure) -> Failure {
    match rate_limits::count_stranger(request).await {
        Ok(()) => failure,
        Err(wait) => Failure::RateLimited(wait),
    }
}
