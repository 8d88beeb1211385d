//! Provider events: what providers report about mail that they took. `receiver` reads
//! and verifies their requests, `record` writes what follows from them, and `reconcile`
//! asks providers about sends whose answer was lost.

pub mod receiver;
pub mod reconcile;
pub mod record;
