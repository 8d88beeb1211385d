//! One item of a provider's post, and the readers of its fields. Every text is bounded and
//! on one line, every time is plausible, every id is short enough for an index. A field
//! that is missing or of another type counts as absent.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, TimeDelta};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::lossy;
use crate::address::{EmailAddress, Mailbox};
use crate::clock::Timestamp;
use crate::provider::event::{EventIds, ProviderEvent, ProviderEventKind};
use crate::provider::mail::{TAG_ATTEMPT, TAG_MESSAGE, TAG_RECIPIENT};
use crate::provider::outcome::clean;

/// The longest id stored as it is, in bytes.
const ID_BYTES_MAX: usize = 255;
/// The longest URL stored, in bytes.
const URL_BYTES_MAX: usize = 1_024;
/// How much of an item's raw text is stored, in bytes.
const RAW_BYTES_MAX: usize = 16 << 10;
/// The earliest plausible time, 2000-01-01, in Unix seconds.
const EARLIEST_S: i64 = 946_684_800;
/// How far in the future an event may be: clocks differ, but not by days.
const AHEAD_MAX: TimeDelta = TimeDelta::days(1);

/// Why an item yields no event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoEvent {
    /// Its kind is not recorded.
    Skipped,
    /// It is not a JSON object, or lacks a field that every item of its kind has.
    Unreadable,
}

/// One item: a JSON object and its raw text.
pub(super) struct Item<'a> {
    raw: &'a str,
    value: Value,
    now: Timestamp,
}

/// The parts of an event that depend on the provider.
pub(super) struct EventDetails {
    pub(super) id: String,
    pub(super) kind: ProviderEventKind,
    pub(super) occurred_at: Timestamp,
    pub(super) ids: Option<EventIds>,
    pub(super) provider_message_id: Option<String>,
    pub(super) recipient: Option<EmailAddress>,
    pub(super) details: Details,
}

impl<'a> Item<'a> {
    /// Parses a text, repaired if necessary ([`lossy`]). The parser's depth limit applies:
    /// a text nested more than 128 levels deep is unreadable.
    pub(super) fn parse(raw: &'a str, now: Timestamp) -> Result<Self, NoEvent> {
        let value = match serde_json::from_str(raw) {
            // PostgreSQL cannot store NUL.
            Ok(value) if !raw.contains("\\u0000") => value,
            Ok(_) | Err(_) => {
                let repaired = lossy::repair(raw);
                serde_json::from_str(&repaired).map_err(|_| NoEvent::Unreadable)?
            }
        };
        let value: Value = value;
        if !value.is_object() {
            return Err(NoEvent::Unreadable);
        }
        Ok(Self { raw, value, now })
    }

    /// The value at a path of names; null if there is none.
    pub(super) fn at(&self, path: &[&str]) -> &Value {
        path.iter().fold(&self.value, |value, name| &value[*name])
    }

    /// The text at a path, if it is not empty.
    pub(super) fn text(&self, path: &[&str]) -> Option<&str> {
        non_empty(self.at(path))
    }

    /// The time at a path, in Unix seconds with or without a fraction.
    pub(super) fn seconds(&self, path: &[&str]) -> Timestamp {
        let value = self.at(path);
        let whole = value
            .as_i64()
            .and_then(|seconds| DateTime::from_timestamp(seconds, 0));
        let time = whole.or_else(|| {
            // A value beyond the range saturates and is not plausible.
            #[expect(
                clippy::cast_possible_truncation,
                reason = "a cast of floats saturates"
            )]
            let micros = (value.as_f64()? * 1e6).round() as i64;
            DateTime::from_timestamp_micros(micros)
        });
        self.plausible(time)
    }

    /// The time at a path, in RFC 3339.
    pub(super) fn date(&self, path: &[&str]) -> Timestamp {
        let time = self.text(path).and_then(parse_date);
        self.plausible(time)
    }

    /// The time itself; the current time if it is missing or implausible, as the best
    /// approximation.
    fn plausible(&self, time: Option<Timestamp>) -> Timestamp {
        let micros = time
            .filter(|time| time.timestamp() >= EARLIEST_S)
            .filter(|time| *time <= self.now + AHEAD_MAX)
            .and_then(|time| DateTime::from_timestamp_micros(time.timestamp_micros()));
        micros.unwrap_or(self.now)
    }

    /// The address at a path, with or without a display name.
    pub(super) fn address(&self, path: &[&str]) -> Option<EmailAddress> {
        self.text(path).and_then(parse_address)
    }

    /// The event of this item.
    pub(super) fn event(&self, parts: EventDetails) -> ProviderEvent {
        let raw = self.raw.as_bytes();
        ProviderEvent {
            id: parts.id,
            kind: parts.kind,
            occurred_at: parts.occurred_at,
            ids: parts.ids,
            provider_message_id: parts.provider_message_id,
            recipient: parts.recipient,
            details: parts.details.0,
            raw: raw[..raw.len().min(RAW_BYTES_MAX)].to_vec(),
        }
    }

    /// An id derived from parts that are the same when the event is reported again. Hashed,
    /// since the parts may hold an address.
    pub(super) fn derived_id(kind: &str, parts: &[&str]) -> String {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update(part.len().to_be_bytes());
            hash.update(part.as_bytes());
        }
        let hash = URL_SAFE_NO_PAD.encode(hash.finalize());
        let kind: String = kind.chars().filter(char::is_ascii_alphanumeric).collect();
        format!("{}:{hash}", &kind[..kind.len().min(32)])
    }

    /// The id of an event without one: a hash of its raw text.
    pub(super) fn content_id(&self, kind: &str) -> String {
        Self::derived_id(kind, &[self.raw])
    }
}

/// The details of an event for the message history.
#[derive(Default)]
pub(super) struct Details(Map<String, Value>);

impl Details {
    /// The reason in the words of the provider or of the receiving server: one line,
    /// without addresses.
    pub(super) fn reason(self, text: Option<&str>) -> Self {
        self.with("reason", text.map(clean))
    }

    /// The reply of the receiving server: its three-digit code if there is one, else the
    /// enhanced status (RFC 3463), such as `5.1.1`.
    pub(super) fn smtp_code(self, reply: Option<&str>, status: Option<&str>) -> Self {
        let code = reply
            .and_then(reply_code)
            .or_else(|| status.and_then(reply_code))
            .or_else(|| status.filter(|status| is_enhanced(status)));
        self.with("smtpCode", code.map(str::to_owned))
    }

    /// The link that was followed.
    pub(super) fn url(self, url: Option<&str>) -> Self {
        self.with("url", url.map(clean_url))
    }

    /// The user agent that opened the mail or followed the link.
    pub(super) fn user_agent(self, text: Option<&str>) -> Self {
        self.with("userAgent", text.map(clean))
    }

    fn with(mut self, name: &str, text: Option<String>) -> Self {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            self.0.insert(name.to_owned(), Value::String(text));
        }
        self
    }
}

/// The text of a value, if it is not empty.
pub(super) fn non_empty(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}

/// Our ids, if the provider returned all of them. The mail of several recipients has no
/// position.
pub(super) fn correlation_ids<'a>(tag: impl Fn(&str) -> &'a Value) -> Option<EventIds> {
    // We send strings; Mailgun parses its variables as JSON.
    let position = tag(TAG_RECIPIENT);
    let position = if position.is_null() {
        None
    } else {
        let number = match position.as_str() {
            Some(text) => text.parse().ok(),
            None => position
                .as_i64()
                .and_then(|number| i32::try_from(number).ok()),
        };
        Some(number.filter(|number| *number >= 0)?)
    };
    Some(EventIds {
        message_id: tag(TAG_MESSAGE).as_str()?.parse().ok()?,
        position,
        attempt_id: tag(TAG_ATTEMPT).as_str()?.parse().ok()?,
    })
}

/// A provider's event id. An id that does not fit an index is replaced by its hash.
pub(super) fn event_id(text: &str) -> String {
    if text.len() <= ID_BYTES_MAX && !text.chars().any(char::is_control) {
        text.to_owned()
    } else {
        Item::derived_id("long", &[text])
    }
}

/// A provider's message id. An id that is too long cannot be one from a reply to a send.
pub(super) fn message_id(text: Option<&str>) -> Option<String> {
    let text = text?.trim();
    let fits = (1..=ID_BYTES_MAX).contains(&text.len()) && !text.chars().any(char::is_control);
    fits.then(|| text.to_owned())
}

/// An address, with or without a display name.
pub(super) fn parse_address(text: &str) -> Option<EmailAddress> {
    let mailbox = Mailbox::parse(text).ok()?;
    Some(mailbox.address().clone())
}

/// A time in RFC 3339.
pub(super) fn parse_date(text: &str) -> Option<Timestamp> {
    let time = DateTime::parse_from_rfc3339(text).ok()?;
    Some(time.to_utc())
}

/// Whether a user agent names itself as a machine. `CUBOT` is a brand of phones.
pub(super) fn is_machine(user_agent: Option<&str>) -> bool {
    let user_agent = user_agent.unwrap_or_default().to_ascii_lowercase();
    let mut words = user_agent.split(|c: char| !c.is_ascii_alphabetic());
    words.any(|word| {
        word.ends_with("bot") && word != "cubot"
            || word.ends_with("crawler")
            || word.ends_with("spider")
    })
}

/// The first three-digit word, among the first three words, that can be a reply code (RFC
/// 5321, 4.2): `550 5.1.1 …`, `550-5.1.1 …`, `smtp;550 5.1.1 …`.
fn reply_code(text: &str) -> Option<&str> {
    let words = text.split(|c: char| c.is_whitespace() || c == ';' || c == '-');
    let mut words = words.filter(|word| !word.is_empty()).take(3);
    words.find(|word| {
        word.len() == 3
            && word.bytes().all(|byte| byte.is_ascii_digit())
            && (b'2'..=b'5').contains(&word.as_bytes()[0])
    })
}

/// Whether a text is an enhanced status: class, subject, detail (RFC 3463, 2).
fn is_enhanced(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    let numbers = parts.iter().all(|part| {
        (1..=3).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
    });
    parts.len() == 3 && numbers && matches!(parts[0], "2" | "4" | "5")
}

/// A URL, bounded and without control characters. Anything that looks like an address is
/// replaced: links carry addresses in their queries.
fn clean_url(url: &str) -> String {
    let mut cleaned = String::with_capacity(url.len().min(URL_BYTES_MAX));
    let is_border = |c: char| "/?&=#;,:".contains(c);
    for piece in url.split_inclusive(is_border) {
        let body = piece.trim_end_matches(is_border);
        let is_address = body.contains('@') || body.to_ascii_lowercase().contains("%40");
        cleaned.push_str(if is_address { "<address>" } else { body });
        cleaned.push_str(&piece[body.len()..]);
        if cleaned.len() > URL_BYTES_MAX {
            break;
        }
    }
    cleaned.retain(|c| !c.is_control());
    cleaned.truncate(cleaned.floor_char_boundary(URL_BYTES_MAX));
    cleaned
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn now() -> Timestamp {
        DateTime::from_timestamp(1_795_262_400, 0).unwrap()
    }

    fn at(micros: i64) -> Timestamp {
        DateTime::from_timestamp_micros(micros).unwrap()
    }

    #[test]
    fn an_implausible_time_is_replaced_by_the_current_time() {
        for (value, expected) in [
            (json!(1_600_000_000), at(1_600_000_000_000_000)),
            (json!(1_521_233_195.375_624), at(1_521_233_195_375_624)),
            // An hour ahead is plausible: clocks differ.
            (json!(1_795_266_000), at(1_795_266_000_000_000)),
            (json!(1_795_262_400 + 86_401), now()),
            (json!(0), now()),
            (json!(-1), now()),
            (json!(i64::MAX), now()),
            (json!(i64::MIN), now()),
            (json!(u64::MAX), now()),
            (json!(1e300), now()),
            (json!(-1e300), now()),
            (json!("1600000000"), now()),
            (json!(null), now()),
            (json!({}), now()),
        ] {
            let raw = json!({ "t": value }).to_string();
            let item = Item::parse(&raw, now()).unwrap();
            assert_eq!(item.seconds(&["t"]), expected, "{raw}");
        }
        for (text, expected) in [
            ("2022-09-02T14:29:19.1234567Z", at(1_662_128_959_123_456)),
            ("2022-09-02T16:29:19+02:00", at(1_662_128_959_000_000)),
            ("1969-12-31T23:59:59Z", now()),
            ("+262142-01-01T00:00:00Z", now()),
            ("9999-12-31T23:59:60Z", now()),
            ("yesterday", now()),
            ("", now()),
        ] {
            let raw = json!({ "t": text }).to_string();
            let item = Item::parse(&raw, now()).unwrap();
            assert_eq!(item.date(&["t"]), expected, "{raw}");
        }
    }

    #[test]
    fn our_ids_are_read_all_or_none() {
        let (message, attempt) = (
            "01934c6e-5c00-7000-8000-000000000001",
            "01934c6e-5c00-7000-8000-000000000002",
        );
        let read = |message: Value, position: Value, attempt: Value| {
            correlation_ids(|name| match name {
                TAG_MESSAGE => &message,
                TAG_RECIPIENT => &position,
                TAG_ATTEMPT => &attempt,
                other => panic!("{other}"),
            })
        };
        let ids = EventIds {
            message_id: message.parse().unwrap(),
            position: Some(7),
            attempt_id: attempt.parse().unwrap(),
        };
        let shared = EventIds {
            position: None,
            ..ids
        };
        let (good, tried) = (json!(message), json!(attempt));
        assert_eq!(read(good.clone(), json!("7"), tried.clone()), Some(ids));
        assert_eq!(read(good.clone(), json!(7), tried.clone()), Some(ids));
        assert_eq!(read(good.clone(), json!(null), tried.clone()), Some(shared));
        for (message, position, attempt) in [
            (json!(null), json!("7"), tried.clone()),
            (json!("x"), json!("7"), tried.clone()),
            (good.clone(), json!("-1"), tried.clone()),
            (good.clone(), json!("2147483648"), tried.clone()),
            (good.clone(), json!(1_u64 << 40), tried.clone()),
            (good.clone(), json!("seven"), tried.clone()),
            (good.clone(), json!("7"), json!(null)),
            (good.clone(), json!("7"), json!(12)),
        ] {
            assert_eq!(read(message, position, attempt), None);
        }
    }

    #[test]
    fn ids_fit_an_index() {
        assert_eq!(
            event_id("rbtnWrG1DVDGGGFHFyun0A=="),
            "rbtnWrG1DVDGGGFHFyun0A=="
        );
        let long = "x".repeat(256);
        for odd in [long.as_str(), "a\0b", "a\nb"] {
            let id = event_id(odd);
            assert!(id.starts_with("long:") && id.len() == 48, "{id}");
            assert_eq!(message_id(Some(odd)), None);
        }
        assert_ne!(event_id(&long), event_id(&"y".repeat(256)));
        assert_eq!(message_id(Some(" abc ")), Some("abc".to_owned()));
        assert_eq!(message_id(Some(" ")), None);
        // The same text split at another place has another id.
        let ids = [["a", "bc"], ["ab", "c"]].map(|parts| Item::derived_id("X y/", &parts));
        assert_ne!(ids[0], ids[1]);
        assert!(ids[0].starts_with("Xy:"), "{}", ids[0]);
    }

    #[test]
    fn details_are_bounded_and_hold_no_address() {
        let long = format!(
            "https://x.org/?to=ada@x.org&mail=ada%40x.org&{}",
            "y".repeat(2_000)
        );
        let details = Details::default()
            .reason(Some("550 no\nsuch user <ada@x.org>"))
            .url(Some(&long))
            .user_agent(Some("Mozilla\0/5.0 (me@x.org)"));
        let text = |name: &str| details.0[name].as_str().unwrap();
        assert_eq!(text("reason"), "550 no such user <address>");
        assert!(text("url").starts_with("https://x.org/?to=<address>&mail=<address>&yyy"));
        assert!(text("url").len() <= URL_BYTES_MAX);
        assert_eq!(text("userAgent"), "Mozilla /5.0 (<address>)");
        let cut = clean_url(&"ä".repeat(600));
        assert_eq!(cut, "ä".repeat(512));
    }

    #[test]
    fn reply_codes_are_found_in_the_first_words() {
        for (reply, status, code) in [
            (Some("550 5.1.1 unknown"), None, Some("550")),
            (Some("550-5.1.1 unknown"), None, Some("550")),
            (Some("smtp;550 5.1.1 unknown"), None, Some("550")),
            (Some("smtp; 421 4.4.1 away"), Some("4.4.1"), Some("421")),
            (Some("250"), None, Some("250")),
            (Some("mailbox full"), Some("5.2.2"), Some("5.2.2")),
            (None, Some("4.7.652"), Some("4.7.652")),
            (Some("605 suppressed"), None, None),
            (Some("see also the ticket 550"), None, None),
            (None, Some("9.1.1"), None),
            (None, Some("5.1"), None),
            (None, None, None),
        ] {
            let details = Details::default().smtp_code(reply, status);
            let found = details.0.get("smtpCode").and_then(Value::as_str);
            assert_eq!(found, code, "{reply:?} {status:?}");
        }
    }

    #[test]
    fn machines_are_recognised_by_their_user_agent() {
        for machine in [
            "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
            "AhrefsBot/7.0",
            "Baiduspider",
            "SomeCrawler 1.0",
        ] {
            assert!(is_machine(Some(machine)), "{machine}");
        }
        for person in [
            "Mozilla/5.0 (Linux; Android 9; CUBOT X19) AppleWebKit/537.36",
            "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
            "",
        ] {
            assert!(!is_machine(Some(person)), "{person}");
        }
        assert!(!is_machine(None));
    }

    #[test]
    fn the_raw_text_is_bounded() {
        let raw = json!({ "x": "y".repeat(20_000) }).to_string();
        let item = Item::parse(&raw, now()).unwrap();
        let event = item.event(EventDetails {
            id: String::new(),
            kind: ProviderEventKind::Sent,
            occurred_at: now(),
            ids: None,
            provider_message_id: None,
            recipient: None,
            details: Details::default(),
        });
        assert_eq!(event.raw, raw.as_bytes()[..16_384]);
    }

    #[test]
    fn a_deeply_nested_item_is_unreadable() {
        let deep = format!("{{\"x\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(Item::parse(&deep, now()).err(), Some(NoEvent::Unreadable));
    }
}
