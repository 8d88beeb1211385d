//! What SMTP clients send, read without I/O: the commands ([`command`]), the end of a mail's
//! content and its dots ([`data_reader`]), and the MIME mail itself ([`mail`]). The conversation
//! belongs to the program `waypost-smtp`.
//!
//! Nothing here trusts the client: every length and number has a bound, and the time that
//! reading takes grows with the length of the mail alone.

pub mod command;
pub mod data_reader;
pub mod mail;
