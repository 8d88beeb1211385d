//! Which requests are a machine's. Machines fetch pixels and follow links too:
//! gateways that look for malware, programs that fetch images before anybody reads,
//! previews in chats. What is recognised is in the history and not in the metrics.
//!
//! It stays a guess. Microsoft's scanners, for one, call themselves what browsers do
//! and call from addresses that change; of theirs only the quick ones are known.

use std::sync::LazyLock;

use chrono::TimeDelta;
use http::HeaderMap;
use http::header::USER_AGENT;
use isbot::Bots;

/// Programs that fetch images for a person who is reading: the proxies of Gmail and
/// Yahoo, which ask when a message is opened. They name themselves as robots do.
const PROXIES_OF_READERS: [&str; 2] = ["googleimageproxy", "yahoomailproxy"];

/// What all of Mail Privacy Protection's requests call themselves: Apple fetches
/// the images of a message whether or not it is read.
/// <https://help.socketlabs.com/docs/identifying-apple-mpp-opens-in-notification-api-events>
const APPLE_PROXY: &str = "Mozilla/5.0";

/// Patterns of the list that are mail programs which people read with.
const MAIL_PROGRAMS: [&str; 3] = ["^email", "^navermailapp", "^ramblermail"];

/// What is missing from the list: gateways that say who they are, and the preview of
/// a chat.
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

/// Headers by which browsers and proxies say that nobody looks yet, and what they
/// then say.
const AHEAD: [(&str, &str); 4] = [
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

/// Whether a request is a machine's. `age` is how long ago the copy was made, and
/// `window` how long nobody can have read it; zero means that nobody looks at that.
#[must_use]
pub fn is_machine(headers: &HeaderMap, age: TimeDelta, window: TimeDelta) -> bool {
    let is_quick = !window.is_zero() && age < window;
    is_quick || is_ahead(headers) || is_machines_name(headers)
}

/// Whether a request for a page is not a person's, who follows a link: a machine's by its
/// name, one that is ahead of its reader, or a browser's for something else than a page
/// (`Sec-Fetch-Dest`, <https://www.w3.org/TR/fetch-metadata/#sec-fetch-dest-header>).
#[must_use]
pub fn is_no_visit(headers: &HeaderMap) -> bool {
    let destination = headers.get("sec-fetch-dest");
    let is_page = destination.is_none_or(|value| value.as_bytes() == b"document");
    !is_page || is_ahead(headers) || is_machines_name(headers)
}

/// Whether a browser or a proxy says that it asks before anybody looks.
fn is_ahead(headers: &HeaderMap) -> bool {
    let says = |name: &str, word: &str| {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        value.is_some_and(|value| value.to_ascii_lowercase().contains(word))
    };
    AHEAD.iter().any(|(name, word)| says(name, word))
}

fn is_machines_name(headers: &HeaderMap) -> bool {
    let name = headers.get(USER_AGENT);
    let name = name.map(|name| String::from_utf8_lossy(name.as_bytes()));
    let name = name.as_deref().unwrap_or_default().trim();
    if name.is_empty() || name == APPLE_PROXY {
        return true;
    }
    let lower = name.to_ascii_lowercase();
    let is_readers = PROXIES_OF_READERS.iter().any(|proxy| lower.contains(proxy));
    !is_readers && BOTS.is_bot(&lower)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const BROWSER: &str = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36";

    fn named(name: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(USER_AGENT, HeaderValue::from_str(name).unwrap());
        is_machine(&headers, TimeDelta::days(1), TimeDelta::seconds(2))
    }

    #[test]
    fn people_are_not_taken_for_machines() {
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
            assert!(!named(name), "{name}");
        }
    }

    #[test]
    fn machines_that_say_so_are_known() {
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
            assert!(named(name), "{name}");
        }
    }

    #[test]
    fn who_fetches_ahead_or_at_once_is_a_machine() {
        let mut headers = HeaderMap::new();
        headers.insert(USER_AGENT, HeaderValue::from_static(BROWSER));
        let window = TimeDelta::seconds(2);
        for (milliseconds, expected) in [(-500, true), (0, true), (1_999, true), (2_000, false)] {
            let age = TimeDelta::milliseconds(milliseconds);
            assert_eq!(is_machine(&headers, age, window), expected);
        }
        for age in [TimeDelta::zero(), TimeDelta::seconds(-1)] {
            assert!(!is_machine(&headers, age, TimeDelta::zero()));
        }
        for (name, value) in [
            ("sec-purpose", "prefetch;prerender"),
            ("purpose", "Prefetch"),
            ("x-purpose", "preview"),
            ("x-moz", "prefetch"),
        ] {
            let mut headers = headers.clone();
            headers.insert(name, HeaderValue::from_static(value));
            assert!(is_machine(&headers, TimeDelta::days(1), window), "{name}");
        }
    }
}
