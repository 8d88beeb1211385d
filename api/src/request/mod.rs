//! Extractors: how handlers read path ids, query parameters, bodies and idempotency keys.

pub(crate) mod body;
pub(crate) mod cursor;
pub(crate) mod idempotency_key;
pub(crate) mod import_body;
pub(crate) mod large_text;
pub(crate) mod memory;
pub(crate) mod path_id;
pub(crate) mod query;
