#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use waypost_core::template::fuzzing;

// A source and, after a NUL, its variables as JSON. Without valid JSON the target uses fixed variables.
fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let (source, variables) = text.split_once('\0').unwrap_or((text, ""));
    let variables: Value = serde_json::from_str(variables).unwrap_or_else(|_| {
        json!({
            "name": "Ada <ada@example.com>",
            "rows": [{ "a": 1, "rows": [1, 2, 3] }, { "a": "é", "rows": [] }],
            "on": true,
            "n": 1.5,
        })
    });
    fuzzing::handlebars(source, variables);
});
