//! Paths that cannot be read.

use percent_encoding::percent_decode_str;
use poem::Request;
use poem::http::Uri;
use poem::http::uri::PathAndQuery;

/// What stands for a segment that cannot be read: U+FFFD, which names nothing.
const ILLEGIBLE: &str = "%EF%BF%BD";

/// Puts something that names nothing in the place of each segment of which the
/// percent-decoding is not UTF-8. poem (3.1.12, `route/router.rs`) would else refuse the
/// whole path before any handler has a say; but an id that cannot be read is one that
/// does not exist, and a token that cannot be read is not valid.
pub(crate) fn make_legible(request: &mut Request) {
    if is_legible(request.uri().path()) {
        return;
    }
    let segments = request.uri().path().split('/');
    let legible = segments.map(|segment| {
        let segment = Some(segment).filter(|segment| is_legible(segment));
        segment.unwrap_or(ILLEGIBLE)
    });
    let mut path = legible.collect::<Vec<_>>().join("/");
    if let Some(query) = request.uri().query() {
        path.push('?');
        path.push_str(query);
    }
    let mut parts = request.uri().clone().into_parts();
    parts.path_and_query = PathAndQuery::try_from(path).ok();
    // Its parts are those of a URI that there was.
    if let Ok(uri) = Uri::from_parts(parts) {
        *request.uri_mut() = uri;
    }
}

fn is_legible(text: &str) -> bool {
    percent_decode_str(text).decode_utf8().is_ok()
}
