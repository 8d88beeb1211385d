//! Cryptography: sealing what must not be read from a stolen database.
//! Signing joins here as the parts that need it arrive.

pub mod seal;
