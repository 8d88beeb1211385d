//! The CSV file of a suppression import. Its first row names the columns; case, spaces,
//! hyphens and underscores in the names do not matter. Quotes are those of RFC 4180; a byte
//! order mark and any line ends are taken. Each mistake is named by the line on which its
//! row begins.

use chrono::SubsecRound as _;
use csv::{ReaderBuilder, StringRecord};
use waypost_core::address::{AddressHash, EmailAddress};
use waypost_core::clock::Timestamp;
use waypost_core::issue::Issue;
use waypost_core::suppression::SuppressionSource;
use waypost_core::suppression::import::{IMPORT_MAX, ImportEntry};

use super::time::read_moment;

/// The most columns of a file.
const COLUMNS_MAX: usize = 100;

/// The columns that are read, as their places. Others are ignored.
#[derive(Debug, Default)]
struct Columns {
    email: Option<usize>,
    email_hash: Option<usize>,
    source: Option<usize>,
    reason: Option<usize>,
    created_at: Option<usize>,
    count: usize,
}

/// Reads a file.
///
/// # Errors
/// All mistakes, as far as [`Issue::SHOWN_MAX`] needs them.
pub(crate) fn read(file: &str, now: Timestamp) -> Result<Vec<ImportEntry>, Vec<Issue>> {
    let file = file.strip_prefix('\u{feff}').unwrap_or(file);
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(file.as_bytes());
    let mut lines = Lines::of(file);
    let mut rows = reader.records().map(|row| {
        // The text is UTF-8, and nothing else fails in memory.
        let row = row.unwrap_or_default();
        let begin = row.position().map_or(0, csv::Position::byte);
        let line = lines.at(usize::try_from(begin).unwrap_or(usize::MAX));
        (row, line)
    });
    let Some((header, _)) = rows.next() else {
        return Err(vec![whole(
            "file is empty: its first row must name the columns",
        )]);
    };
    let columns = Columns::of(&header)?;
    let (mut entries, mut issues) = (Vec::new(), Vec::new());
    for (row, line) in rows {
        if entries.len() == IMPORT_MAX {
            issues.push(whole(&format!(
                "file must not hold more than {IMPORT_MAX} rows after the first"
            )));
            break;
        }
        match columns.entry(&row, now) {
            Ok(entry) => entries.push(entry),
            Err(issue) => issues.push(issue.under(&format!("lines.{line}"))),
        }
        if issues.len() > Issue::SHOWN_MAX {
            break;
        }
    }
    if issues.is_empty() && entries.is_empty() {
        issues.push(whole("file holds no row after the first"));
    }
    if issues.is_empty() {
        Ok(entries)
    } else {
        Err(issues)
    }
}

fn whole(message: &str) -> Issue {
    Issue::new("", message)
}

impl Columns {
    fn of(header: &StringRecord) -> Result<Self, Vec<Issue>> {
        if header.len() > COLUMNS_MAX {
            return Err(vec![whole(&format!(
                "file must not have more than {COLUMNS_MAX} columns"
            ))]);
        }
        let mut columns = Self {
            count: header.len(),
            ..Self::default()
        };
        let mut issues = Vec::new();
        for (place, name) in header.iter().enumerate() {
            let plain = name.replace(['_', '-', ' '], "").to_lowercase();
            let column = match plain.as_str() {
                "email" | "emailaddress" | "address" => &mut columns.email,
                "emailhash" => &mut columns.email_hash,
                "source" => &mut columns.source,
                "reason" => &mut columns.reason,
                "createdat" | "created" => &mut columns.created_at,
                _ => continue,
            };
            if column.replace(place).is_some() {
                let message = "is the name of two columns";
                issues.push(Issue::new(format!("lines.1.{plain}"), message));
            }
        }
        if columns.email.is_none() && columns.email_hash.is_none() {
            issues.push(Issue::new(
                "lines.1",
                "must name the columns, one of them email or emailHash",
            ));
        }
        if issues.is_empty() {
            Ok(columns)
        } else {
            Err(issues)
        }
    }

    /// The entry of a row; the issue of the first mistake in it.
    fn entry(&self, row: &StringRecord, now: Timestamp) -> Result<ImportEntry, Issue> {
        if row.len() != self.count {
            let (own, all) = (row.len(), self.count);
            return Err(whole(&format!(
                "has {own} fields, but the first row has {all}"
            )));
        }
        let field = |place: Option<usize>| {
            let text = place.and_then(|place| row.get(place)).map(str::trim);
            text.filter(|text| !text.is_empty())
        };
        let hash = match (field(self.email), field(self.email_hash)) {
            (Some(email), None) => EmailAddress::parse(email)
                .map_err(|error| Issue::new("email", error.to_string()))?
                .hash(),
            (None, Some(hash)) => read_hash(hash)
                .ok_or_else(|| Issue::new("emailHash", "must be a SHA-256 in hexadecimal"))?,
            (Some(_), Some(_)) => {
                return Err(Issue::new(
                    "email",
                    "must not be given together with emailHash",
                ));
            }
            (None, None) => return Err(Issue::new("email", "is required")),
        };
        let source = field(self.source).map(|text| text.to_uppercase().parse());
        let source = source
            .transpose()
            .map_err(|message: String| Issue::new("source", message))?;
        // Other services give a sentence as the reason.
        let reason = field(self.reason).and_then(|text| text.to_uppercase().parse().ok());
        let created_at = field(self.created_at).map(|text| read_time(text, now));
        Ok(ImportEntry {
            hash,
            source: source.or(reason).unwrap_or(SuppressionSource::Import),
            created_at: created_at.transpose()?,
        })
    }
}

fn read_hash(text: &str) -> Option<AddressHash> {
    let digits = text.as_bytes();
    let mut hash = [0; 32];
    if digits.len() != 2 * hash.len() || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    for (byte, pair) in hash.iter_mut().zip(text.as_bytes().chunks(2)) {
        let pair = std::str::from_utf8(pair).ok()?;
        *byte = u8::from_str_radix(pair, 16).ok()?;
    }
    Some(AddressHash(hash))
}

/// A time in ISO 8601, or in Unix seconds as SendGrid exports it.
fn read_time(text: &str, now: Timestamp) -> Result<Timestamp, Issue> {
    // A number of eight digits is a day: 20261120.
    let seconds = (text.len() > 8).then(|| text.parse().ok()).flatten();
    let time = seconds.and_then(|seconds| Timestamp::from_timestamp(seconds, 0));
    match time.or_else(|| read_moment(text)) {
        Some(time) if time > now => Err(Issue::new("createdAt", "must not be in the future")),
        Some(time) if time < Timestamp::UNIX_EPOCH => {
            Err(Issue::new("createdAt", "must be in 1970 or later"))
        }
        Some(time) => Ok(time.trunc_subsecs(6)),
        None => Err(Issue::new(
            "createdAt",
            "must be a time in ISO 8601 such as 2026-11-20T12:00:00Z",
        )),
    }
}

/// The numbers of lines. The reader's own numbers are those of the line ends before a row.
struct Lines<'a> {
    text: &'a [u8],
    place: usize,
    line: usize,
}

impl<'a> Lines<'a> {
    fn of(text: &'a str) -> Self {
        Self {
            text: text.as_bytes(),
            place: 0,
            line: 1,
        }
    }

    /// The line of the row that begins at a place or after the line ends there. Places must
    /// not decrease.
    fn at(&mut self, place: usize) -> usize {
        while let Some(byte) = self.text.get(self.place) {
            let is_end = match byte {
                b'\n' => true,
                b'\r' => self.text.get(self.place + 1) != Some(&b'\n'),
                _ => false,
            };
            if self.place >= place && !matches!(byte, b'\r' | b'\n') {
                break;
            }
            self.line += usize::from(is_end);
            self.place += 1;
        }
        self.line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        Timestamp::from_timestamp(1_795_000_000, 0).unwrap()
    }

    fn hash(email: &str) -> AddressHash {
        EmailAddress::parse(email).unwrap().hash()
    }

    fn paths(file: &str) -> Vec<String> {
        let issues = read(file, now()).unwrap_err();
        issues.into_iter().map(|issue| issue.path).collect()
    }

    #[test]
    fn line_ends_quotes_and_marks_of_all_kinds_are_read() {
        for file in [
            "email\na@b.example\nc@d.example\n",
            "email\r\na@b.example\r\nc@d.example",
            "\u{feff}email\r\na@b.example\r\n\r\nc@d.example\r\n\r\n",
            "email\ra@b.example\rc@d.example\r",
            "\"email\"\n\"a@b.example\"\n\" C@D.example \"\n",
            "name,E-Mail\n\"Lovelace, \"\"Ada\"\"\na line\",a@b.example\n,c@d.example\n",
            "Email Address,note\na@b.example,\nc@d.example,\"x\"\n",
        ] {
            let entries = read(file, now()).unwrap();
            let found: Vec<AddressHash> = entries.iter().map(|entry| entry.hash).collect();
            assert_eq!(
                found,
                [hash("a@b.example"), hash("c@d.example")],
                "{file:?}"
            );
        }
    }

    #[test]
    fn sources_and_times_are_optional() {
        let file = "created,reason,email,source\n\
                    1443651125,550 5.1.1 no such user,a@b.example,\n\
                    2024-02-01T00:00:00+01:00,complaint,a@b.example,\n\
                    ,complaint,a@b.example,Bounce\n";
        let entries = read(file, now()).unwrap();
        let found: Vec<_> = entries
            .iter()
            .map(|entry| (entry.source, entry.created_at.map(|at| at.timestamp())))
            .collect();
        let expected = [
            (SuppressionSource::Import, Some(1_443_651_125)),
            (SuppressionSource::Complaint, Some(1_706_742_000)),
            (SuppressionSource::Bounce, None),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_was_exported_can_be_imported() {
        let own = hash("a@b.example");
        let file = format!("emailHash\n{}\n", own.to_hex().to_uppercase());
        assert_eq!(read(&file, now()).unwrap()[0].hash, own);
    }

    #[test]
    fn mistakes_are_named_by_their_line() {
        for (file, expected) in [
            ("", vec![""]),
            ("\u{feff}", vec![""]),
            ("email\n", vec![""]),
            ("a@b.example\nc@d.example\n", vec!["lines.1"]),
            ("email;source\na@b.example;BOUNCE\n", vec!["lines.1"]),
            (
                "email,E-MAIL\na@b.example,c@d.example\n",
                vec!["lines.1.email"],
            ),
            ("email\r\na@b.example\r\nnobody\r\n", vec!["lines.3.email"]),
            ("email\n\n\nnobody\n", vec!["lines.4.email"]),
            ("email\r\n\r\nnobody\r\n", vec!["lines.3.email"]),
            ("email\rnobody\r", vec!["lines.2.email"]),
            (
                "note,email\n\"two\nlines\",a@b.example\n,nobody\n",
                vec!["lines.4.email"],
            ),
            ("email,note\na@b.example\n", vec!["lines.2"]),
            ("email\na@b.example,c@d.example\n", vec!["lines.2"]),
            ("email\n\"a@b.example\nc@d.example\n", vec!["lines.2.email"]),
            (
                "email,source\na@b.example,spam\n,BOUNCE\n",
                vec!["lines.2.source", "lines.3.email"],
            ),
            (
                "email,createdAt\na@b.example,2999-01-01T00:00:00Z\n",
                vec!["lines.2.createdAt"],
            ),
            (
                "email,createdAt\na@b.example,yesterday\n",
                vec!["lines.2.createdAt"],
            ),
            (
                "email,createdAt\na@b.example,-99999999999\n",
                vec!["lines.2.createdAt"],
            ),
            (
                "email,createdAt\na@b.example,99999999999999999999\n",
                vec!["lines.2.createdAt"],
            ),
            ("emailHash\n00\n", vec!["lines.2.emailHash"]),
            (
                "emailHash\nü0000000000000000000000000000000000000000000000000000000000000\n",
                vec!["lines.2.emailHash"],
            ),
            ("email\n=cmd|' /C calc'!A0\n", vec!["lines.2.email"]),
            ("email\na@b.example\u{0}\n", vec!["lines.2.email"]),
        ] {
            assert_eq!(paths(file), expected, "{file:?}");
        }
    }

    #[test]
    fn rows_columns_and_mistakes_are_bounded() {
        let many = |rows: usize| format!("email\n{}", "a@b.example\n".repeat(rows));
        assert_eq!(read(&many(IMPORT_MAX), now()).unwrap().len(), IMPORT_MAX);
        assert_eq!(paths(&many(IMPORT_MAX + 1)), [""]);
        assert_eq!(paths(&format!("email{}\n", ",".repeat(COLUMNS_MAX))), [""]);
        let wrong = format!("email\n{}", "x\n".repeat(5_000));
        assert_eq!(paths(&wrong).len(), Issue::SHOWN_MAX + 1);
    }
}
