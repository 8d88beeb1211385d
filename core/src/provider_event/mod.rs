//! Provider events: what providers report about messages that they accepted. `receiver`
//! verifies and reads a provider's request, `record` writes its events and updates the
//! recipients, and `reconcile` asks providers about attempts whose answer was lost.

pub mod receiver;
pub mod reconcile;
pub mod record;
