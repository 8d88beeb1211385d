//! Pixels and links in messages. They need no key: their tokens say which copy they
//! were in. Whoever asks gets what he came for, whatever becomes of the recording.

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

use super::page::HtmlPage;
use crate::auth::USER_AGENT_CHARS_MAX;
use crate::context::Context;
use crate::middleware::rate_limits;
use crate::v1::Section;

/// A transparent GIF of one pixel.
const PIXEL: [u8; 43] = *b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\x00\x00\x00\x21\xf9\x04\x01\x00\x00\x00\x00\x2c\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02\x44\x01\x00\x3b";

/// The headers of every answer: nobody keeps it, since the next time is to be told
/// too, and nobody learns the address that holds the token.
const HEADERS: [(HeaderName, &str); 4] = [
    (header::CACHE_CONTROL, "no-store, private, max-age=0"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (HeaderName::from_static("x-robots-tag"), "noindex, nofollow"),
];

pub(crate) struct TrackingApi {
    pub(crate) context: Arc<Context>,
}

/// The image, always.
struct Pixel;

/// To where a link leads, or why it leads nowhere.
enum Followed {
    /// A URL that we signed.
    To(HeaderValue),
    Nowhere(HtmlPage),
}

#[OpenApi(tag = "Section::TrackingLinks")]
impl TrackingApi {
    /// Fetch the pixel of a message
    ///
    /// Needs no key. Records that the copy was opened that the pixel is in. The answer
    /// is the same image whether or not the token is valid.
    #[oai(path = "/v1/t/o/:token", method = "get", operation_id = "track_open")]
    async fn track_open(
        &self,
        request: &Request,
        /// The token of the pixel.
        token: Path<String>,
    ) -> Pixel {
        let now = self.context.clock.now();
        match self.context.tracking_tokens.read_open(&token, now) {
            Some(read) => {
                let sighting = self.sighting(request, read.copy, None, now);
                if !read.is_expired {
                    self.context.recorder.record(sighting).await;
                }
            }
            None => {
                // Who asks for images that are none is shown one all the same.
                let _too_many = rate_limits::count_stranger(request).await;
            }
        }
        Pixel
    }

    /// Look at the pixel of a message
    ///
    /// Needs no key. Records nothing.
    #[oai(
        path = "/v1/t/o/:token",
        method = "head",
        operation_id = "validate_tracking_pixel"
    )]
    async fn validate_tracking_pixel(
        &self,
        request: &Request,
        /// The token of the pixel.
        token: Path<String>,
    ) -> Pixel {
        let now = self.context.clock.now();
        if self
            .context
            .tracking_tokens
            .read_open(&token, now)
            .is_none()
        {
            let _too_many = rate_limits::count_stranger(request).await;
        }
        Pixel
    }

    /// Follow a link of a message
    ///
    /// Needs no key. Records that the link was followed and leads to its target: the
    /// URL that the token was signed with, and no other. Links do not expire; what is
    /// too old is not recorded.
    #[oai(path = "/v1/t/c/:token", method = "get", operation_id = "track_click")]
    async fn track_click(
        &self,
        request: &Request,
        /// The token of the link.
        token: Path<String>,
    ) -> Followed {
        let now = self.context.clock.now();
        let (read, location) = match self.read(request, &token, now).await {
            Ok(read) => read,
            Err(page) => return Followed::Nowhere(page),
        };
        if !read.is_expired {
            let sighting = self.sighting(request, read.copy, Some(read.target), now);
            self.context.recorder.record(sighting).await;
        }
        Followed::To(location)
    }

    /// Look at a link of a message
    ///
    /// Needs no key. Says where the link leads, and records nothing.
    #[oai(
        path = "/v1/t/c/:token",
        method = "head",
        operation_id = "validate_tracking_link"
    )]
    async fn validate_tracking_link(
        &self,
        request: &Request,
        /// The token of the link.
        token: Path<String>,
    ) -> Followed {
        let now = self.context.clock.now();
        match self.read(request, &token, now).await {
            Ok((_, location)) => Followed::To(location),
            Err(page) => Followed::Nowhere(page),
        }
    }
}

impl TrackingApi {
    /// What a link's token says. One that is not valid counts as a stranger's request.
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
            None => Err(match rate_limits::count_stranger(request).await {
                Ok(()) => invalid(),
                Err(wait) => HtmlPage::too_many(wait),
            }),
        }
    }

    fn sighting(
        &self,
        request: &Request,
        copy: TrackedRecipient,
        url: Option<String>,
        now: Timestamp,
    ) -> TrackingHit {
        let user_agent = request.header("user-agent");
        let window = delta(self.context.machine_window);
        let headers = request.headers();
        let is_bot = robot::is_machine(headers, now - copy.issued_at, window)
            || (url.is_some() && robot::is_no_visit(headers));
        TrackingHit {
            copy,
            url,
            at: now,
            user_agent: user_agent.map(|text| text.chars().take(USER_AGENT_CHARS_MAX).collect()),
            is_bot,
        }
    }
}

/// A signed URL as a header. What we sign is of this form; whoever changes what is
/// signed does not open a way to other schemes or into other headers.
fn location(url: &str) -> Option<HeaderValue> {
    let is_web = url.starts_with("https://") || url.starts_with("http://");
    let is_visible = url.bytes().all(|byte| byte.is_ascii_graphic());
    let location = HeaderValue::from_str(url).ok();
    location.filter(|_| is_web && is_visible)
}

fn invalid() -> HtmlPage {
    HtmlPage::note(
        StatusCode::BAD_REQUEST,
        "This link is not valid",
        "Perhaps a part of it is missing. Please copy the whole link from the message.",
    )
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

impl IntoResponse for Followed {
    fn into_response(self) -> Response {
        match self {
            Self::To(location) => {
                let response = Response::builder().status(StatusCode::FOUND);
                with_headers(response.header(header::LOCATION, location).finish())
            }
            Self::Nowhere(page) => page.into_response(),
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

impl ApiResponse for Followed {
    fn meta() -> MetaResponses {
        let url = MetaSchema {
            format: Some("uri"),
            ..MetaSchema::new("string")
        };
        let redirect = MetaResponse {
            description: "The way to the link's target.",
            status: Some(302),
            status_range: None,
            content: vec![],
            headers: vec![MetaHeader {
                name: "Location".to_owned(),
                description: Some("Where the link leads.".to_owned()),
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
