//! The jobs, one module each.

mod batch;
pub(crate) mod send_message;
