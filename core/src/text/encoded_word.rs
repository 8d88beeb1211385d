//! Encoded words (RFC 2047): ASCII that a mail program decodes in a header. A check of the
//! raw text does not see the decoded characters, so this module decodes them.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// The start of an encoded word.
const BEGIN: &str = "=?";

/// As lenient as mail programs.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Whether a mail program may find an encoded word in a text.
#[must_use]
pub fn may_contain(text: &str) -> bool {
    text.contains(BEGIN)
}

/// Whether an encoded word in a text contains a control character, such as a line break.
#[must_use]
pub fn contains_control(text: &str) -> bool {
    let mut rest = text;
    while let Some((_, after)) = rest.split_once(BEGIN) {
        if word_contains_control(after) {
            return true;
        }
        rest = after;
    }
    false
}

/// Whether the encoded word whose charset starts `word` contains a control character. False
/// if it is no encoded word. All charsets that mail programs know encode control characters
/// as ASCII does, or (UTF-16) with zero bytes, which count too.
fn word_contains_control(word: &str) -> bool {
    let mut parts = word.splitn(3, '?');
    let (Some(_charset), Some(encoding), Some(rest)) = (parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    // Some mail programs decode an unterminated word too.
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

/// The escaped bytes of a Q encoding. The caller has checked the unescaped characters with
/// the raw text.
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
    fn encoded_control_characters_are_found() {
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
            assert!(contains_control(text), "{text}");
        }
    }

    #[test]
    fn text_without_encoded_control_characters_passes() {
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
            assert!(!contains_control(text), "{text}");
        }
    }
}
