#![no_main]

use libfuzzer_sys::fuzz_target;
use waypost_core::template::fuzzing;

fuzz_target!(|source: &str| fuzzing::mjml(source));
