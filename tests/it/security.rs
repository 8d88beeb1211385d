//! Security boundaries from outside: access, what a client can do before it is
//! authenticated, injection into messages, and the contents of logs. `SECURITY.md` names
//! each boundary with the test that verifies it.

mod bodies;
mod clients;
mod echo;
mod headers;
mod leak_scan;
mod logs;
pub(crate) mod matrix;
mod permissions;
