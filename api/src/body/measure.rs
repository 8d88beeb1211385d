//! How much a JSON text would be once it is read. A value takes some dozens of bytes
//! in memory, however short it is: 30 MiB of `[[],[],…` would be half a gigabyte.
//! So values are counted before anything is read.

/// Values in a text, at least: each comma and each bracket outside strings begins
/// one. Of what is no JSON the count means nothing, and reading it fails early.
pub(super) fn values(json: &[u8]) -> usize {
    let mut count = 1;
    let mut bytes = json.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b',' | b'[' | b'{' => count += 1,
            b'"' => skip_string(&mut bytes),
            _ => {}
        }
    }
    count
}

fn skip_string(bytes: &mut std::slice::Iter<'_, u8>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return,
            b'\\' => {
                bytes.next();
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_and_what_strings_hold_is_not() {
        for (json, count) in [
            ("", 1),
            ("1", 1),
            ("[1,2,3]", 4),
            (r#"{"a": [{}], "b": 2}"#, 5),
            (r#"["a,b", "[{\",[", "\\", 1]"#, 5),
            (r#"["never ends, [[["#, 2),
            (r#"["\"#, 2),
        ] {
            assert_eq!(values(json.as_bytes()), count, "{json}");
        }
    }
}
