//! Provider events: what providers report about messages that they accepted. `receiver`
//! verifies and reads a provider's request, `record` writes its events and updates the
//! recipients, and `reconcile` asks providers about attempts whose answer was lost.
//! `test_reports` makes the events of tests, for which no provider is called.

pub mod receiver;
pub mod reconcile;
pub mod record;
pub mod test_reports;
