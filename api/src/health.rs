//! Whether the process lives, and whether it can serve.

use std::sync::Arc;

use poem::web::{Data, Json};
use poem::{IntoResponse, Response, handler};
use serde_json::json;

use crate::context::Context;

/// Says that the process lives. It depends on nothing.
#[handler]
pub(crate) fn healthz() -> Json<serde_json::Value> {
    Json(json!({ "status": "ok" }))
}

/// Says whether Postgres and Redis answer and the schema is current; 503 where one
/// of them does not.
#[handler]
pub(crate) async fn readyz(context: Data<&Arc<Context>>) -> Response {
    let (status, body) = context.readiness.ask().await;
    Json(body).with_status(status).into_response()
}
