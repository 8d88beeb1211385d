//! HTML pages for recipients: without scripts, without external resources, and readable
//! without their few lines of style. Handlebars escapes every value on a page.

use std::sync::LazyLock;
use std::time::Duration;

use handlebars::Handlebars;
use poem::http::{HeaderValue, StatusCode, header};
use poem::{IntoResponse, Response};
use poem_openapi::registry::{
    MetaMediaType, MetaResponse, MetaResponses, MetaSchema, MetaSchemaRef,
};
use poem_openapi::{ApiResponse, registry::Registry};
use serde::Serialize;
use waypost_core::fault::{Fault, FaultKind};

use crate::error::{Failure, RETRY_AFTER_SECONDS};
use crate::middleware::rate_limits;

/// Allows only the pages' own style, by its hash, and forms that post to this server.
const POLICY: &str = "default-src 'none'; style-src 'sha256-4yM+jmcyCcD2DM9gOT1FD2hN2TwejJ6hOfqwUg4hjtI='; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The headers of every page. A page is for one recipient: caches must not store it,
/// search engines must not list it, and no other site may see its address.
const HEADERS: [(header::HeaderName, &str); 5] = [
    (header::CACHE_CONTROL, "no-store"),
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::HeaderName::from_static("x-robots-tag"), "noindex"),
];

static PAGES: LazyLock<Handlebars<'static>> = LazyLock::new(|| {
    let mut pages = Handlebars::new();
    for (name, source) in [
        ("layout", include_str!("pages/layout.hbs")),
        ("unsubscribed", include_str!("pages/unsubscribed.hbs")),
        (
            "confirm_unsubscribe",
            include_str!("pages/confirm_unsubscribe.hbs"),
        ),
        ("confirm_undo", include_str!("pages/confirm_undo.hbs")),
        ("resubscribed", include_str!("pages/resubscribed.hbs")),
        (
            "still_suppressed",
            include_str!("pages/still_suppressed.hbs"),
        ),
        ("notice", include_str!("pages/notice.hbs")),
    ] {
        pages
            .register_template_string(name, source)
            .expect("the pages are valid templates");
    }
    pages
});

/// A page with its status.
#[derive(Debug)]
pub(crate) struct HtmlPage {
    status: StatusCode,
    /// The value of `Retry-After`, in seconds.
    retry_after: Option<u64>,
    html: String,
}

#[derive(Serialize)]
struct Notice {
    title: &'static str,
    text: &'static str,
}

impl HtmlPage {
    /// Renders the page `name`.
    pub(crate) fn new(name: &str, content: &impl Serialize) -> Self {
        let html = PAGES.render(name, content);
        Self {
            status: StatusCode::OK,
            retry_after: None,
            html: html.expect("the pages can be rendered"),
        }
    }

    /// A page with a title and one or two sentences.
    pub(crate) fn notice(status: StatusCode, title: &'static str, text: &'static str) -> Self {
        Self {
            status,
            ..Self::new("notice", &Notice { title, text })
        }
    }

    /// The page for a client that opened too many links that are not valid.
    pub(crate) fn too_many(wait: Duration) -> Self {
        Self {
            retry_after: Some(rate_limits::whole_seconds(wait).max(1)),
            ..Self::notice(
                StatusCode::TOO_MANY_REQUESTS,
                "Too many attempts",
                "Please wait a minute, then copy the whole link from the message.",
            )
        }
    }
}

/// The page shows no details of the fault.
impl From<Fault> for HtmlPage {
    fn from(fault: Fault) -> Self {
        let text = match fault.kind() {
            FaultKind::Unavailable => {
                "The service is not available at the moment. Please try again in a minute."
            }
            FaultKind::Internal => "Please try again later, or contact the sender.",
        };
        let is_away = fault.kind() == FaultKind::Unavailable;
        let failure = Failure::from(fault);
        failure.log();
        Self {
            retry_after: is_away.then_some(RETRY_AFTER_SECONDS.into()),
            ..Self::notice(failure.status(), "Something went wrong", text)
        }
    }
}

impl IntoResponse for HtmlPage {
    fn into_response(self) -> Response {
        let mut response = poem::web::Html(self.html).into_response();
        response.set_status(self.status);
        let headers = response.headers_mut();
        for (name, value) in HEADERS {
            headers.insert(name, HeaderValue::from_static(value));
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

impl ApiResponse for HtmlPage {
    fn meta() -> MetaResponses {
        let rows = [
            (
                200,
                "A page that reports what was done, or asks for a confirmation.",
            ),
            (400, "A page: the link is not valid."),
            (410, "A page: the link has expired."),
            (
                429,
                "A page: the client opened too many links that are not valid. Try again after `Retry-After` seconds.",
            ),
            (500, "A page: an unexpected error occurred."),
            (
                503,
                "A page: the service is not available. Try again after `Retry-After` seconds.",
            ),
        ];
        let responses = rows.map(|(status, description)| MetaResponse {
            description,
            status: Some(status),
            status_range: None,
            content: vec![MetaMediaType {
                content_type: "text/html",
                schema: MetaSchemaRef::Inline(Box::new(MetaSchema::new("string"))),
            }],
            headers: vec![],
        });
        MetaResponses {
            responses: responses.into(),
        }
    }

    fn register(_: &mut Registry) {}
}
