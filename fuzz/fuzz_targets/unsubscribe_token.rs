#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use waypost_core::unsubscribe::token::UnsubscribeTokens;

static TOKENS: LazyLock<UnsubscribeTokens> = LazyLock::new(UnsubscribeTokens::for_fuzzing);

// The input as a token; the input with a valid signature; and the input with a valid signature and a sealed address.
fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _refused = TOKENS.read(text, waypost_fuzz::now());
    }
    let _refused = TOKENS.read(&TOKENS.sign_anything(bytes), waypost_fuzz::now());
    if let Ok(content) = TOKENS.read(&TOKENS.seal_anything(bytes), waypost_fuzz::now()) {
        let again = TOKENS.read(&TOKENS.issue(&content), waypost_fuzz::now());
        assert_eq!(again, Ok(content));
    }
});
