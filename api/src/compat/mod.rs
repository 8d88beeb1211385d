//! Endpoints of other vendors: `/compat/VENDOR/…` takes a vendor's requests and gives that
//! vendor's answers and errors, over the same acceptance as `POST /v1/send`. They are not in the
//! OpenAPI document, which describes Waypost's own API.
//!
//! How a request passes:
//!
//! 1. [`wrap`], outside the rate limits, puts the vendor's header with the API key into
//!    `Authorization`. So keys, rate limits and availability treat the request as any other.
//! 2. The vendor's `operations()` name each operation: its id for measuring, its method, its
//!    path below the vendor's base, and its handler, `async fn(VendorCall) -> Result<Response,
//!    Failure>`. [`VendorCall::authorize`] comes first, then [`VendorCall::json`], or
//!    [`VendorCall::without_fields`] for an operation without a body.
//! 3. The translation is pure: the vendor's JSON, held as `Given`, becomes the JSON of
//!    `POST /v1/send` in a `Translation`, which also notes by which of their fields ours were
//!    made. What is taken from a `Given` is translated; `Given::finish` refuses what is
//!    left. The vendor's `FIELDS` (`VendorField`) say of each field whether Waypost does what
//!    the vendor does with it; docs/compatibility.md shows that table, and tests compare it with
//!    the vendor's description. A field is never ignored.
//! 4. `Translation::draft` parses and checks that JSON as for `POST /v1/send`. Issues come back
//!    under the vendor's names. `FieldPaths::failure` renames those of acceptance.
//! 5. [`send::accept`] accepts one draft, [`send::accept_together`] several of which all or none
//!    are accepted, [`send::accept_each`] several that are independent.
//! 6. Whatever answers with a [`Failure`], a handler or a layer, [`wrap`] writes it in the
//!    vendor's form ([`Vendor::error`]) and renames the headers of the rate limit. A handler that
//!    needs an error which no `Failure` stands for answers with a response of its own.
//!
//! A message that is read again: its row by `message::store`, what happened to it last by
//! `message::envelope`, and with CONTENT_READ its addresses by `Context::addresses` and its bodies by
//! `Context::contents` ([`resend::operations`] shows how).
//!
//! **To add a vendor**: a variant of [`Vendor`], a folder with `operations`, `FIELDS` and
//! `error`, and a section of docs/compatibility.md. The exhaustive matches name the places.
//! Contents of attachments larger than 64 KiB stay in the body: their value is a short text that
//! stands for them, and a translation moves it as it is ([`crate::request::large_text`]).

mod call;
mod fields;
mod given;
mod paths;
mod postmark;
mod resend;
mod send;
mod sendgrid;
mod templates;
mod texts;
mod translation;

use std::sync::Arc;

use poem::endpoint::{BoxEndpoint, make};
use poem::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use poem::web::Json;
use poem::{Endpoint, EndpointExt, IntoResponse, Request, Response, Route, RouteMethod};
use serde_json::{Map, Value, json};
use waypost_core::clock::Timestamp;
use waypost_core::import::ImportSource;

use crate::error::{self, AnsweredFailure, Failure};
use crate::middleware::auth;
use call::VendorCall;
pub(crate) use fields::tables;

/// The path below which all vendors are.
pub(crate) const BASE: &str = "/compat/";

/// The headers of the rate limit in Waypost's own API.
const RATE_HEADERS: [&str; 3] = [
    "x-ratelimit-limit",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
];

/// The vendors whose endpoints Waypost has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vendor {
    Resend,
    Sendgrid,
    Postmark,
}

/// An error in a vendor's form.
#[derive(Debug)]
struct VendorError {
    status: StatusCode,
    body: Value,
}

/// One operation of a vendor.
struct VendorOperation {
    /// The name by which requests are counted.
    id: &'static str,
    method: Method,
    /// The path below the vendor's base, with parameters in braces.
    path: &'static str,
    endpoint: BoxEndpoint<'static, Response>,
}

impl VendorOperation {
    fn new<F, R>(id: &'static str, method: Method, path: &'static str, serve: F) -> Self
    where
        F: Fn(VendorCall) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Response, Failure>> + Send + 'static,
    {
        let endpoint = make(move |request: Request| {
            // Boxed: else every route would carry the largest of them.
            let serving = Box::pin(serve(VendorCall::new(request)));
            async move { serving.await.map_err(poem::Error::from) }
        });
        Self {
            id,
            method,
            path,
            endpoint: endpoint.boxed(),
        }
    }
}

impl Vendor {
    const ALL: [Self; 3] = [Self::Resend, Self::Sendgrid, Self::Postmark];

    /// Where templates that are named by the vendor's ids were imported from.
    fn import_source(self) -> ImportSource {
        match self {
            Self::Resend => ImportSource::Resend,
            Self::Sendgrid => ImportSource::Sendgrid,
            Self::Postmark => ImportSource::Postmark,
        }
    }

    /// The path below which its operations are.
    fn base(self) -> &'static str {
        match self {
            Self::Resend => "/compat/resend",
            Self::Sendgrid => "/compat/sendgrid",
            Self::Postmark => "/compat/postmark",
        }
    }

    fn of_path(path: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|vendor| {
            let rest = path.strip_prefix(vendor.base());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    fn operations(self) -> Vec<VendorOperation> {
        match self {
            Self::Resend => resend::operations(),
            Self::Sendgrid => sendgrid::operations(),
            Self::Postmark => postmark::operations(),
        }
    }

    /// The paths below the base of operations that count as sends of one message.
    fn send_paths(self) -> &'static [&'static str] {
        match self {
            Self::Resend => &["/emails"],
            Self::Sendgrid => &[sendgrid::SEND_PATH],
            Self::Postmark => postmark::SEND_PATHS,
        }
    }

    /// The header that holds the API key, if it is not `Authorization: Bearer`.
    fn key_header(self) -> Option<HeaderName> {
        match self {
            Self::Resend | Self::Sendgrid => None,
            Self::Postmark => Some(HeaderName::from_static(postmark::TOKEN)),
        }
    }

    /// A failure in the vendor's form. `has_key` is whether the request had an API key, valid or
    /// not.
    fn error(self, failure: &Failure, has_key: bool) -> VendorError {
        match self {
            Self::Resend => resend::error(failure, has_key),
            Self::Sendgrid => sendgrid::error(failure, has_key),
            Self::Postmark => postmark::error(failure, has_key),
        }
    }

    /// The vendor's names of `X-RateLimit-Limit`, `-Remaining` and `-Reset`. The last has seconds
    /// until the limit is full again.
    fn rate_headers(self) -> [HeaderName; 3] {
        match self {
            Self::Resend => {
                let names = ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"];
                names.map(HeaderName::from_static)
            }
            // Postmark documents none.
            Self::Sendgrid | Self::Postmark => RATE_HEADERS.map(HeaderName::from_static),
        }
    }

    /// Whether the last of these headers has a time, in seconds since 1970, instead.
    fn has_reset_time(self) -> bool {
        match self {
            Self::Resend | Self::Postmark => false,
            Self::Sendgrid => true,
        }
    }
}

/// The routes of all vendors.
pub(crate) fn routes() -> Route {
    Vendor::ALL.into_iter().fold(Route::new(), |route, vendor| {
        let mut by_path: Vec<(&str, RouteMethod)> = Vec::new();
        for operation in vendor.operations() {
            let at = by_path.iter().position(|(path, _)| *path == operation.path);
            let methods = match at {
                Some(index) => by_path.swap_remove(index).1,
                None => RouteMethod::new(),
            };
            let methods = methods.method(operation.method, operation.endpoint);
            by_path.push((operation.path, methods));
        }
        by_path.into_iter().fold(route, |route, (path, methods)| {
            let path = path.replace('{', ":").replace('}', "");
            route.at(format!("{}{path}", vendor.base()), methods)
        })
    })
}

/// The paths of all vendors in the form of the OpenAPI document, for the layers that read methods
/// and operation ids there. `x-internal`: the document's known fields do not hold for them.
pub(crate) fn paths() -> Map<String, Value> {
    let mut paths = Map::new();
    for vendor in Vendor::ALL {
        for operation in vendor.operations() {
            let path = format!("{}{}", vendor.base(), operation.path);
            let methods = paths.entry(path).or_insert_with(|| json!({}));
            methods[operation.method.as_str().to_lowercase()] =
                json!({ "operationId": operation.id, "x-internal": true });
        }
    }
    paths
}

/// Whether a request sends one message, as `POST /v1/send` does.
pub(crate) fn is_send(method: &Method, path: &str) -> bool {
    let rest = Vendor::of_path(path).and_then(|vendor| {
        let rest = path.strip_prefix(vendor.base())?;
        Some((vendor, rest))
    });
    *method == Method::POST
        && rest.is_some_and(|(vendor, rest)| vendor.send_paths().contains(&rest))
}

/// Serves a request through `next`. If it is one of a vendor, its key is put where keys are looked
/// for, and errors and headers are in the vendor's form.
pub(crate) async fn wrap<E: Endpoint>(
    next: Arc<E>,
    mut request: Request,
) -> poem::Result<Response> {
    let Some(vendor) = Vendor::of_path(request.uri().path()) else {
        return next.call(request).await.map(IntoResponse::into_response);
    };
    move_key(vendor, &mut request);
    let has_key = request.headers().contains_key(header::AUTHORIZATION);
    let now = auth::context(&request).clock.now();
    let mut response = match next.call(request).await {
        Ok(output) => output.into_response(),
        Err(failure) => error::respond(failure),
    };
    if let Some(AnsweredFailure(failure)) = response.data::<AnsweredFailure>().cloned() {
        let VendorError { status, body } = vendor.error(&failure, has_key);
        let (_, body) = Json(body).into_response().into_parts();
        response.set_status(status);
        response.set_body(body);
    }
    rename_rate_headers(vendor, response.headers_mut(), now);
    Ok(response)
}

/// Puts the API key of a vendor's own header into `Authorization`.
fn move_key(vendor: Vendor, request: &mut Request) {
    let Some(name) = vendor.key_header() else {
        return;
    };
    let headers = request.headers_mut();
    // The vendor reads no other header.
    headers.remove(header::AUTHORIZATION);
    let Some(key) = headers.remove(name) else {
        return;
    };
    let bearer = [b"Bearer ", key.as_bytes()].concat();
    if let Ok(mut bearer) = HeaderValue::from_bytes(&bearer) {
        bearer.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, bearer);
    }
}

fn rename_rate_headers(vendor: Vendor, headers: &mut HeaderMap, now: Timestamp) {
    for (ours, theirs) in RATE_HEADERS.into_iter().zip(vendor.rate_headers()) {
        let Some(value) = headers.remove(ours) else {
            continue;
        };
        let seconds = value.to_str().ok().and_then(|text| text.parse().ok());
        let value = match seconds {
            Some(seconds) if ours == RATE_HEADERS[2] && vendor.has_reset_time() => {
                HeaderValue::from(now.timestamp().saturating_add(seconds))
            }
            Some(_) | None => value,
        };
        headers.insert(theirs, value);
    }
}
