#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use waypost_core::tracking::token::TrackingTokens;

static TOKENS: LazyLock<TrackingTokens> = LazyLock::new(TrackingTokens::for_fuzzing);

// The input as a token; the input with a valid signature; and the input with a valid signature, version and key id.
fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes) {
        assert_eq!(TOKENS.read_open(text, waypost_fuzz::now()), None);
        assert_eq!(TOKENS.read_click(text, waypost_fuzz::now()), None);
    }
    for [open, click] in [TOKENS.sign_anything(bytes), TOKENS.sign_with_head(bytes)] {
        assert_eq!(TOKENS.read_click(&open, waypost_fuzz::now()), None);
        assert_eq!(TOKENS.read_open(&click, waypost_fuzz::now()), None);
        if let Some(read) = TOKENS.read_open(&open, waypost_fuzz::now()) {
            assert_eq!(TOKENS.issue_open(read.recipient), open);
        }
        if let Some(read) = TOKENS.read_click(&click, waypost_fuzz::now()) {
            assert_eq!(TOKENS.issue_click(read.recipient, &read.target), click);
        }
    }
});
