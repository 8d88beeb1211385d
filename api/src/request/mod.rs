//! Extractors: how handlers read path ids, query parameters, bodies and idempotency keys.

pub(crate) mod body;
pub(crate) mod idempotency_key;
pub(crate) mod path_id;
pub(crate) mod query;
mod unique_json;
