//! Middleware: each module handles one concern of every request before its handler runs.

pub(crate) mod auth;
pub(crate) mod availability;
pub(crate) mod measure;
pub(crate) mod methods;
pub(crate) mod path;
pub(crate) mod permission;
pub(crate) mod rate_limits;
pub(crate) mod request_id;
pub(crate) mod session_cookie;
pub(crate) mod unknown_fields;
