//! Text of any charset as Unicode.

use mail_parser::decoders::charsets::map::charset_decoder;

/// The charset that mail programs mean when 8-bit text names none and is not UTF-8.
const FALLBACK: &[u8] = b"windows-1252";

/// Decodes a text, with LF as its line ends. A charset that is not known counts as none.
pub(super) fn decode(bytes: Vec<u8>, charset: Option<&str>) -> String {
    let named = charset.map(str::to_ascii_lowercase);
    let is_ascii = matches!(
        named.as_deref(),
        None | Some("us-ascii" | "ascii" | "utf-8" | "utf8" | "")
    );
    let known = named.filter(|_| !is_ascii);
    let known = known.and_then(|name| charset_decoder(name.as_bytes()));
    let text = match known {
        Some(decode) => decode(&bytes),
        None => String::from_utf8(bytes).unwrap_or_else(|error| {
            let bytes = error.into_bytes();
            match charset_decoder(FALLBACK) {
                Some(decode) => decode(&bytes),
                None => String::from_utf8_lossy(&bytes).into_owned(),
            }
        }),
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    text.replace("\r\n", "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_decoded_by_its_charset_or_the_likely_one() {
        for (bytes, charset, expected) in [
            (&b"Gr\xc3\xbc\xc3\x9fe\r\n"[..], Some("UTF-8"), "Grüße\n"),
            (b"Gr\xfc\xdfe", Some("iso-8859-1"), "Grüße"),
            (b"\x80 5", Some("windows-1252"), "€ 5"),
            (b"\x93\xfa\x96\x7b", Some("Shift_JIS"), "日本"),
            (b"\x1b$BF|K\\\x1b(B", Some("iso-2022-jp"), "日本"),
            (b"\xd6\xd0", Some("gb2312"), "中"),
            (b"Gr\xc3\xbc\xc3\x9fe", None, "Grüße"),
            (b"Gr\xfc\xdfe", None, "Grüße"),
            (b"Gr\xfc\xdfe", Some("us-ascii"), "Grüße"),
            (b"Gr\xc3\xbc\xc3\x9fe", Some("x-unheard-of"), "Grüße"),
            (b"\xef\xbb\xbfa", Some("utf-8"), "a"),
            (b"", None, ""),
        ] {
            assert_eq!(decode(bytes.to_vec(), charset), expected, "{charset:?}");
        }
    }
}
