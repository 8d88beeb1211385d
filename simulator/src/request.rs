//! A request as the handlers see it: with its whole body, and a few accessors.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap};
use http::{Method, Uri};
use percent_encoding::percent_decode_str;

/// One request with its body.
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// The body was longer than this path allows, and was discarded.
    pub(crate) too_large: bool,
}

impl Request {
    pub(crate) fn path(&self) -> &str {
        self.uri.path()
    }

    /// The segments of the path, still percent-encoded.
    pub(crate) fn segments(&self) -> Vec<&str> {
        self.path().trim_start_matches('/').split('/').collect()
    }

    /// A header's text; `None` if it is absent or not text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The content type without its parameters.
    pub(crate) fn media_type(&self) -> &str {
        self.headers
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.split(';').next())
            .unwrap_or_default()
            .trim()
    }

    pub(crate) fn is_json(&self) -> bool {
        self.media_type().eq_ignore_ascii_case("application/json")
    }

    /// A query parameter, decoded.
    pub(crate) fn query(&self, name: &str) -> Option<String> {
        self.uri.query()?.split('&').find_map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (key == name).then(|| decode(&value.replace('+', " ")))
        })
    }

    /// A query parameter that must be a number within bounds; otherwise the default.
    pub(crate) fn query_number(&self, name: &str, default: usize, max: usize) -> usize {
        self.query(name)
            .and_then(|text| text.parse().ok())
            .unwrap_or(default)
            .min(max)
    }
}

/// Percent-decodes; bytes that are not UTF-8 become replacement characters.
pub(crate) fn decode(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}
