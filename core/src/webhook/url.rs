//! The URL of an endpoint.

use std::fmt;

use url::Url;

/// A URL that has the form of an endpoint's URL. Where it leads is checked by the address
/// guard at each call.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookUrl {
    text: String,
    url: Url,
}

/// Why a text is not such a URL. `Display` completes "the value …".
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// Not a URL, or not an HTTP URL.
    #[error("must be an HTTPS URL such as https://example.com/webhooks")]
    Malformed,
    #[error("must not be longer than {} characters", WebhookUrl::CHARS_MAX)]
    TooLong,
    /// Everyone who may list endpoints would see it.
    #[error("must not hold a user name or a password")]
    Credentials,
}

impl WebhookUrl {
    /// The maximum length, in characters; they are all ASCII.
    pub const CHARS_MAX: usize = 2_048;

    /// Parses an HTTPS or HTTP URL. Whether HTTP is allowed depends on the host.
    ///
    /// # Errors
    /// The first rule that the text breaks.
    pub fn parse(text: String) -> Result<Self, UrlError> {
        // The parser would drop white space and line breaks.
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(UrlError::Malformed);
        }
        if text.len() > Self::CHARS_MAX {
            return Err(UrlError::TooLong);
        }
        let url = Url::parse(&text).map_err(|_| UrlError::Malformed)?;
        if !matches!(url.scheme(), "https" | "http") || !url.has_host() {
            return Err(UrlError::Malformed);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(UrlError::Credentials);
        }
        Ok(Self { text, url })
    }

    /// Whether the scheme is HTTP, without TLS.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.url.scheme() == "http"
    }

    /// The text, as given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The parsed URL.
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.url
    }
}

/// Paths and queries often contain a token.
impl fmt::Debug for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookUrl")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<bool, UrlError> {
        WebhookUrl::parse(text.to_owned()).map(|url| url.is_plain())
    }

    #[test]
    fn only_http_urls_are_parsed_and_their_text_is_unchanged() {
        assert_eq!(parse("https://example.com/hooks?a=b#c"), Ok(false));
        assert_eq!(parse("HTTP://example.com"), Ok(true));
        let kept = WebhookUrl::parse("https://Example.com".to_owned()).unwrap();
        assert_eq!(kept.as_str(), "https://Example.com");
        for text in [
            "",
            "example.com",
            "//example.com",
            "https://",
            "https:// example.com",
            "https://example.com/\n",
            "https://exa\tmple.com",
            "https://b\u{fc}cher.example",
            "ftp://example.com",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "https://256.256.256.256",
        ] {
            assert_eq!(parse(text), Err(UrlError::Malformed), "{text}");
        }
        for text in ["https://user@example.com", "https://:pass@example.com"] {
            assert_eq!(parse(text), Err(UrlError::Credentials), "{text}");
        }
        let long = format!("https://example.com/{}", "a".repeat(2_029));
        assert_eq!(parse(&long), Err(UrlError::TooLong));
        assert_eq!(parse(&long[..2_048]), Ok(false));
    }
}
