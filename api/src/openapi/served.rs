//! A text that the API serves unchanged, compressed once: the document, and the page that
//! shows it.

use std::io::{Read as _, Write as _};
use std::sync::LazyLock;

use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use poem::http::{StatusCode, header};
use poem::{IntoResponse, Request, Response};
use sha2::{Digest as _, Sha256};

/// Makes the text.
type Make = Box<dyn FnOnce() -> String + Send + Sync>;

/// The text, which is made and compressed at the first request: most processes are never
/// asked for it. Only the compressed form is kept, and all responses share it.
pub(crate) struct ServedText {
    content_type: &'static str,
    /// The value of `Content-Security-Policy`, if the text is a page.
    security_policy: Option<&'static str>,
    compressed: LazyLock<Compressed, Box<dyn FnOnce() -> Compressed + Send + Sync>>,
}

struct Compressed {
    gzip: Bytes,
    etag: String,
}

impl ServedText {
    pub(crate) fn new(
        content_type: &'static str,
        security_policy: Option<&'static str>,
        make: Make,
    ) -> Self {
        Self {
            content_type,
            security_policy,
            compressed: LazyLock::new(Box::new(|| Compressed::of(&make()))),
        }
    }

    /// The response to a request: 304 if the client has the text already.
    pub(crate) fn respond(&self, request: &Request) -> Response {
        let Compressed { gzip, etag } = &*self.compressed;
        let builder = Response::builder()
            .header(header::ETAG, etag)
            .header(header::CACHE_CONTROL, "no-cache")
            .header(header::VARY, "Accept-Encoding");
        if request
            .header(header::IF_NONE_MATCH)
            .is_some_and(|known| lists(known, etag))
        {
            return builder.status(StatusCode::NOT_MODIFIED).finish();
        }
        let builder = match self.security_policy {
            Some(policy) => builder.header(header::CONTENT_SECURITY_POLICY, policy),
            None => builder,
        };
        let builder = builder.content_type(self.content_type);
        let accepted = request.header(header::ACCEPT_ENCODING);
        if accepted.is_some_and(accepts_gzip) {
            builder
                .header(header::CONTENT_ENCODING, "gzip")
                .body(gzip.clone())
        } else {
            let mut plain = Vec::new();
            match GzDecoder::new(&gzip[..]).read_to_end(&mut plain) {
                Ok(_) => builder.body(plain),
                Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
            }
        }
    }
}

impl Compressed {
    fn of(text: &str) -> Self {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        let gzip = encoder
            .write_all(text.as_bytes())
            .and_then(|()| encoder.finish());
        let gzip = gzip.expect("a buffer takes everything");
        let hash = Sha256::digest(&gzip);
        // Weak, since the compressed and the plain text share it.
        let etag = format!("W/\"{}\"", hex::encode(&hash[..16]));
        Self {
            gzip: gzip.into(),
            etag,
        }
    }
}

/// Whether `If-None-Match` lists an entity tag (RFC 9110, section 13.1.2).
fn lists(known: &str, etag: &str) -> bool {
    let strength = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    known
        .split(',')
        .any(|tag| tag.trim() == "*" || strength(tag) == strength(etag))
}

/// Whether `Accept-Encoding` allows gzip (RFC 9110, section 12.5.3).
fn accepts_gzip(accepted: &str) -> bool {
    accepted.split(',').any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let weight = weight.trim().strip_prefix("q=").unwrap_or("1");
        ["gzip", "x-gzip", "*"].contains(&name.trim())
            && weight.parse::<f32>().is_ok_and(|weight| weight > 0.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_used_only_where_it_is_accepted() {
        for accepted in ["gzip", "deflate, gzip;q=0.5", "*", "br, x-gzip"] {
            assert!(accepts_gzip(accepted), "{accepted}");
        }
        for refused in ["", "br", "gzip;q=0", "identity", "gzip; q=0.0"] {
            assert!(!accepts_gzip(refused), "{refused}");
        }
    }

    #[test]
    fn a_known_entity_tag_is_found_in_a_list() {
        assert!(lists("\"a\", W/\"b\"", "W/\"b\""));
        assert!(lists("*", "W/\"b\""));
        assert!(!lists("\"a\"", "W/\"b\""));
    }
}
