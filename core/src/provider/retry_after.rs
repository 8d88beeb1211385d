//! Parses how long a provider asks to wait, in all forms that providers use: HTTP dates
//! (RFC 9110, 5.6.7: three forms), mail dates (RFC 5322, 3.3 and 4.3: years of two and
//! three digits, zones as numbers and as names), dates in RFC 3339, in Go's format and in
//! prose, and durations in words. Mailgun writes `try again after Mon, 25 Aug 2025 07:00:31
//! UTC` (github.com/mailgun/mailgun-java/issues/50) and `try again after 120 seconds`.
//!
//! A time in the past and a duration of zero are no wait.

use std::time::Duration;

use chrono::{Datelike as _, FixedOffset, NaiveDate, NaiveTime, TimeZone as _};

use super::call::RETRY_AFTER_MAX;
use crate::clock::Timestamp;

/// Date formats without the day of the week. `%B` also matches short names.
const DATES: [&str; 5] = ["%d %B %Y", "%d-%B-%Y", "%B %d %Y", "%Y-%m-%d", "%Y/%m/%d"];
/// Time formats without the zone.
const TIMES: [&str; 4] = ["%I:%M:%S %p", "%I:%M %p", "%H:%M:%S%.f", "%H:%M"];
/// The most words of a date.
const DATE_WORDS_MAX: usize = 12;
/// Time zones by name, in hours east of Greenwich (RFC 5322, 4.3, and other names of UTC).
const ZONES: [(&str, i32); 14] = [
    ("UTC", 0),
    ("GMT", 0),
    ("UT", 0),
    ("Z", 0),
    ("UCT", 0),
    ("ZULU", 0),
    ("EDT", -4),
    ("EST", -5),
    ("CDT", -5),
    ("CST", -6),
    ("MDT", -6),
    ("MST", -7),
    ("PDT", -7),
    ("PST", -8),
];
/// Phrases that introduce a wait or a date.
const PHRASES: [&str; 17] = [
    "again after ",
    "again in ",
    "again at ",
    "again on ",
    "retry after ",
    "retry-after: ",
    "retry after: ",
    "retry in ",
    "retry at ",
    "wait ",
    "wait for ",
    "wait until ",
    "reset in ",
    "resets in ",
    "reset at ",
    "resets at ",
    "resets on ",
];
/// Words that introduce one only if the text is about waiting: `limit exceeded, messages
/// are taken in 5 minutes`, `blocked until Nov 25, 2026`.
const WEAK_PHRASES: [&str; 2] = [" in ", "until "];
const ABOUT_WAITING: [&str; 12] = [
    "again",
    "retry",
    "later",
    "limit",
    "exceeded",
    "quota",
    "throttl",
    "blocked",
    "disabled",
    "suspended",
    "paused",
    "not allowed",
];
/// Words that may stand between the phrase and the number.
const FILLERS: [&str; 8] = [
    "for ",
    "at least ",
    "about ",
    "around ",
    "approximately ",
    "another ",
    "up to ",
    "the next ",
];

/// The wait until a date; `None` if it is in the past.
pub(super) fn wait_until_date(date: &str, now: Timestamp) -> Option<Duration> {
    wait_until(parse_time(date)?, now)
}

/// The wait until a time; `None` if it is in the past.
pub(super) fn wait_until(parse_time: Timestamp, now: Timestamp) -> Option<Duration> {
    let wait = (parse_time - now).to_std().ok()?;
    (!wait.is_zero()).then_some(wait)
}

/// The wait that a text names: `…, try again after 120 seconds`, or a date. At most
/// [`RETRY_AFTER_MAX`].
pub(super) fn wait_in_text(text: &str, now: Timestamp) -> Option<Duration> {
    let lower = text.to_ascii_lowercase();
    let is_about_waiting = ABOUT_WAITING.iter().any(|words| lower.contains(words));
    let weak_phrases: &[&str] = if is_about_waiting { &WEAK_PHRASES } else { &[] };
    let wait = first_wait(text, &lower, &PHRASES, now);
    let wait = wait.or_else(|| first_wait(text, &lower, weak_phrases, now))?;
    Some(wait.min(RETRY_AFTER_MAX))
}

/// The first wait that follows one of the phrases.
fn first_wait(text: &str, lower: &str, phrases: &[&str], now: Timestamp) -> Option<Duration> {
    let positions = phrases.iter().flat_map(|words| {
        let found = lower.match_indices(words);
        found.map(|(at, words)| (at + words.len(), words))
    });
    let mut positions: Vec<(usize, &str)> = positions.collect();
    positions.sort_unstable();
    positions.into_iter().find_map(|(at, words)| {
        let asked = text.get(at..)?.trim_start();
        let takes_number = !words.ends_with("until ") && !words.starts_with(' ');
        relative(asked, takes_number)
            .filter(|wait| !wait.is_zero())
            .or_else(|| wait_until_date(asked, now))
    })
}

/// `120 seconds`, `2 minutes and 5 seconds`, `an hour`, `1m30s`. A number alone means
/// seconds if `takes_number`.
fn relative(text: &str, takes_number: bool) -> Option<Duration> {
    let bounded: String = text.chars().take(100).collect();
    let lower = bounded.to_ascii_lowercase();
    let mut rest = lower.as_str();
    while let Some(after) = FILLERS.iter().find_map(|words| rest.strip_prefix(words)) {
        rest = after.trim_start();
    }
    let mut total: Option<Duration> = None;
    loop {
        let (number, after) = number(rest)?;
        let after = after.trim_start();
        let letters = after.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (unit, after) = after.split_at(letters);
        let seconds = match unit {
            "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3_600.0,
            "d" | "day" | "days" => 86_400.0,
            "ms" => 0.001,
            "" if takes_number && total.is_none() && after.trim_matches([' ', '.']).is_empty() => {
                1.0
            }
            _ => return total,
        };
        let wait = Duration::try_from_secs_f64(number * seconds).ok();
        let wait = wait.unwrap_or(RETRY_AFTER_MAX);
        total = Some(total.unwrap_or_default().saturating_add(wait));
        rest = after.trim_start_matches([' ', ',']);
        rest = rest.strip_prefix("and ").unwrap_or(rest).trim_start();
        if number_length(rest).is_none() {
            return total;
        }
    }
}

fn number(text: &str) -> Option<(f64, &str)> {
    let length = number_length(text)?;
    let (digits, rest) = text.split_at(length);
    let number = match digits.trim_end() {
        "a" | "an" | "one" => 1.0,
        digits => digits.parse().ok()?,
    };
    Some((number, rest))
}

/// The length of the number at the start of a text.
fn number_length(text: &str) -> Option<usize> {
    let words = ["an ", "a ", "one "];
    if let Some(word) = words.iter().find(|word| text.starts_with(**word)) {
        return Some(word.len());
    }
    let digits = text
        .bytes()
        .take_while(|byte| byte.is_ascii_digit() || *byte == b'.');
    let length = digits.count();
    // A full stop ends the sentence.
    let length = text[..length].trim_end_matches('.').len();
    (length > 0).then_some(length)
}

/// The date at the start of a text, in any of the forms. A date without a time is the
/// start of its day.
fn parse_time(text: &str) -> Option<Timestamp> {
    let text = normalized(text);
    let parsed = DATES
        .iter()
        .find_map(|form| NaiveDate::parse_and_remainder(&text, form).ok());
    let (date, rest) = parsed?;
    let date = date.with_year(full_year(date.year()))?;
    let rest = rest.strip_prefix(['T', 't', ' ']).unwrap_or(rest);
    let parsed = TIMES
        .iter()
        .find_map(|form| NaiveTime::parse_and_remainder(rest, form).ok());
    let (time, rest) = match parsed {
        Some(parsed) => parsed,
        // An invalid time.
        None if rest.starts_with(|c: char| c.is_ascii_digit()) => return None,
        None => (NaiveTime::MIN, rest),
    };
    let parse_time = offset(rest)?.from_local_datetime(&date.and_time(time));
    Some(parse_time.single()?.to_utc())
}

/// The words of a date with the year before the time, without the day of the week, commas
/// and filler words.
fn normalized(text: &str) -> String {
    let words = text.split_whitespace().take(DATE_WORDS_MAX);
    let words = words.map(|word| word.trim_end_matches(','));
    let words = words.filter(|word| !matches!(*word, "at" | "on" | "the" | ""));
    let mut words: Vec<&str> = words.collect();
    if words.first().is_some_and(|first| is_day_of_week(first)) {
        words.remove(0);
    }
    // `Nov 25 18:16:05 2026`, `Nov 25 18:16:05 UTC 2026`.
    if words.get(2).is_some_and(|word| word.contains(':')) {
        let later = words.iter().take(5).skip(3);
        let mut later = later.map(|word| word.trim_end_matches('.'));
        let is_year = |word: &str| word.len() == 4 && word.bytes().all(|b| b.is_ascii_digit());
        if let Some(place) = later.position(is_year) {
            let year = words.remove(3 + place);
            words.insert(2, year.trim_end_matches('.'));
        }
    }
    words.join(" ")
}

/// RFC 5322, 4.3: years of two and three digits.
fn full_year(year: i32) -> i32 {
    match year {
        0..50 => year + 2_000,
        50..1_000 => year + 1_900,
        _ => year,
    }
}

fn is_day_of_week(word: &str) -> bool {
    const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
    let word = word.trim_end_matches(',').to_ascii_lowercase();
    word.bytes().all(|byte| byte.is_ascii_alphabetic())
        && DAYS.iter().any(|day| word.starts_with(day))
}

/// The zone at the start of a text; UTC if there is none (RFC 9110, 5.6.7) or if the
/// sentence continues.
fn offset(text: &str) -> Option<FixedOffset> {
    let zone = text.split_whitespace().next().unwrap_or_default();
    let zone = zone.trim_matches([',', ';', '(', ')', '.', '!', '"', '\'']);
    let is_word = |zone: &str| zone.bytes().all(|byte| byte.is_ascii_alphabetic());
    let is_known = |zone: &str| {
        ZONES
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case(zone))
    };
    let is_in_capitals = |zone: &str| zone.bytes().all(|byte| byte.is_ascii_uppercase());
    if zone.is_empty() || is_word(zone) && !is_known(zone) && !is_in_capitals(zone) {
        return FixedOffset::east_opt(0);
    }
    let letters = zone.bytes().take_while(u8::is_ascii_alphabetic).count();
    let (name, numbers) = zone.split_at(letters);
    let hours = match name {
        "" => 0,
        name => ZONES
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, hours)| *hours)?,
    };
    let seconds = if numbers.is_empty() {
        0
    } else {
        numeric_offset(numbers)?
    };
    FixedOffset::east_opt(hours * 3_600 + seconds)
}

/// `+0200`, `-05:30`, `+2`.
fn numeric_offset(text: &str) -> Option<i32> {
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits: String = text[1..].chars().filter(|c| *c != ':').collect();
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    let (hours, minutes) = match digits.len() {
        1 | 2 => (digits.as_str(), "0"),
        4 if is_number => digits.split_at(2),
        _ => return None,
    };
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    is_number.then_some(sign * (hours * 3_600 + minutes * 60))
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    /// Wed, 25 Nov 2026 18:06:05 UTC.
    fn now() -> Timestamp {
        DateTime::from_timestamp(1_795_629_965, 0).unwrap()
    }

    #[test]
    fn a_date_is_parsed_with_every_form_of_its_zone() {
        for date in [
            "Wed, 25 Nov 2026 18:16:05 UTC",
            "Wed, 25 Nov 2026 18:16:05 GMT",
            "Wed, 25 Nov 2026 18:16:05 UT",
            "Wed, 25 Nov 2026 18:16:05 Z",
            "Wed, 25 Nov 2026 18:16:05 utc",
            "Wed, 25 Nov 2026 18:16:05 +0000",
            "Wed, 25 Nov 2026 18:16:05 -0000",
            "Wed, 25 Nov 2026 18:16:05 +00:00",
            "Wed, 25 Nov 2026 19:16:05 +0100",
            "Wed, 25 Nov 2026 23:46:05 +05:30",
            "Wed, 25 Nov 2026 10:16:05 -0800",
            "Wed, 25 Nov 2026 13:16:05 EST",
            "Wed, 25 Nov 2026 10:16:05 PST",
            "Wed, 25 Nov 2026 20:16:05 UTC+2",
            "Wed, 25 Nov 2026 20:16:05 GMT+02:00",
            "Wed, 25 Nov 2026 18:16:05 +0000 (UTC)",
            "Wed, 25 Nov 2026 18:16:05",
            "Wed, 25 Nov 2026 18:16:05 (UTC)",
            "Wed, 25 Nov 2026 18:16:05, because of a limit",
            // RFC 5322, 4.3.
            "Wed, 25 Nov 26 18:16:05 UTC",
            "25 Nov 126 18:16:05 GMT",
            "25 Nov 26 13:16:05 EST",
            "Wed, 25-Nov-2026 18:16:05 GMT",
            "Wed Nov 25 18:16:05 UTC 2026",
            "Nov 25 18:16:05 2026.",
            "Nov 25, 2026 6:16:05 PM UTC",
            "November 25, 2026, 06:16:05 pm",
            "Nov 25, 2026 at 6:16:05PM UTC",
            "Wednesday, November 25, 2026 at 18:16:05 UTC",
            "2026/11/25 18:16:05",
            "2026-11-25t18:16:05z",
            "2026-11-25 18:16:05Z",
            "2026-11-25 18:16:05.123456789 +0000 UTC",
            "Wed, 25 November 2026 18:16:05 UTC",
            "wed, 25 nov 2026 18:16:05 UTC.",
            "25 Nov 2026 18:16:05 UTC",
            // A wrong day of the week is ignored.
            "Tue, 25 Nov 2026 18:16:05 UTC",
            "Wednesday, 25-Nov-26 18:16:05 GMT",
            "Wed Nov 25 18:16:05 2026",
            "2026-11-25T18:16:05Z",
            "2026-11-25T18:16:05.000Z",
            "2026-11-25T19:16:05+01:00",
            "2026-11-25 18:16:05 UTC",
            "2026-11-25 18:16:05 +0000 UTC",
            "2026-11-25 18:16:05",
        ] {
            let expected = Some(600);
            let seconds = |wait: Option<Duration>| wait.map(|wait| wait.as_secs());
            let wait = wait_until_date(date, now());
            assert_eq!(seconds(wait), expected, "{date}");
            for phrases in [
                "limit exceeded, try again after",
                "please wait until",
                "blocked until",
                "your limit resets at",
            ] {
                let text = format!("{phrases} {date}");
                let wait = wait_in_text(&text, now());
                assert_eq!(seconds(wait), expected, "{text}");
            }
        }
    }

    #[test]
    fn a_date_without_seconds_is_parsed() {
        for date in [
            "2026-11-25T18:16Z",
            "2026-11-25T19:16+01:00",
            "2026-11-25 18:16 UTC",
            "2026-11-25 18:16",
            "Nov 25, 2026 6:16 PM UTC",
            "Nov 25, 2026 6:16 PM",
            "Nov 25, 2026 at 6:16 pm (UTC).",
            "25 Nov 2026 18:16 GMT",
            "25 Nov 26 18:16",
            "Wed, 25 Nov 2026 18:16 +0000",
        ] {
            let expected = Some(Duration::from_secs(595));
            assert_eq!(wait_until_date(date, now()), expected, "{date}");
        }
        let day = Some(Duration::from_secs(21_235));
        for date in [
            "2026-11-26",
            "Nov 26, 2026.",
            "26 November 2026",
            "26 Nov 26",
        ] {
            assert_eq!(wait_until_date(date, now()), day, "{date}");
            let text = format!("Domain x is disabled until {date}");
            let wait = wait_in_text(&text, now());
            assert_eq!(wait, Some(RETRY_AFTER_MAX), "{text}");
        }
    }

    #[test]
    fn a_past_or_invalid_date_is_no_wait() {
        for past in [
            "Wed, 25 Nov 2026 18:00:00 UTC",
            "Wed, 25 Nov 2026 18:06:05 UTC",
            "25 Nov 25 18:16:05 UTC",
            "25 Nov 99 18:16:05 UTC",
            "25 Nov 1994 18:16:05 UTC",
            "2026-11-25",
            "2026-11-25T18:06Z",
            "Nov 25, 2026 6:16 AM UTC",
        ] {
            assert_eq!(wait_until_date(past, now()), None, "{past}");
            let text = format!("limit exceeded, try again after {past}");
            assert_eq!(wait_in_text(&text, now()), None, "{text}");
        }
        for none in [
            "",
            "soon",
            "Wed, 31 Feb 2026 18:16:05 UTC",
            "Wed, 25 Nov 2026 18:16:05 XYZ",
            "Wed, 25 Nov 2026 18:16:05 +123",
            "25",
            "2026-11-25 25:16:05",
            "2026-13-26",
            "Nov 2026",
            "18:16:05 UTC",
        ] {
            assert_eq!(wait_until_date(none, now()), None, "{none}");
        }
    }

    #[test]
    fn a_wait_in_words_is_parsed() {
        for (words, seconds) in [
            ("try again after 120 seconds", Some(120)),
            ("Try again in 2 minutes.", Some(120)),
            ("try again after 1 minute and 30 seconds", Some(90)),
            ("try again after 1m30s", Some(90)),
            ("please retry after 90", Some(90)),
            ("try again after 90.", Some(90)),
            ("try again after 2.5 minutes", Some(150)),
            ("try again in an hour", Some(3_600)),
            ("try again in a minute, please", Some(60)),
            ("try again after 3 days", Some(3_600)),
            ("try again after 999999999999999999999 seconds", Some(3_600)),
            (
                "limit exceeded, try again after 1h. See our page.",
                Some(3_600),
            ),
            ("try again after Wed, 25 Nov 2026 20:16:05 UTC", Some(3_600)),
            ("try again at 2026-11-25T18:07:05Z", Some(60)),
            ("wait 30 seconds", Some(30)),
            ("Please wait for at least 5 minutes.", Some(300)),
            ("please wait another 2 min", Some(120)),
            ("limit exceeded: messages are taken in 5 minutes", Some(300)),
            ("retry in 1 hour", Some(3_600)),
            ("Retry in about 10 minutes", Some(600)),
            ("quota exceeded. Retry-After: 90", Some(90)),
            ("the limit resets in 45s", Some(45)),
            ("try again later, in a minute", Some(60)),
            ("do not wait; try again in 2 minutes", Some(120)),
            (
                "100 messages sent in 2 hours: limit exceeded, try again in 5 minutes",
                Some(300),
            ),
            ("try again after 0 seconds", None),
            ("try again after 0", None),
            ("Retry-After: 0", None),
            ("wait 0.0 minutes", None),
            ("try again after -5 seconds", None),
            ("wait a few minutes", None),
            ("blocked until 5 minutes pass", Some(300)),
            ("blocked until 2027", None),
            ("limit of 3 in 2026", None),
            ("limited, wait until you are told", None),
            ("the message must be delivered in 3 days", None),
            ("try again after lunch", None),
            ("try again", None),
            ("try again after 5 apples", None),
            ("", None),
        ] {
            let expected = seconds.map(Duration::from_secs);
            assert_eq!(wait_in_text(words, now()), expected, "{words}");
        }
    }
}
