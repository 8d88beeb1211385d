//! The jobs, one module each.

pub(crate) mod send_message;
