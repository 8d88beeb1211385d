//! Pages for recipients: plain, without scripts and without anything from
//! elsewhere, readable without their few lines of style. Whatever they show passes
//! through Handlebars, which escapes it.

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

/// Only the pages' own style, named by its hash, and forms that lead back here.
const POLICY: &str = "default-src 'none'; style-src 'sha256-4yM+jmcyCcD2DM9gOT1FD2hN2TwejJ6hOfqwUg4hjtI='; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The headers of every page. A page belongs to one person: nobody keeps it, lists
/// it, or learns its address.
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
        ("layout", include_str!("layout.hbs")),
        ("unsubscribed", include_str!("unsubscribed.hbs")),
        ("offered", include_str!("offered.hbs")),
        ("undo_offered", include_str!("undo_offered.hbs")),
        ("undone", include_str!("undone.hbs")),
        ("held", include_str!("held.hbs")),
        ("note", include_str!("note.hbs")),
    ] {
        pages
            .register_template_string(name, source)
            .expect("our own pages are templates");
    }
    pages
});

/// A page and its status.
#[derive(Debug)]
pub(crate) struct HtmlPage {
    status: StatusCode,
    /// Seconds after which it may be asked for again.
    retry_after: Option<u64>,
    html: String,
}

#[derive(Serialize)]
struct PageNote {
    title: &'static str,
    text: &'static str,
}

impl HtmlPage {
    /// The page of this name, filled in.
    pub(crate) fn new(name: &str, content: &impl Serialize) -> Self {
        let html = PAGES.render(name, content);
        Self {
            status: StatusCode::OK,
            retry_after: None,
            html: html.expect("our own pages can be rendered"),
        }
    }

    /// A page of a title and a sentence or two.
    pub(crate) fn note(status: StatusCode, title: &'static str, text: &'static str) -> Self {
        Self {
            status,
            ..Self::new("note", &PageNote { title, text })
        }
    }

    /// The page of someone who tried too many links that are not valid.
    pub(crate) fn too_many(wait: Duration) -> Self {
        Self {
            retry_after: Some(rate_limits::whole_seconds(wait).max(1)),
            ..Self::note(
                StatusCode::TOO_MANY_REQUESTS,
                "Too many tries",
                "Please wait a minute, then copy the whole link from the message.",
            )
        }
    }
}

/// Faults show nothing of what went wrong.
impl From<Fault> for HtmlPage {
    fn from(fault: Fault) -> Self {
        let text = match fault.kind() {
            FaultKind::Unavailable => "Nothing was changed. Please try again in a minute.",
            FaultKind::Internal => "Please try again later, or write to the sender.",
        };
        let is_away = fault.kind() == FaultKind::Unavailable;
        let failure = Failure::from(fault);
        failure.log();
        Self {
            retry_after: is_away.then_some(RETRY_AFTER_SECONDS.into()),
            ..Self::note(failure.status(), "This did not work", text)
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
                "A page that says what was done, or asks whether it is to be.",
            ),
            (400, "A page that says that the link is invalid."),
            (410, "A page that says that the link has expired."),
            (
                429,
                "A page that says so: too many links that are not valid came from this address.",
            ),
            (500, "A page that says that it did not work."),
            (
                503,
                "A page that says so; try again after `Retry-After` seconds.",
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
