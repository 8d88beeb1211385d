//! Cryptography: sealing what must not be read from a stolen database, and signing
//! what leaves the house and comes back.

mod keys;
pub mod seal;
pub mod sign;
