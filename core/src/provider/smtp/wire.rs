//! The content of a mail as it is written after DATA. Pure.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

/// The longest line, without CR LF (RFC 5322, 2.1.1).
const LINE_BYTES_MAX: usize = 998;

/// The bytes of a file on one line: 76 characters (RFC 2045, 6.8).
const FILE_LINE_BYTES: usize = 57;
/// The lines of a file that are encoded at once.
const FILE_BLOCK_LINES: usize = 256;

/// A part of the content.
pub(super) enum Segment {
    Lines(Content),
    /// A file in base64, without a line break at its end. No line of it begins with a dot.
    File(Bytes),
}

impl Segment {
    /// The bytes to write, in blocks.
    pub(super) fn blocks(&self) -> impl Iterator<Item = Cow<'_, [u8]>> {
        let (lines, file) = match self {
            Self::Lines(content) => (Some(Cow::Borrowed(content.as_bytes())), &[][..]),
            Self::File(content) => (None, content.as_ref()),
        };
        let blocks = file.chunks(FILE_LINE_BYTES * FILE_BLOCK_LINES).enumerate();
        let blocks = blocks.map(|(nth, block)| Cow::Owned(encoded(block, nth == 0)));
        lines.into_iter().chain(blocks)
    }

    /// The size without the added dots.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Lines(content) => content.size,
            Self::File(content) => {
                let breaks = content.len().div_ceil(FILE_LINE_BYTES).saturating_sub(1);
                content.len().div_ceil(3) * 4 + breaks * 2
            }
        }
    }
}

/// A block of a file, with a line break before each line except the file's first.
fn encoded(block: &[u8], is_first: bool) -> Vec<u8> {
    let mut text = String::with_capacity(block.len() / FILE_LINE_BYTES * 78 + 80);
    for (nth, line) in block.chunks(FILE_LINE_BYTES).enumerate() {
        if nth > 0 || !is_first {
            text.push_str("\r\n");
        }
        STANDARD.encode_string(line, &mut text);
    }
    text.into_bytes()
}

/// A content that every server splits into the same lines: each line ends in CR LF, neither
/// character occurs alone, and there is no NUL (RFC 5321, 2.3.8 and 4.5.2). A server that
/// accepts another line end could execute the rest as commands. A line that begins with a
/// dot has another one put before it.
pub(super) struct Content {
    stuffed: Vec<u8>,
    /// The size without the added dots (RFC 1870, 6.1).
    pub(super) size: usize,
}

impl Content {
    /// Takes headers and bodies, including the CR LF of the last line.
    ///
    /// # Errors
    /// What makes them unsafe to send.
    pub(super) fn of(lines: &[u8]) -> Result<Self, &'static str> {
        let mut stuffed = Vec::with_capacity(lines.len() + lines.len() / 64);
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            let text = line.strip_suffix(b"\r\n").ok_or("a line without CR LF")?;
            if text.contains(&b'\r') {
                return Err("a CR that ends no line");
            }
            if text.contains(&0) {
                return Err("a NUL");
            }
            if !text.is_ascii() {
                return Err("a character that is not ASCII");
            }
            if text.len() > LINE_BYTES_MAX {
                return Err("a line of more than 998 characters");
            }
            if text.first() == Some(&b'.') {
                stuffed.push(b'.');
            }
            stuffed.extend_from_slice(line);
        }
        Ok(Self {
            stuffed,
            size: lines.len(),
        })
    }

    /// The bytes to write. The line that ends the mail follows them.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.stuffed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_begin_with_a_dot_get_another_dot() {
        for (lines, expected) in [
            (
                &b"a\r\n.\r\n..b\r\nc.d\r\n"[..],
                &b"a\r\n..\r\n...b\r\nc.d\r\n"[..],
            ),
            (b".\r\n", b"..\r\n"),
            (b"\r\n.\r\n\r\n.\r\n", b"\r\n..\r\n\r\n..\r\n"),
            (b"", b""),
        ] {
            let content = Content::of(lines).map_err(str::to_owned).unwrap();
            assert_eq!(content.as_bytes(), expected);
            assert_eq!(content.size, lines.len());
        }
    }

    #[test]
    fn ambiguous_content_is_never_written() {
        let long = [&[b'x'; 999][..], b"\r\n"].concat();
        for lines in [
            &b"a\rb\r\n"[..],
            b"a\nb\r\n",
            b"a\n\rb\r\n",
            b"a\r\r\n",
            b"a\r\n.\r",
            b"a\r\n.\n",
            b"a\n.\n",
            b"a\n.\r\n",
            b"a\r.\r\n",
            b"a\r\n\r.\r\n",
            b"a\r\n.\r\r\n",
            b"\r\n\n.\n",
            b"a",
            b"a\r",
            b"a\n",
            b"a\0b\r\n",
            b"\0\r\n.\r\n",
            b"caf\xc3\xa9\r\n",
            &long,
        ] {
            assert!(Content::of(lines).is_err(), "{lines:?}");
        }
    }
}
