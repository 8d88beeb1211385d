#![no_main]

use libfuzzer_sys::fuzz_target;
use waypost_core::provider::inbound::read_certificate;

// As PEM; else as DER, which the fuzzer would hardly find through Base64.
fuzz_target!(|bytes: &[u8]| read_certificate(bytes));
