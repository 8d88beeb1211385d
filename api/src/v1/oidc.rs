//! Sign-in at the OpenID Connect provider: the two redirects. A browser follows them, so every
//! failure is a redirect too, to the sign-in page with a word that says why.

use std::sync::Arc;

use poem::http::{HeaderValue, StatusCode, header};
use poem::{IntoResponse, Request, Response};
use poem_openapi::registry::{
    MetaHeader, MetaResponse, MetaResponses, MetaSchema, MetaSchemaRef, Registry,
};
use poem_openapi::{ApiResponse, OpenApi};
use waypost_core::audit::Actor;
use waypost_core::session::oidc::{Callback, Oidc, OidcRefusal, SIGN_IN_MAX};

use crate::context::Context;
use crate::middleware::auth::origin;
use crate::middleware::session_cookie;
use crate::v1::Section;

pub(crate) struct OidcApi {
    pub(crate) context: Arc<Context>,
}

/// The cookie of a sign-in that is under way at the provider.
const COOKIE: &str = "__Host-waypost_oidc";
/// The page that begins a sign-in, below the public URL.
const SIGN_IN_PAGE: &str = "/sign-in";
/// The reason for the page where no provider is configured.
const NOT_CONFIGURED: &str = "OIDC_NOT_CONFIGURED";

/// A redirect that sets cookies.
pub(crate) struct Redirect {
    location: String,
    cookies: Vec<String>,
}

impl IntoResponse for Redirect {
    fn into_response(self) -> Response {
        let mut response = StatusCode::FOUND.into_response();
        let headers = response.headers_mut();
        let location = HeaderValue::try_from(self.location);
        let location = location.unwrap_or_else(|_| HeaderValue::from_static(SIGN_IN_PAGE));
        headers.insert(header::LOCATION, location);
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        for cookie in self.cookies {
            if let Ok(cookie) = HeaderValue::try_from(cookie) {
                headers.append(header::SET_COOKIE, cookie);
            }
        }
        response
    }
}

impl ApiResponse for Redirect {
    fn meta() -> MetaResponses {
        let text = |name: &str, description: &str| MetaHeader {
            name: name.to_owned(),
            description: Some(description.to_owned()),
            required: true,
            deprecated: false,
            schema: MetaSchemaRef::Inline(Box::new(MetaSchema::new("string"))),
        };
        MetaResponses {
            responses: vec![MetaResponse {
                description: "A redirect, also after a failure: then to the sign-in page, whose parameter `error` says why.",
                status: Some(302),
                status_range: None,
                content: vec![],
                headers: vec![
                    text("Location", "Where the browser goes."),
                    text("Set-Cookie", "The cookie of the sign-in or of the session."),
                ],
            }],
        }
    }

    fn register(_registry: &mut Registry) {}
}

#[OpenApi(tag = "Section::Session")]
impl OidcApi {
    /// Begin a sign-in at the OpenID Connect provider
    ///
    /// Requires no API key and no session. Redirects the browser to the provider.
    #[oai(
        path = "/v1/session/oidc",
        method = "get",
        operation_id = "start_oidc_sign_in"
    )]
    async fn start_oidc_sign_in(&self) -> Redirect {
        let Some(oidc) = &self.context.oidc else {
            return self.failed(NOT_CONFIGURED);
        };
        match oidc.begin().await {
            Ok((url, cookie)) => Redirect {
                location: url.to_string(),
                cookies: vec![session_cookie::set(
                    COOKIE,
                    &cookie,
                    SIGN_IN_MAX.num_seconds(),
                )],
            },
            Err(refusal) => self.refused(&refusal),
        }
    }

    /// End a sign-in at the OpenID Connect provider
    ///
    /// Requires no API key and no session. The provider redirects the browser to this URL.
    /// Sets the cookie of a new session and redirects to the start page.
    #[oai(
        path = "/v1/session/oidc/callback",
        method = "get",
        operation_id = "complete_oidc_sign_in"
    )]
    async fn complete_oidc_sign_in(&self, request: &Request) -> Redirect {
        let Some(oidc) = &self.context.oidc else {
            return self.failed(NOT_CONFIGURED);
        };
        match self.finish(oidc, request).await {
            Ok(session) => Redirect {
                location: format!("{}/", self.context.accounts.public_url),
                cookies: vec![session, session_cookie::clear(COOKIE)],
            },
            Err(refusal) => self.refused(&refusal),
        }
    }
}

impl OidcApi {
    async fn finish(&self, oidc: &Oidc, request: &Request) -> Result<String, OidcRefusal> {
        let query = request.uri().query().unwrap_or_default();
        let parameter = |wanted: &str| {
            let mut pairs = url::form_urlencoded::parse(query.as_bytes());
            let found = pairs.find(|(name, _)| name == wanted);
            found.map(|(_, value)| value.into_owned())
        };
        let callback = Callback {
            code: parameter("code"),
            state: parameter("state"),
            cookie: session_cookie::read(request, COOKIE),
        };
        let origin = origin(request, Actor::System);
        let started = oidc.finish(callback, &origin).await?;
        Ok(session_cookie::begin(&started, self.context.clock.now()))
    }

    fn refused(&self, refusal: &OidcRefusal) -> Redirect {
        self.failed(refusal.code())
    }

    fn failed(&self, word: &str) -> Redirect {
        let public_url = &self.context.accounts.public_url;
        Redirect {
            location: format!("{public_url}{SIGN_IN_PAGE}?error={word}"),
            cookies: vec![session_cookie::clear(COOKIE)],
        }
    }
}
