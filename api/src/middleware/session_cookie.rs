//! The cookie of a session, and the defence against requests that another site makes with it.
//!
//! The prefix `__Host-` makes browsers refuse the cookie from other hosts, from other paths and
//! without `Secure`, so no other site can plant one. `SameSite=Lax` keeps it from most requests
//! of other sites. A request that changes something must also carry a header that a form cannot
//! set and that a script of another site may set only if this server allows it, which it never
//! does, and an `Origin` of ours.

use poem::Request;
use poem::http::{Method, header};
use url::Url;
use waypost_core::clock::Timestamp;
use waypost_core::secret::{ExposeSecret, Secret};
use waypost_core::session::StartedSession;

use crate::error::{Failure, Reason};
use crate::middleware::auth::context;

/// The name of the cookie.
pub(crate) const NAME: &str = "__Host-waypost_session";
/// The header that another site cannot set.
const CSRF_HEADER: &str = "x-waypost-csrf";

/// The value of `Set-Cookie` that begins a session.
pub(crate) fn begin(started: &StartedSession, now: Timestamp) -> String {
    let seconds = (started.expires_at - now).num_seconds().max(0);
    set(NAME, &started.token, seconds)
}

/// The value of `Set-Cookie` that stores a secret for some seconds.
pub(crate) fn set(name: &str, value: &Secret, seconds: i64) -> String {
    let value = value.expose_secret();
    format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; Secure; SameSite=Lax")
}

/// The value of `Set-Cookie` that removes a cookie.
pub(crate) fn clear(name: &str) -> String {
    set(name, &Secret::from(""), 0)
}

/// The value of a cookie. Of several with the name none counts: somebody has planted one.
pub(crate) fn read(request: &Request, name: &str) -> Option<String> {
    let lines = request.headers().get_all(header::COOKIE).iter();
    let pairs = lines.flat_map(|line| line.to_str().unwrap_or_default().split(';'));
    let mut found = pairs.filter_map(|pair| {
        let (key, value) = pair.trim().split_once('=')?;
        (key == name).then(|| value.to_owned())
    });
    let value = found.next()?;
    found.next().is_none().then_some(value)
}

/// Refuses a request with a session that another site may have made.
///
/// # Errors
/// `Denied` with the reason `CROSS_ORIGIN`.
pub(crate) fn check_origin(request: &Request) -> Result<(), Failure> {
    if is_safe(request.method())
        || (has_csrf_header(request) && has_own_origin(request) == Some(true))
    {
        return Ok(());
    }
    Err(cross_origin())
}

/// Refuses a request to sign in that another site may have made: it could sign the user in as
/// somebody else. Programs that are no browsers send no `Origin`.
///
/// # Errors
/// `Denied` with the reason `CROSS_ORIGIN`.
pub(crate) fn check_origin_of_anonymous(request: &Request) -> Result<(), Failure> {
    let is_ours = has_own_origin(request).unwrap_or(true);
    if is_safe(request.method()) || (has_csrf_header(request) && is_ours) {
        return Ok(());
    }
    Err(cross_origin())
}

fn cross_origin() -> Failure {
    Failure::Denied(
        Reason::CrossOrigin,
        "The request must have the header X-Waypost-Csrf: 1 and the Origin of this service",
    )
}

fn is_safe(method: &Method) -> bool {
    method == Method::GET || method == Method::HEAD
}

fn has_csrf_header(request: &Request) -> bool {
    request.header(CSRF_HEADER) == Some("1")
}

/// Whether the `Origin` is ours; `None` if there is none.
fn has_own_origin(request: &Request) -> Option<bool> {
    let mut origins = request.headers().get_all(header::ORIGIN).iter();
    let origin = origins.next()?;
    let origin = origin.to_str().unwrap_or_default();
    if origins.next().is_some() {
        return Some(false);
    }
    let is_public = origin == context(request).public_origin;
    Some(is_public || is_of_host(origin, request.header("host")))
}

/// Whether an origin is that of the host which the client asked.
fn is_of_host(origin: &str, host: Option<&str>) -> bool {
    let Some(host) = host else {
        return false;
    };
    let rest = ["https://", "http://"].iter();
    let mut rest = rest.filter_map(|scheme| origin.strip_prefix(scheme));
    // Both are compared as a URL has them: a browser leaves the usual port out of both.
    rest.next().is_some_and(|authority| {
        let is_plain =
            Url::parse(origin).is_ok_and(|url| url.origin().ascii_serialization() == origin);
        is_plain && authority.eq_ignore_ascii_case(host)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_of_the_host_that_was_asked() {
        for (origin, host, is_ours) in [
            ("https://mail.example.com", Some("mail.example.com"), true),
            ("http://127.0.0.1:8080", Some("127.0.0.1:8080"), true),
            ("https://mail.example.com", Some("MAIL.example.com"), true),
            ("https://mail.example.com", Some("example.com"), false),
            ("https://evil.example", Some("mail.example.com"), false),
            (
                "https://mail.example.com:8443",
                Some("mail.example.com"),
                false,
            ),
            ("https://mail.example.com", None, false),
            ("null", Some("null"), false),
            ("ftp://mail.example.com", Some("mail.example.com"), false),
            (
                "https://a@mail.example.com",
                Some("a@mail.example.com"),
                false,
            ),
            (
                "https://mail.example.com/",
                Some("mail.example.com/"),
                false,
            ),
        ] {
            assert_eq!(is_of_host(origin, host), is_ours, "{origin} {host:?}");
        }
    }

    #[test]
    fn of_two_cookies_of_the_name_none_counts() {
        let request = |cookies: &[&str]| {
            let builder = Request::builder();
            cookies
                .iter()
                .fold(builder, |builder, cookie| builder.header("cookie", *cookie))
                .finish()
        };
        let read = |cookies: &[&str]| read(&request(cookies), NAME);
        let one = format!("a=b; {NAME}=x; c");
        assert_eq!(read(&[&one]), Some("x".to_owned()));
        assert_eq!(read(&[&one, &format!("{NAME}=y")]), None);
        assert_eq!(read(&["a=b", "__host-waypost_session=x"]), None);
    }
}
