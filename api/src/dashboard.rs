//! The dashboard: static files, built from `dashboard/` and compiled into the program.
//!
//! Every page of the dashboard has an address of its own, so a browser that opens any path
//! outside the API gets `index.html`, which shows the page. A client that does not ask for
//! HTML gets the API's 404 there, as before.

use std::collections::HashMap;
use std::sync::Arc;

use poem::http::{Method, header};
use poem::{Endpoint, IntoResponse, Request, Response};
use rust_embed::RustEmbed;
use url::Url;

use crate::served::{ASK_EACH_TIME, ServedAs, ServedFile};

/// Paths that are never the dashboard's.
const OTHERS: [&str; 6] = [
    "/v1",
    "/compat",
    "/openapi.json",
    "/docs",
    "/healthz",
    "/readyz",
];
/// Folder of the files whose names carry the hash of their content.
const ASSETS: &str = "assets/";
/// A page that shows mail loads the images of a message from anywhere, once the reader
/// asked for them: the frame of a message inherits this policy, and forbids them until then
/// by a stricter one of its own. Libraries of the dashboard set styles by `<style>`.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
    img-src 'self' data: https: http:; font-src 'self' data:; connect-src 'self'; \
    frame-src 'self'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'";
const PAGE_HEADERS: &[(&str, &str)] = &[
    ("content-security-policy", POLICY),
    ("x-content-type-options", "nosniff"),
    // A link in a message must not tell where it was read.
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("x-dns-prefetch-control", "off"),
];
const FILE_HEADERS: &[(&str, &str)] = &[("x-content-type-options", "nosniff")];
/// The base address of all links in `index.html` as it is built.
const BASE: &str = "<base href=\"/\" />";

#[derive(RustEmbed)]
#[folder = "../dashboard/dist"]
struct DashboardFiles;

/// The files of the dashboard by their paths, without the first slash.
pub(crate) struct Dashboard {
    index: ServedFile,
    files: HashMap<String, ServedFile>,
}

impl Dashboard {
    /// The dashboard below the path of `public_url`.
    pub(crate) fn new(public_url: &str) -> Self {
        let base = Url::parse(public_url).map(|url| url.path().trim_end_matches('/').to_owned());
        let base = base.unwrap_or_default();
        let served_as = ServedAs {
            content_type: "text/html; charset=utf-8",
            caching: ASK_EACH_TIME,
            headers: PAGE_HEADERS,
        };
        let index = ServedFile::new(
            served_as,
            Box::new(move || {
                let html = read("index.html");
                let html = String::from_utf8_lossy(&html);
                let base = format!("<base href=\"{base}/\" />");
                html.replacen(BASE, &base, 1).into_bytes()
            }),
        );
        let names = DashboardFiles::iter().filter(|name| name != "index.html");
        let files = names.map(|name| (name.clone().into_owned(), file(name.into_owned())));
        Self {
            index,
            files: files.collect(),
        }
    }

    /// The response to a request for a page or a file of the dashboard.
    fn respond(&self, request: &Request) -> Option<Response> {
        if !asks_for_dashboard(request) {
            return None;
        }
        let file = self.files.get(request.uri().path().trim_start_matches('/'));
        let file = file.or_else(|| asks_for_page(request).then_some(&self.index))?;
        Some(file.respond(request))
    }
}

/// Serves the dashboard, and all else through `next`.
pub(crate) async fn wrap<E: Endpoint>(
    next: Arc<E>,
    request: Request,
    dashboard: Arc<Dashboard>,
) -> poem::Result<Response> {
    match dashboard.respond(&request) {
        Some(response) => Ok(response),
        None => next.call(request).await.map(IntoResponse::into_response),
    }
}

/// Whether a request can be for the dashboard. Such requests need neither a key nor
/// Postgres, and count against the public limit.
pub(crate) fn asks_for_dashboard(request: &Request) -> bool {
    let path = request.uri().path();
    let is_other = OTHERS.iter().any(|other| {
        path.strip_prefix(other)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
    let is_read = [Method::GET, Method::HEAD].contains(request.method());
    is_read
        && !is_other
        && (asks_for_page(request) || DashboardFiles::get(path.trim_start_matches('/')).is_some())
}

/// Whether the client is a browser that opens a page, or asks for the first one.
fn asks_for_page(request: &Request) -> bool {
    let accepted = request.header(header::ACCEPT).unwrap_or_default();
    request.uri().path() == "/" || accepted.contains("text/html")
}

fn file(name: String) -> ServedFile {
    let caching = match name.starts_with(ASSETS) {
        true => "public, max-age=31536000, immutable",
        false => ASK_EACH_TIME,
    };
    let served_as = ServedAs {
        content_type: content_type(&name),
        caching,
        headers: FILE_HEADERS,
    };
    ServedFile::new(served_as, Box::new(move || read(&name)))
}

fn read(name: &str) -> Vec<u8> {
    let file = DashboardFiles::get(name).expect("the program holds every file that it lists");
    file.data.into_owned()
}

/// The types of the files that the build writes; a test compares.
fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("woff2") => "font/woff2",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_a_known_type() {
        for name in DashboardFiles::iter().filter(|name| name != "index.html") {
            assert_ne!(content_type(&name), "application/octet-stream", "{name}");
        }
    }

    #[test]
    fn the_page_knows_its_base_and_has_no_inline_script() {
        let html = String::from_utf8(read("index.html")).unwrap();
        assert!(html.contains(BASE));
        let scripts = html.split("<script").skip(1);
        assert!(scripts.clone().count() > 0);
        for script in scripts {
            let (tag, rest) = script.split_once('>').unwrap();
            assert!(tag.contains("src=\"./assets/"), "{tag}");
            assert!(rest.starts_with("</script>"), "an inline script");
        }
    }
}
