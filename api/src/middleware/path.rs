//! Path segments that cannot be decoded.

use percent_encoding::percent_decode_str;
use poem::Request;
use poem::http::Uri;
use poem::http::uri::PathAndQuery;

/// Replaces a segment that cannot be decoded: U+FFFD, which no route and no id matches.
const REPLACEMENT: &str = "%EF%BF%BD";

/// Replaces each path segment whose percent-decoding is not UTF-8. Otherwise poem (3.1.12,
/// `route/router.rs`) rejects the whole path before any handler runs. An id that cannot be
/// decoded does not exist (404), and a token that cannot be decoded is not valid.
pub(crate) fn replace_undecodable_segments(request: &mut Request) {
    if is_decodable(request.uri().path()) {
        return;
    }
    let segments = request.uri().path().split('/');
    let segments = segments.map(|segment| {
        if is_decodable(segment) {
            segment
        } else {
            REPLACEMENT
        }
    });
    let mut path = segments.collect::<Vec<_>>().join("/");
    if let Some(query) = request.uri().query() {
        path.push('?');
        path.push_str(query);
    }
    let mut parts = request.uri().clone().into_parts();
    parts.path_and_query = PathAndQuery::try_from(path).ok();
    if let Ok(uri) = Uri::from_parts(parts) {
        *request.uri_mut() = uri;
    }
}

fn is_decodable(text: &str) -> bool {
    percent_decode_str(text).decode_utf8().is_ok()
}
