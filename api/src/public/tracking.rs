//! Pixels and tracked links in messages. They require no API key: their tokens name the
//! message and the recipient. The client gets the image or the redirect even if the
//! recording fails.

use std::sync::Arc;

use poem::http::{HeaderName, HeaderValue, StatusCode, header};
use poem::{IntoResponse, Request, Response};
use poem_openapi::param::Path;
use poem_openapi::registry::{
    MetaHeader, MetaMediaType, MetaResponse, MetaResponses, MetaSchema, MetaSchemaRef, Registry,
};
use poem_openapi::{ApiResponse, OpenApi};
use waypost_core::clock::{Timestamp, delta};
use waypost_core::tracking::token::DecodedToken;
use waypost_core::tracking::{TrackedRecipient, TrackingHit, robot};

use super::page::{HtmlPage, LinkPage, Pages};
use crate::context::Context;
use crate::middleware::auth::USER_AGENT_CHARS_MAX;
use crate::middleware::rate_limits;
use crate::v1::Section;

/// A transparent GIF of one pixel.
const PIXEL: [u8; 43] = *b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\x00\x00\x00\x21\xf9\x04\x01\x00\x00\x00\x00\x2c\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02\x44\x01\x00\x3b";

/// The headers of every response: caches must not store it, so that the next request is
/// recorded too, and no other site may see the URL with the token.
const HEADERS: [(HeaderName, &str); 4] = [
    (header::CACHE_CONTROL, "no-store, private, max-age=0"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (HeaderName::from_static("x-robots-tag"), "noindex, nofollow"),
];

pub(crate) struct TrackingApi {
    pub(crate) context: Arc<Context>,
}

/// The response of a pixel: always the image.
struct Pixel;

/// The response of a tracked link.
enum LinkResponse {
    /// A redirect to the URL in the token.
    Redirect(HeaderValue),
    Page(HtmlPage),
}

#[OpenApi(tag = "Section::TrackingLinks")]
impl TrackingApi {
    /// Load a message's tracking pixel
    ///
    /// Requires no API key. Records that the recipient opened the message. The response
    /// is the same image for every token, valid or not.
    #[oai(path = "/v1/t/o/:token", method = "get", operation_id = "track_open")]
    async fn track_open(
        &self,
        request: &Request,
        /// The token in the pixel's URL.
        token: Path<String>,
    ) -> Pixel {
        let now = self.context.clock.now();
        match self.context.tracking_tokens.read_open(&token, now) {
            Some(read) => {
                let hit = self.hit(request, read.recipient, None, now);
                if !read.is_expired {
                    self.context.recorder.record(hit).await;
                }
            }
            None => {
                // The image is sent even if the limit is exceeded.
                let _too_many = rate_limits::count_anonymous(request).await;
            }
        }
        Pixel
    }

    /// Check a message's tracking pixel
    ///
    /// Requires no API key. Records nothing.
    #[oai(
        path = "/v1/t/o/:token",
        method = "head",
        operation_id = "validate_tracking_pixel"
    )]
    async fn validate_tracking_pixel(
        &self,
        request: &Request,
        /// The token in the pixel's URL.
        token: Path<String>,
    ) -> Pixel {
        let now = self.context.clock.now();
        if self
            .context
            .tracking_tokens
            .read_open(&token, now)
            .is_none()
        {
            let _too_many = rate_limits::count_anonymous(request).await;
        }
        Pixel
    }

    /// Follow a tracked link
    ///
    /// Requires no API key. Records the click and redirects to the URL that the token was
    /// signed with. Links never expire, but clicks are recorded only for a limited time
    /// after the message was sent (400 days by default).
    #[oai(path = "/v1/t/c/:token", method = "get", operation_id = "track_click")]
    async fn track_click(
        &self,
        request: &Request,
        /// The token in the link.
        token: Path<String>,
    ) -> LinkResponse {
        let now = self.context.clock.now();
        let (read, location) = match self.read(request, &token, now).await {
            Ok(read) => read,
            Err(page) => return LinkResponse::Page(page),
        };
        if !read.is_expired {
            let hit = self.hit(request, read.recipient, Some(read.target), now);
            self.context.recorder.record(hit).await;
        }
        LinkResponse::Redirect(location)
    }

    /// Check a tracked link
    ///
    /// Requires no API key. Redirects to the link's URL and records nothing.
    #[oai(
        path = "/v1/t/c/:token",
        method = "head",
        operation_id = "validate_tracking_link"
    )]
    async fn validate_tracking_link(
        &self,
        request: &Request,
        /// The token in the link.
        token: Path<String>,
    ) -> LinkResponse {
        let now = self.context.clock.now();
        match self.read(request, &token, now).await {
            Ok((_, location)) => LinkResponse::Redirect(location),
            Err(page) => LinkResponse::Page(page),
        }
    }
}

impl TrackingApi {
    /// Reads the token of a link. A token that is not valid counts as an anonymous
    /// request.
    async fn read(
        &self,
        request: &Request,
        token: &str,
        now: Timestamp,
    ) -> Result<(DecodedToken<String>, HeaderValue), HtmlPage> {
        let read = self.context.tracking_tokens.read_click(token, now);
        let read = read.and_then(|read| Some((location(&read.target)?, read)));
        match read {
            Some((location, read)) => Ok((read, location)),
            None => Err(match rate_limits::count_anonymous(request).await {
                Ok(()) => Pages::of(request).link(LinkPage::InvalidTracked),
                Err(wait) => Pages::of(request).too_many(wait),
            }),
        }
    }

    fn hit(
        &self,
        request: &Request,
        recipient: TrackedRecipient,
        url: Option<String>,
        now: Timestamp,
    ) -> TrackingHit {
        let user_agent = request.header("user-agent");
        let window = delta(self.context.machine_window);
        let headers = request.headers();
        let is_bot = robot::is_bot(headers, now - recipient.issued_at, window)
            || (url.is_some() && robot::is_not_page_visit(headers));
        TrackingHit {
            recipient,
            url,
            at: now,
            user_agent: user_agent.map(|text| text.chars().take(USER_AGENT_CHARS_MAX).collect()),
            is_bot,
        }
    }
}

/// A signed URL as a header value. Waypost signs only such URLs; this check holds if a
/// later change signs others, so that no other scheme and no second header gets through.
fn location(url: &str) -> Option<HeaderValue> {
    let is_web = url.starts_with("https://") || url.starts_with("http://");
    let is_visible = url.bytes().all(|byte| byte.is_ascii_graphic());
    let location = HeaderValue::from_str(url).ok();
    location.filter(|_| is_web && is_visible)
}

fn with_headers(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

impl IntoResponse for Pixel {
    fn into_response(self) -> Response {
        let response = Response::builder().content_type("image/gif");
        with_headers(response.body(PIXEL.as_slice()))
    }
}

impl IntoResponse for LinkResponse {
    fn into_response(self) -> Response {
        match self {
            Self::Redirect(location) => {
                let response = Response::builder().status(StatusCode::FOUND);
                with_headers(response.header(header::LOCATION, location).finish())
            }
            Self::Page(page) => page.into_response(),
        }
    }
}

impl ApiResponse for Pixel {
    fn meta() -> MetaResponses {
        let image = MetaSchema {
            format: Some("binary"),
            ..MetaSchema::new("string")
        };
        MetaResponses {
            responses: vec![MetaResponse {
                description: "An image of one transparent pixel.",
                status: Some(200),
                status_range: None,
                content: vec![MetaMediaType {
                    content_type: "image/gif",
                    schema: MetaSchemaRef::Inline(Box::new(image)),
                }],
                headers: vec![],
            }],
        }
    }

    fn register(_: &mut Registry) {}
}

impl ApiResponse for LinkResponse {
    fn meta() -> MetaResponses {
        let url = MetaSchema {
            format: Some("uri"),
            ..MetaSchema::new("string")
        };
        let redirect = MetaResponse {
            description: "A redirect to the link's URL.",
            status: Some(302),
            status_range: None,
            content: vec![],
            headers: vec![MetaHeader {
                name: "Location".to_owned(),
                description: Some("The link's URL.".to_owned()),
                required: true,
                deprecated: false,
                schema: MetaSchemaRef::Inline(Box::new(url)),
            }],
        };
        let mut responses = vec![redirect];
        let pages = HtmlPage::meta().responses.into_iter();
        responses.extend(pages.filter(|page| matches!(page.status, Some(400 | 429))));
        MetaResponses { responses }
    }

    fn register(_: &mut Registry) {}
}
