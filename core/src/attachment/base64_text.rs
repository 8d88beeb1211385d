//! Base64 of the standard alphabet (RFC 4648, 4), with or without padding, decoded piece by
//! piece. White space, as in base64 of 76 characters a line, is a mistake: it is not in the
//! alphabet.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use sha2::{Digest as _, Sha256};

use super::{Digest, PIECE_BYTES};

const ENGINE: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Characters of a piece.
const PIECE_CHARS: usize = PIECE_BYTES / 3 * 4;

/// Why a text is not base64, as the end of a sentence.
pub(super) type Mistake = String;

/// Bytes that a text decodes to, if it is base64.
pub(super) fn size_of(text: &[u8]) -> u64 {
    let padding = text.iter().rev().take(2).filter(|c| **c == b'=').count();
    (text.len() - padding) as u64 * 3 / 4
}

/// Size and hash of the decoded text. Lets other tasks run between the pieces.
pub(super) async fn digest(text: &[u8]) -> Result<Digest, Mistake> {
    let mut hasher = Sha256::new();
    let mut size = 0;
    for piece in Pieces::of(text) {
        let piece = piece?;
        hasher.update(&piece);
        size += piece.len() as u64;
        tokio::task::yield_now().await;
    }
    Ok(Digest {
        size,
        sha256: hasher.finalize().into(),
    })
}

/// The decoded pieces of a text, each of [`PIECE_BYTES`] but the last.
pub(super) struct Pieces<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Pieces<'a> {
    pub(super) fn of(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }
}

impl Iterator for Pieces<'_> {
    type Item = Result<Vec<u8>, Mistake>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = &self.text[self.at..];
        if rest.is_empty() {
            return None;
        }
        let piece = &rest[..rest.len().min(PIECE_CHARS)];
        let is_last = piece.len() == rest.len();
        let begin = self.at;
        self.at += piece.len();
        let padding_ends_it = is_last || !piece.contains(&b'=');
        Some(match ENGINE.decode(piece) {
            Ok(bytes) if padding_ends_it => Ok(bytes),
            Ok(_) => Err(mistake(piece, begin)),
            Err(_) => Err(mistake(piece, begin)),
        })
    }
}

/// Names the first character that is wrong.
fn mistake(piece: &[u8], begin: usize) -> Mistake {
    let is_known = |c: &u8| c.is_ascii_alphanumeric() || matches!(c, b'+' | b'/' | b'=');
    let wrong = piece.iter().position(|c| !is_known(c));
    let place = |index: usize| begin + index + 1;
    match wrong.map(|index| (piece[index], place(index))) {
        Some((c, at)) if c.is_ascii_whitespace() => {
            format!("must be base64 without white space or line breaks; character {at} is one")
        }
        Some((b'-' | b'_', at)) => {
            format!("must be base64 with + and /, not the URL-safe kind; see character {at}")
        }
        Some((b':' | b';' | b',', _)) if begin == 0 && piece.starts_with(b"data:") => {
            "must be the base64 itself, without `data:…;base64,`".to_owned()
        }
        Some((_, at)) => format!("must be base64; character {at} is not in its alphabet"),
        None => "must be base64; it is cut off or has padding in the wrong place".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};

    use super::*;

    fn decode(text: &str) -> Result<Vec<u8>, Mistake> {
        let pieces: Result<Vec<_>, _> = Pieces::of(text.as_bytes()).collect();
        pieces.map(|pieces| pieces.concat())
    }

    #[tokio::test]
    async fn any_length_is_decoded_with_and_without_padding() {
        let around = [0, 1, 2, 3, PIECE_BYTES, 2 * PIECE_BYTES];
        let lengths = around.into_iter().flat_map(|length| length..length + 3);
        for length in lengths {
            let bytes: Vec<u8> = (0..length).map(|index| (index % 251) as u8).collect();
            for text in [STANDARD.encode(&bytes), STANDARD_NO_PAD.encode(&bytes)] {
                assert_eq!(decode(&text).unwrap(), bytes, "{length}");
                assert_eq!(size_of(text.as_bytes()), length as u64);
                let digest = digest(text.as_bytes()).await.unwrap();
                assert_eq!(digest.size, length as u64);
                assert_eq!(digest.sha256, <[u8; 32]>::from(Sha256::digest(&bytes)));
            }
        }
    }

    #[test]
    fn a_mistake_is_named_with_its_place() {
        let long = "QUJD".repeat(PIECE_CHARS / 4);
        for (text, words) in [
            ("QUJ\nD", "white space or line breaks; character 4"),
            ("QUJD ", "character 5"),
            ("QU-D", "URL-safe kind; see character 3"),
            ("data:text/plain;base64,QUJD", "without `data:"),
            ("QUé", "character 3 is not in its alphabet"),
            ("QUJDR", "cut off"),
            ("QQ==QUJD", "padding in the wrong place"),
            ("QR==", "cut off or has padding"),
            ("=", "padding"),
            ("Q===", "padding"),
            (
                &format!("{long}\r\nQUJD"),
                &format!("character {} is", PIECE_CHARS + 1),
            ),
            (
                &format!("{}QQ=={long}", &long[4..]),
                "padding in the wrong place",
            ),
        ] {
            let mistake = decode(text).unwrap_err();
            assert!(mistake.contains(words), "{mistake}");
        }
    }
}
