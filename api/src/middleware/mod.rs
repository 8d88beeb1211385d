//! What every request passes on its way to a handler.

pub(crate) mod availability;
pub(crate) mod rate_limits;
pub(crate) mod request_id;
