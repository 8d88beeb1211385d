//! Security, tested from outside: access control, denial of service by clients, injection into
//! mails, and leaks in logs. `SECURITY.md` names the test of each protection.

mod bodies;
mod clients;
mod echo;
mod headers;
mod leak_scan;
mod logs;
pub(crate) mod matrix;
