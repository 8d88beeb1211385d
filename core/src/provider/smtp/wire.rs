//! The content of a mail as it is written behind DATA. Pure.

/// The longest line, without its end (RFC 5322, 2.1.1).
const LINE_BYTES_MAX: usize = 998;

/// A content that every server reads as the same lines: they end in CR LF, neither character
/// stands alone, and there is no NUL (RFC 5321, 2.3.8 and 4.5.2). A server that takes
/// something else for the end of a line could take the rest for commands. Lines that begin
/// with a dot have got another.
pub(super) struct Content {
    stuffed: Vec<u8>,
    /// Its size without the further dots (RFC 1870, 6.1).
    pub(super) size: usize,
}

impl Content {
    /// Takes headers and bodies, the end of the last line with them.
    ///
    /// # Errors
    /// What in them is not fit to be sent.
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

    /// What to write. The line that ends the mail comes after it.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.stuffed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_begin_with_a_dot_get_another() {
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
    fn what_servers_read_differently_is_never_written() {
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
