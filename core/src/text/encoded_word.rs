//! Encoded words (RFC 2047): ASCII that a reader of a header decodes. What such a
//! word hides passes every check of the text that it stands in, so a text is judged
//! by what its readers see.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// What an encoded word begins with.
const BEGIN: &str = "=?";

/// As forgiving as readers are.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Whether a text holds anything that some reader takes for an encoded word.
#[must_use]
pub fn may_hold_one(text: &str) -> bool {
    text.contains(BEGIN)
}

/// Whether an encoded word in a text hides a control character, such as a line
/// break.
#[must_use]
pub fn hides_control(text: &str) -> bool {
    let mut rest = text;
    while let Some((_, after)) = rest.split_once(BEGIN) {
        if word_hides_control(after) {
            return true;
        }
        rest = after;
    }
    false
}

/// The same of one word, from its charset on; false where it is none. All charsets
/// that readers know write control characters as ASCII does, or (UTF-16) with zeros
/// among them, which count too.
fn word_hides_control(word: &str) -> bool {
    let mut parts = word.splitn(3, '?');
    let (Some(_charset), Some(encoding), Some(rest)) = (parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    // One that never ends is decoded by some readers all the same.
    let content = rest.split("?=").next().unwrap_or_default();
    let bytes = match encoding {
        "q" | "Q" => quoted(content),
        "b" | "B" => {
            let content: Vec<u8> = content.bytes().filter(|byte| *byte != b' ').collect();
            BASE64.decode(content).unwrap_or_default()
        }
        _ => return false,
    };
    bytes.iter().any(u8::is_ascii_control)
}

/// What stands for itself does not matter here: it was judged with the text.
fn quoted(content: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = content;
    while let Some((_, after)) = rest.split_once('=') {
        if let Some(Ok(byte)) = after.get(..2).map(hex::decode) {
            bytes.extend(byte);
        }
        rest = after;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hides_is_found() {
        for text in [
            "=?utf-8?q?x=0D=0ABcc:_evil@example.org?=",
            "=?UTF-8?Q?=0a?=",
            "Hello =?utf-8?q?a?= =?utf-8?q?=00?=",
            "=?utf-8?b?eA0KQmNjOiBldmlsQGV4YW1wbGUub3Jn?=",
            "=?iso-8859-1*en?B?DQo?=",
            "=?utf-8?q?never ends =0d",
            "=?=?utf-8?q?=0d?=",
            "=?utf-8?q?é=0d?=",
        ] {
            assert!(hides_control(text), "{text}");
        }
    }

    #[test]
    fn what_hides_nothing_passes() {
        for text in [
            "",
            "Hello",
            "a =? b",
            "=?utf-8?q?Gr=C3=BC=C3=9Fe?=",
            "=?utf-8?b?R3LDvMOfZQ==?=",
            "=?utf-8?x?=0d?=",
            "=?utf-8?b?not base64!?=",
            "100 %=?",
            "=?utf-8?q?=",
            "=?utf-8?q?=é?=",
        ] {
            assert!(!hides_control(text), "{text}");
        }
    }
}
