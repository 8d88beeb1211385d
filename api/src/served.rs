//! A file that the API serves unchanged, compressed once: the document, the page that shows
//! it, and the files of the dashboard.

use std::io::{Read as _, Write as _};
use std::sync::LazyLock;

use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use poem::http::{StatusCode, header};
use poem::{IntoResponse, Request, Response};
use sha2::{Digest as _, Sha256};

/// Makes the content.
type Make = Box<dyn FnOnce() -> Vec<u8> + Send + Sync>;

/// How a file is served.
pub(crate) struct ServedAs {
    pub(crate) content_type: &'static str,
    /// The value of `Cache-Control`.
    pub(crate) caching: &'static str,
    /// Further headers.
    pub(crate) headers: &'static [(&'static str, &'static str)],
}

/// `Cache-Control` of a file that may change: the client asks each time whether it did.
pub(crate) const ASK_EACH_TIME: &str = "no-cache";

/// The file, which is made and compressed at the first request: most processes are never
/// asked for it. Only the compressed form is kept, and all responses share it.
pub(crate) struct ServedFile {
    served_as: ServedAs,
    compressed: LazyLock<Compressed, Box<dyn FnOnce() -> Compressed + Send + Sync>>,
}

struct Compressed {
    gzip: Bytes,
    etag: String,
}

impl ServedFile {
    pub(crate) fn new(served_as: ServedAs, make: Make) -> Self {
        Self {
            served_as,
            compressed: LazyLock::new(Box::new(|| Compressed::of(&make()))),
        }
    }

    /// The response to a request: 304 if the client has the file already.
    pub(crate) fn respond(&self, request: &Request) -> Response {
        let Compressed { gzip, etag } = &*self.compressed;
        let builder = Response::builder()
            .header(header::ETAG, etag)
            .header(header::CACHE_CONTROL, self.served_as.caching)
            .header(header::VARY, "Accept-Encoding");
        if request
            .header(header::IF_NONE_MATCH)
            .is_some_and(|known| lists(known, etag))
        {
            return builder.status(StatusCode::NOT_MODIFIED).finish();
        }
        let headers = self.served_as.headers.iter();
        let builder = headers.fold(builder, |builder, (name, value)| {
            builder.header(*name, *value)
        });
        let builder = builder.content_type(self.served_as.content_type);
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
    fn of(content: &[u8]) -> Self {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        let gzip = encoder.write_all(content).and_then(|()| encoder.finish());
        let gzip = gzip.expect("a buffer takes everything");
        let hash = Sha256::digest(&gzip);
        // Weak, since the compressed and the plain content share it.
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
