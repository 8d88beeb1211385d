//! How long a provider asks us to wait, in the forms in which providers say it: HTTP
//! dates (RFC 9110, 5.6.7: three forms), mail dates (RFC 5322, 3.3 and 4.3: zones as
//! numbers and as names), dates as RFC 3339 and Go write them, and words. Mailgun writes
//! `try again after Mon, 25 Aug 2025 07:00:31 UTC`
//! (github.com/mailgun/mailgun-java/issues/50) and `try again after 120 seconds`.

use std::time::Duration;

use chrono::{FixedOffset, NaiveDateTime, TimeZone as _};

use super::call::RETRY_AFTER_MAX;
use crate::clock::Timestamp;

/// Dates without their day of the week and their zone.
const FORMS: [&str; 8] = [
    "%d %b %Y %H:%M:%S",
    "%d %B %Y %H:%M:%S",
    "%d %b %Y %H:%M",
    "%d-%b-%y %H:%M:%S",
    "%d-%b-%Y %H:%M:%S",
    "%b %d %H:%M:%S %Y",
    "%Y-%m-%dT%H:%M:%S%.f",
    "%Y-%m-%d %H:%M:%S%.f",
];
/// Zones by name, in hours east of Greenwich (RFC 5322, 4.3, and those that are UTC by
/// another name).
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
/// What stands before a wait in words.
const BEFORE: [&str; 5] = [
    "again after ",
    "again in ",
    "again at ",
    "retry after ",
    "retry in ",
];

/// The wait until a date; none left where it has passed.
pub(super) fn wait_until_date(date: &str, now: Timestamp) -> Option<Duration> {
    wait_until(moment(date)?, now)
}

pub(super) fn wait_until(moment: Timestamp, now: Timestamp) -> Option<Duration> {
    Some((moment - now).to_std().unwrap_or(Duration::ZERO))
}

/// The wait that a text asks for: `…, try again after 120 seconds`, or a date there.
/// Bounded by [`RETRY_AFTER_MAX`].
pub(super) fn wait_of_text(text: &str, now: Timestamp) -> Option<Duration> {
    let lower = text.to_ascii_lowercase();
    let from = BEFORE
        .iter()
        .filter_map(|words| lower.find(words).map(|at| at + words.len()))
        .min()?;
    let asked = text.get(from..)?.trim_start();
    let wait = relative(asked).or_else(|| wait_until_date(asked, now))?;
    Some(wait.min(RETRY_AFTER_MAX))
}

/// `120 seconds`, `2 minutes and 5 seconds`, `an hour`, `1m30s`; a number alone is
/// seconds.
fn relative(text: &str) -> Option<Duration> {
    let lower = text.to_ascii_lowercase();
    let mut rest = lower.as_str();
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
            "" if total.is_none() && after.trim_matches([' ', '.']).is_empty() => 1.0,
            _ => return total,
        };
        let wait = Duration::try_from_secs_f64(number * seconds).ok();
        let wait = wait.unwrap_or(RETRY_AFTER_MAX);
        total = Some(total.unwrap_or_default().saturating_add(wait));
        rest = after.trim_start_matches([' ', ',']);
        rest = rest.strip_prefix("and ").unwrap_or(rest).trim_start();
        if number_begins(rest).is_none() {
            return total;
        }
    }
}

fn number(text: &str) -> Option<(f64, &str)> {
    let length = number_begins(text)?;
    let (digits, rest) = text.split_at(length);
    let number = match digits.trim_end() {
        "a" | "an" | "one" => 1.0,
        digits => digits.parse().ok()?,
    };
    Some((number, rest))
}

/// How long the number is with which a text begins.
fn number_begins(text: &str) -> Option<usize> {
    let words = ["an ", "a ", "one "];
    if let Some(word) = words.iter().find(|word| text.starts_with(**word)) {
        return Some(word.len());
    }
    let digits = text
        .bytes()
        .take_while(|byte| byte.is_ascii_digit() || *byte == b'.');
    let length = digits.count();
    // A full stop is the sentence's.
    let length = text[..length].trim_end_matches('.').len();
    (length > 0).then_some(length)
}

/// A date in any of the forms, with whatever follows it.
fn moment(text: &str) -> Option<Timestamp> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let words = match words.split_first() {
        Some((first, rest)) if is_day_of_week(first) => rest,
        _ => &words[..],
    };
    let text = words.join(" ");
    let parsed = FORMS
        .iter()
        .find_map(|form| NaiveDateTime::parse_and_remainder(&text, form).ok());
    let (local, rest) = parsed?;
    let moment = offset(rest)?.from_local_datetime(&local).single()?;
    Some(moment.to_utc())
}

fn is_day_of_week(word: &str) -> bool {
    const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
    let word = word.trim_end_matches(',').to_ascii_lowercase();
    word.bytes().all(|byte| byte.is_ascii_alphabetic())
        && DAYS.iter().any(|day| word.starts_with(day))
}

/// The zone with which a text begins; UTC where there is none (RFC 9110, 5.6.7).
fn offset(text: &str) -> Option<FixedOffset> {
    let zone = text.split_whitespace().next().unwrap_or_default();
    let zone = zone.trim_end_matches([',', ';', ')', '.']);
    if zone.is_empty() {
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
        offset_of_numbers(numbers)?
    };
    FixedOffset::east_opt(hours * 3_600 + seconds)
}

/// `+0200`, `-05:30`, `+2`.
fn offset_of_numbers(text: &str) -> Option<i32> {
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
    fn a_date_is_read_with_every_form_of_its_zone() {
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
            "Wed, 25 November 2026 18:16:05 UTC",
            "wed, 25 nov 2026 18:16:05 UTC.",
            "25 Nov 2026 18:16:05 UTC",
            // A day of the week that is wrong says nothing.
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
            let expected = Some(Duration::from_mins(10));
            assert_eq!(wait_until_date(date, now()), expected, "{date}");
            let text = format!("limit exceeded, try again after {date}");
            assert_eq!(wait_of_text(&text, now()), expected, "{text}");
        }
        let past = wait_until_date("Wed, 25 Nov 2026 18:00:00 UTC", now());
        assert_eq!(past, Some(Duration::ZERO));
        for none in [
            "",
            "soon",
            "Wed, 31 Feb 2026 18:16:05 UTC",
            "Wed, 25 Nov 2026 18:16:05 XYZ",
            "Wed, 25 Nov 2026 18:16:05 +123",
            "25",
        ] {
            assert_eq!(wait_until_date(none, now()), None, "{none}");
        }
    }

    #[test]
    fn a_wait_in_words_is_read() {
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
            ("try again after lunch", None),
            ("try again", None),
            ("try again after 5 apples", None),
            ("", None),
        ] {
            let expected = seconds.map(Duration::from_secs);
            assert_eq!(wait_of_text(words, now()), expected, "{words}");
        }
    }
}
