//! Cryptography: encryption of stored secrets ([`seal`]) and signatures of link tokens
//! ([`sign`]).

mod keys;
pub mod seal;
pub mod sign;
