//! What Waypost does with each field of a vendor.

use std::fmt::Write as _;

use super::{postmark, resend, sendgrid};

/// Whether Waypost does what the vendor does with a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Support {
    /// As the vendor does.
    Full,
    /// With the difference in the note.
    Partial,
    /// A request with the field is refused.
    Refused,
}

/// A field of a vendor's requests.
#[derive(Debug)]
pub(super) struct VendorField {
    /// Its path, with `[]` for the items of a list: `attachments[].content`.
    pub(super) path: &'static str,
    pub(super) support: Support,
    /// What it becomes, or what differs. Of a refused field it completes "is not supported: …".
    pub(super) note: &'static str,
}

impl Support {
    fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Partial => "partial",
            Self::Refused => "refused",
        }
    }
}

/// The tables of docs/compatibility.md, by the name of the table.
pub(crate) fn tables() -> Vec<(&'static str, String)> {
    vec![
        ("resend", table(resend::FIELDS)),
        ("sendgrid", table(sendgrid::FIELDS)),
        ("postmark", table(postmark::FIELDS)),
    ]
}

fn table(fields: &[VendorField]) -> String {
    let mut text = String::from("| field | support | in Waypost |\n|---|---|---|\n");
    for field in fields {
        let VendorField {
            path,
            support,
            note,
        } = field;
        let support = support.as_str();
        writeln!(text, "| `{path}` | {support} | {note} |").expect("a String takes all text");
    }
    text
}
