#![no_main]

use libfuzzer_sys::fuzz_target;
use waypost_core::submission::command::SmtpCommand;
use waypost_core::submission::data_reader::{DataProgress, DataReader};

const CONTENT_BYTES_MAX: usize = 200;

// What a client sends, after a byte that says in what pieces it arrives: command lines, and the content of a mail after
// each DATA. The content must be what a simple reader makes of the whole.
fuzz_target!(|bytes: &[u8]| {
    let Some((&piece, mut rest)) = bytes.split_first() else {
        return;
    };
    let piece = usize::from(piece).max(1);
    while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
        let line = rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]);
        rest = &rest[end + 1..];
        match SmtpCommand::parse(line) {
            Ok(SmtpCommand::Data) => {
                let (read, progress) = read_mail(rest, piece);
                if progress != DataProgress::Ended {
                    return; // The client has gone, or the session ends.
                }
                rest = &rest[read..];
            }
            Ok(SmtpCommand::Mail { address, .. } | SmtpCommand::Rcpt { address }) => {
                assert!(
                    line.windows(address.len().max(1))
                        .any(|part| { address.is_empty() || part == address.as_bytes() })
                );
                assert!(!address.contains('\n'));
            }
            Ok(_) => {}
            Err(error) => {
                let text = error.to_string();
                assert!(text.is_ascii() && text.len() < 200 && !text.contains(['\r', '\n']));
            }
        }
    }
});

/// Reads one mail in pieces; returns how many bytes belong to it, and how it ended.
fn read_mail(bytes: &[u8], piece: usize) -> (usize, DataProgress) {
    let mut reader = DataReader::new(CONTENT_BYTES_MAX);
    let (mut at, mut progress) = (0, DataProgress::Unfinished);
    while at < bytes.len() && progress == DataProgress::Unfinished {
        let (read, now) = reader.read(&bytes[at..bytes.len().min(at + piece)]);
        assert!(read > 0 || now == DataProgress::BareLineEnd);
        at += read;
        progress = now;
        assert!(reader.capacity() <= 2 * CONTENT_BYTES_MAX);
    }
    let (expected, content) = read_simply(bytes);
    assert_eq!(progress, expected);
    if progress == DataProgress::Ended {
        assert!(bytes[..at].ends_with(b".\r\n"));
        let fits = content.len() <= CONTENT_BYTES_MAX;
        assert_eq!(reader.into_content(), fits.then_some(content));
    }
    (at, progress)
}

/// The same, line by line, with the whole mail at hand.
fn read_simply(bytes: &[u8]) -> (DataProgress, Vec<u8>) {
    let mut content = Vec::new();
    let mut rest = bytes;
    while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n')) {
        match rest[end..] {
            [b'\r'] => return (DataProgress::Unfinished, content),
            [b'\r', b'\n', ..] => {}
            _ => return (DataProgress::BareLineEnd, content),
        }
        let line = &rest[..end];
        if line == b"." {
            return (DataProgress::Ended, content);
        }
        content.extend_from_slice(line.strip_prefix(b".").unwrap_or(line));
        content.extend_from_slice(b"\r\n");
        rest = &rest[end + 2..];
    }
    (DataProgress::Unfinished, content)
}
