//! The walls, from outside: who gets past the door, what a client can do to a
//! process before it is let in, what can be smuggled into a mail, and what the logs
//! tell. `SECURITY.md` names each wall with the test that leans on it.

mod bodies;
mod clients;
mod echo;
mod headers;
mod logs;
pub(crate) mod matrix;
mod needles;
