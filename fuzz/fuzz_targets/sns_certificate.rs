#![no_main]

use libfuzzer_sys::fuzz_target;
use waypost_core::provider::inbound::read_certificate;

// PEM or DER. A fuzzer would rarely find valid Base64, so it gets DER too.
fuzz_target!(|bytes: &[u8]| read_certificate(bytes));
