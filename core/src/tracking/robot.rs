//! Detects requests by bots. Malware scanners of mail gateways, mail programs that prefetch
//! images, and chat previews also fetch pixels and follow links. Detected bots appear in the
//! message's history, but not in the metrics.
//!
//! Detection is a heuristic. Microsoft's scanners, for example, use the user agents of
//! browsers and changing IP addresses; only those that react quickly are detected.

use std::sync::LazyLock;

use chrono::TimeDelta;
use http::HeaderMap;
use http::header::USER_AGENT;
use isbot::Bots;

/// The image proxies of Gmail and Yahoo. They fetch images when a person opens a message,
/// but their user agents look like bots.
const IMAGE_PROXIES: [&str; 2] = ["googleimageproxy", "yahoomailproxy"];

/// The user agent of Apple's Mail Privacy Protection, which fetches the images of every
/// message, read or not.
/// <https://help.socketlabs.com/docs/identifying-apple-mpp-opens-in-notification-api-events>
const APPLE_MAIL_PRIVACY_PROTECTION: &str = "Mozilla/5.0";

/// Patterns of the `isbot` list that match mail programs.
const MAIL_PROGRAMS: [&str; 3] = ["^email", "^navermailapp", "^ramblermail"];

/// Patterns that the `isbot` list does not have: mail gateways and chat previews.
/// <https://check.live-direct-marketing.online/blog/bot-clicks-security-scanners-detect>
const SCANNERS: [&str; 12] = [
    "barracuda",
    "proofpoint",
    "mimecast",
    "ciscosecureemail",
    "ironport",
    "\\btmes\\b",
    "microsoft office existence discovery",
    "^whatsapp/",
    "bingpreview",
    "safelinks",
    "url defense",
    "link ?preview",
];

/// The headers and values of prefetch requests.
const PREFETCH_HEADERS: [(&str, &str); 4] = [
    ("sec-purpose", "prefetch"),
    ("purpose", "prefetch"),
    ("x-purpose", "preview"),
    ("x-moz", "prefetch"),
];

static BOTS: LazyLock<Bots> = LazyLock::new(|| {
    let mut bots = Bots::default();
    bots.remove(&MAIL_PROGRAMS);
    bots.append(&SCANNERS);
    bots
});

/// Whether a request is a bot's. A request is also a bot's if `age`, the time since the mail
/// was built, is less than `window`, because no person reads so soon. A `window` of zero
/// disables that check.
#[must_use]
pub fn is_bot(headers: &HeaderMap, age: TimeDelta, window: TimeDelta) -> bool {
    let is_quick = !window.is_zero() && age < window;
    is_quick || is_prefetch(headers) || has_bot_user_agent(headers)
}

/// Whether a request is not a page visit by a person: it has a bot's user agent, is a
/// prefetch, or is a browser's request for something other than a page (`Sec-Fetch-Dest`,
/// <https://www.w3.org/TR/fetch-metadata/#sec-fetch-dest-header>).
#[must_use]
pub fn is_not_page_visit(headers: &HeaderMap) -> bool {
    let destination = headers.get("sec-fetch-dest");
    let is_page = destination.is_none_or(|value| value.as_bytes() == b"document");
    !is_page || is_prefetch(headers) || has_bot_user_agent(headers)
}

fn is_prefetch(headers: &HeaderMap) -> bool {
    let contains = |name: &str, word: &str| {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        value.is_some_and(|value| value.to_ascii_lowercase().contains(word))
    };
    PREFETCH_HEADERS
        .iter()
        .any(|(name, word)| contains(name, word))
}

fn has_bot_user_agent(headers: &HeaderMap) -> bool {
    let name = headers.get(USER_AGENT);
    let name = name.map(|name| String::from_utf8_lossy(name.as_bytes()));
    let name = name.as_deref().unwrap_or_default().trim();
    if name.is_empty() || name == APPLE_MAIL_PRIVACY_PROTECTION {
        return true;
    }
    let lower = name.to_ascii_lowercase();
    let is_image_proxy = IMAGE_PROXIES.iter().any(|proxy| lower.contains(proxy));
    !is_image_proxy && BOTS.is_bot(&lower)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const BROWSER: &str = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36";

    fn is_bot_named(name: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(USER_AGENT, HeaderValue::from_str(name).unwrap());
        is_bot(&headers, TimeDelta::days(1), TimeDelta::seconds(2))
    }

    #[test]
    fn people_are_not_detected_as_bots() {
        for name in [
            BROWSER,
            "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148",
            "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko)",
            "Mozilla/5.0 (X11; Linux x86_64; rv:144.0) Gecko/20100101 Thunderbird/144.0",
            "Mozilla/5.0 (Linux; Android 14; SM-S918B) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/129.0.0.0 Mobile Safari/537.36",
            "Mozilla/4.0 (compatible; MSIE 7.0; Windows NT 10.0; WOW64; Trident/7.0; .NET4.0C; Microsoft Outlook 16.0.5134; ms-office; MSOffice 16)",
            "Microsoft Office/16.0 (Windows NT 10.0; Microsoft Outlook 16.0.17328; Pro)",
            "Mozilla/5.0 (Windows NT 5.1; rv:11.0) Gecko Firefox/11.0 (via ggpht.com GoogleImageProxy)",
            "YahooMailProxy; https://help.yahoo.com/kb/yahoo-mail-for-desktop/SLN28749.html",
            "Outlook-iOS/709.2226530.prod.iphone (3.24.1)",
        ] {
            assert!(!is_bot_named(name), "{name}");
        }
    }

    #[test]
    fn bots_are_detected_by_their_user_agent() {
        for name in [
            "",
            " ",
            "Mozilla/5.0",
            "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
            "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)",
            "Slack-ImgProxy (+https://api.slack.com/robots)",
            "WhatsApp/2.23.20.0",
            "TelegramBot (like TwitterBot)",
            "LinkedInBot/1.0 (compatible; Mozilla/5.0; Apache-HttpClient +http://www.linkedin.com)",
            "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)",
            "Mozilla/5.0 (Windows NT 6.1; WOW64) SkypeUriPreview Preview/0.5",
            "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/120.0.0.0 Safari/537.36",
            "BarracudaCentral/1.0",
            "Mozilla/5.0 (compatible; Proofpoint URL Defense)",
            "CiscoSecureEmail/1.0",
            "Microsoft Office Existence Discovery",
            "curl/8.5.0",
            "Wget/1.21.4",
            "python-requests/2.32.3",
            "Go-http-client/1.1",
            "Java/17.0.9",
        ] {
            assert!(is_bot_named(name), "{name}");
        }
    }

    #[test]
    fn prefetches_and_immediate_requests_are_from_bots() {
        let mut headers = HeaderMap::new();
        headers.insert(USER_AGENT, HeaderValue::from_static(BROWSER));
        let window = TimeDelta::seconds(2);
        for (milliseconds, expected) in [(-500, true), (0, true), (1_999, true), (2_000, false)] {
            let age = TimeDelta::milliseconds(milliseconds);
            assert_eq!(is_bot(&headers, age, window), expected);
        }
        for age in [TimeDelta::zero(), TimeDelta::seconds(-1)] {
            assert!(!is_bot(&headers, age, TimeDelta::zero()));
        }
        for (name, value) in [
            ("sec-purpose", "prefetch;prerender"),
            ("purpose", "Prefetch"),
            ("x-purpose", "preview"),
            ("x-moz", "prefetch"),
        ] {
            let mut headers = headers.clone();
            headers.insert(name, HeaderValue::from_static(value));
            assert!(is_bot(&headers, TimeDelta::days(1), window), "{name}");
        }
    }
}
