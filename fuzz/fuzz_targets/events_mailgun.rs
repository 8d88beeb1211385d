#![no_main]

use libfuzzer_sys::fuzz_target;
use waypost_core::provider::kind::ProviderType;

fuzz_target!(|body: &[u8]| waypost_fuzz::read_events(ProviderType::Mailgun, body));
