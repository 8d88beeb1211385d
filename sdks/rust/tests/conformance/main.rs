//! The cases of sdks/conformance/cases.md, live. Needs `WAYPOST_URL`, `WAYPOST_API_KEY`, `SIMULATOR_URL` and
//! `CONFORMANCE_PROXY_URL`; scripts/test-sdks.sh starts the proxy.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod errors;
mod lists;
mod retries;
mod sending;
mod setup;
mod support;
mod webhooks;
