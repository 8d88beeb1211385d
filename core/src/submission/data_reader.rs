//! The content of a mail after DATA: its end, and the dots that the client doubled (RFC 5321,
//! 4.5.2). Only CR LF ends a line. A CR or LF alone is a mistake that ends the mail: servers
//! disagree about it, and one server's end of a mail would be content for another, which smuggles
//! mails in the name of others (CVE-2023-51764).

use memchr::memchr2;

/// Reads the content of one mail, in pieces of any length.
#[derive(Debug)]
pub struct DataReader {
    content: Vec<u8>,
    bytes_max: usize,
    received: usize,
    is_dropped: bool,
    place: DataPlace,
}

/// What follows from the bytes that were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataProgress {
    /// More must follow.
    Unfinished,
    /// The mail has ended. What follows are commands.
    Ended,
    /// A CR or LF stands alone.
    BareLineEnd,
}

/// Where in a line the next byte is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DataPlace {
    Begin,
    /// After a dot at the begin of a line.
    Dot,
    /// After a dot and CR at the begin of a line.
    DotCr,
    Within,
    Cr,
}

impl DataReader {
    /// A mail of up to `bytes_max`.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        Self {
            content: Vec::new(),
            bytes_max,
            received: 0,
            is_dropped: false,
            place: DataPlace::Begin,
        }
    }

    /// Reads the next bytes. Returns how many belong to the mail.
    pub fn read(&mut self, bytes: &[u8]) -> (usize, DataProgress) {
        let mut at = 0;
        let mut progress = DataProgress::Unfinished;
        while at < bytes.len() && progress == DataProgress::Unfinished {
            let byte = bytes[at];
            match self.place {
                DataPlace::Begin if byte == b'.' => {
                    self.place = DataPlace::Dot;
                    at += 1;
                }
                DataPlace::Dot if byte == b'\r' => {
                    self.place = DataPlace::DotCr;
                    at += 1;
                }
                DataPlace::Begin | DataPlace::Dot => self.place = DataPlace::Within,
                DataPlace::DotCr => {
                    at += 1;
                    progress = match byte {
                        b'\n' => DataProgress::Ended,
                        _ => DataProgress::BareLineEnd,
                    };
                }
                DataPlace::Within => {
                    let rest = &bytes[at..];
                    let end = memchr2(b'\r', b'\n', rest).unwrap_or(rest.len());
                    self.add(&rest[..end]);
                    at += end;
                    match rest.get(end) {
                        Some(b'\r') => {
                            self.place = DataPlace::Cr;
                            at += 1;
                        }
                        Some(_) => progress = DataProgress::BareLineEnd,
                        None => {}
                    }
                }
                DataPlace::Cr if byte == b'\n' => {
                    self.add(b"\r\n");
                    self.place = DataPlace::Begin;
                    at += 1;
                }
                DataPlace::Cr => progress = DataProgress::BareLineEnd,
            }
        }
        self.received += at;
        (at, progress)
    }

    fn add(&mut self, bytes: &[u8]) {
        if self.content.len() + bytes.len() > self.bytes_max {
            self.drop_content();
        }
        if !self.is_dropped {
            self.content.extend_from_slice(bytes);
        }
    }

    /// Drops the content, and what follows of it: the mail is read to its end all the same.
    pub fn drop_content(&mut self) {
        self.is_dropped = true;
        self.content = Vec::new();
    }

    /// Bytes that were received, dots and all.
    #[must_use]
    pub fn received(&self) -> usize {
        self.received
    }

    /// Memory that the content takes.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.content.capacity()
    }

    /// The content; `None` if it was dropped, for example because it is too large.
    #[must_use]
    pub fn into_content(self) -> Option<Vec<u8>> {
        (!self.is_dropped).then_some(self.content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a text in pieces; returns what follows the mail too.
    fn read(text: &[u8], piece: usize) -> (Option<Vec<u8>>, DataProgress, Vec<u8>) {
        let mut reader = DataReader::new(100);
        let (mut at, mut progress) = (0, DataProgress::Unfinished);
        while at < text.len() && progress == DataProgress::Unfinished {
            let (read, now) = reader.read(&text[at..text.len().min(at + piece)]);
            at += read;
            progress = now;
        }
        (reader.into_content(), progress, text[at..].to_vec())
    }

    #[test]
    fn a_mail_ends_at_its_dot_whatever_the_pieces() {
        for (text, content, rest) in [
            (".\r\nQUIT\r\n", "", "QUIT\r\n"),
            ("a\r\n.\r\n", "a\r\n", ""),
            ("..\r\n...b\r\n.\r\n.", ".\r\n..b\r\n", "."),
            (".a\r\n\r\n.\r\n", "a\r\n\r\n", ""),
            ("a.\r\nb .\r\n.\r\n", "a.\r\nb .\r\n", ""),
        ] {
            for piece in 1..=text.len() {
                let (read, progress, after) = read(text.as_bytes(), piece);
                assert_eq!(progress, DataProgress::Ended, "{text:?} {piece}");
                assert_eq!(read.unwrap(), content.as_bytes(), "{text:?} {piece}");
                assert_eq!(after, rest.as_bytes(), "{text:?} {piece}");
            }
        }
    }

    #[test]
    fn line_ends_that_servers_read_differently_are_refused() {
        for text in [
            "a\n.\n",
            "a\r\n.\n",
            "a\n.\r\n",
            "a\r.\r\n",
            "a\r\n.\r",
            "a\r\n.\rb",
            "a\r.\rb",
            "a\r\r\n.\r\n",
            "a\nb",
            "\n",
            "\r.",
        ] {
            for piece in 1..=text.len() {
                let (_, progress, _) = read(format!("{text}x").as_bytes(), piece);
                assert_eq!(progress, DataProgress::BareLineEnd, "{text:?} {piece}");
            }
        }
    }

    #[test]
    fn a_mail_that_is_too_large_is_read_to_its_end() {
        let text = format!("{}\r\n.\r\nNOOP", "x".repeat(99));
        for piece in [1, 7, text.len()] {
            let (content, progress, rest) = read(text.as_bytes(), piece);
            assert_eq!((content, progress), (None, DataProgress::Ended));
            assert_eq!(rest, b"NOOP");
        }
        let fits = format!("{}\r\n.\r\n", "x".repeat(98));
        assert_eq!(read(fits.as_bytes(), 9).0.unwrap().len(), 100);
    }
}
