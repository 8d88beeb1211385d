//! Searches logs for texts that must not be there, in all encodings in which they could
//! occur.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

/// Shorter texts would be found by chance.
const CHARS_MIN: usize = 8;

/// A text that must not be logged, with its encodings.
#[derive(Debug)]
pub(super) struct Needle {
    what: String,
    forms: Vec<String>,
}

impl Needle {
    pub(super) fn new(what: &str, text: &str) -> Self {
        assert!(text.len() >= CHARS_MIN, "{what} is too short to look for");
        let mut forms = vec![
            text.to_owned(),
            text.to_lowercase(),
            text.to_uppercase(),
            hex::encode(text),
            hex::encode_upper(text),
            url::form_urlencoded::byte_serialize(text.as_bytes()).collect(),
            // As `Debug` prints a list of bytes.
            text.as_bytes()
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(", "),
            text.escape_debug().to_string(),
        ];
        forms.extend(in_base64(text));
        forms.sort();
        forms.dedup();
        Self {
            what: what.to_owned(),
            forms,
        }
    }

    /// The lines of a log that contain it.
    pub(super) fn found_in(&self, log: &str) -> Vec<String> {
        let holds = |line: &&str| self.forms.iter().any(|form| line.contains(form));
        let lines = log.lines().filter(holds);
        lines.map(|line| format!("{}: {line}", self.what)).collect()
    }
}

/// The base64 characters of the text at every offset. The characters at its edges also
/// encode its neighbours and are left out.
fn in_base64(text: &str) -> Vec<String> {
    let mut forms = Vec::new();
    for before in 0..3_usize {
        let mut bytes = vec![0; before];
        bytes.extend_from_slice(text.as_bytes());
        let (first, end) = ((before * 8).div_ceil(6), bytes.len() * 8 / 6);
        for engine in [&STANDARD, &URL_SAFE] {
            forms.push(engine.encode(&bytes)[first..end].to_owned());
        }
    }
    forms
}

#[test]
fn a_text_is_found_in_every_form() {
    let text = "käse+canary@example.org";
    let needle = Needle::new("a text", text);
    for shown in [
        text.to_owned(),
        text.to_uppercase(),
        hex::encode(format!("before {text} after")),
        format!("{:?}", format!("before {text} after").as_bytes()),
        STANDARD.encode(format!("{text} after")),
        STANDARD.encode(format!("b{text} after")),
        URL_SAFE.encode(format!("be{text} after")),
        STANDARD.encode(format!("bef{text}")),
        "k%C3%A4se%2Bcanary%40example.org".to_owned(),
    ] {
        let log = format!("a line\nwith {shown} in it");
        assert_eq!(needle.found_in(&log).len(), 1, "{shown}");
    }
    assert!(needle.found_in("käse@example.org").is_empty());
}
