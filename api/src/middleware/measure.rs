//! Counts requests by operation and status, measures how long they took, and makes their spans.

use std::sync::Arc;
use std::time::Instant;

use poem::{Endpoint, IntoResponse, Request, Response};
use poem_openapi::OperationId;
use serde_json::Value;
use waypost_core::telemetry::instruments::{self, SharedString};
use waypost_core::telemetry::traces::{self, TraceSpan, TraceSpanKind};

use crate::middleware::methods::find_by_path;

/// What is outside the document: the dashboard, pages, unknown paths.
const OTHER: &str = "other";

/// The operations of the document.
pub(crate) struct MeasuredOperations(Vec<MeasuredOperation>);

struct MeasuredOperation {
    method: String,
    path: String,
    id: Arc<str>,
}

impl MeasuredOperations {
    /// Reads them from the document.
    pub(crate) fn of(document: &Value) -> Self {
        let paths = document["paths"].as_object().into_iter().flatten();
        let operations = paths.flat_map(|(path, operations)| {
            let operations = operations.as_object().into_iter().flatten();
            operations.filter_map(|(method, operation)| {
                Some(MeasuredOperation {
                    method: method.to_uppercase(),
                    path: path.clone(),
                    id: operation["operationId"].as_str()?.into(),
                })
            })
        });
        Self(operations.collect())
    }

    fn at(&self, method: &str, path: &str) -> Option<Arc<str>> {
        let operations = self.0.iter().filter(|one| one.method == method);
        Some(Arc::clone(
            &find_by_path(operations, path, |one| &one.path)?.id,
        ))
    }
}

/// Serves a request through `next` and measures it.
pub(crate) async fn wrap<E: Endpoint>(
    next: Arc<E>,
    request: Request,
    operations: Arc<MeasuredOperations>,
) -> poem::Result<Response> {
    let began = Instant::now();
    let (method, uri) = (request.method().clone(), request.original_uri().clone());
    let mut span = traces::is_on().then(|| begin_span(&request));
    let place = span.as_ref().and_then(TraceSpan::context);
    let response = traces::in_span(place, next.call(request)).await?;
    let response = response.into_response();
    let status = response.status().as_u16();
    let handled = response.data::<OperationId>();
    // Without a handler, a layer answered.
    let operation = handled.map_or_else(
        || {
            operations
                .at(method.as_str(), uri.path())
                .map_or(OTHER.into(), Into::into)
        },
        |operation| SharedString::from(operation.0),
    );
    if let Some(span) = &mut span {
        describe_span(span, &operations, &operation, status);
    }
    instruments::request(operation, status, began.elapsed());
    Ok(response)
}

/// Begins the span of a request: in the client's trace, if it names one.
fn begin_span(request: &Request) -> TraceSpan {
    let parent = request.header("traceparent");
    let parent = parent.and_then(|header| header.parse().ok());
    let method = request.method().to_string();
    let mut span = traces::span(method.clone(), TraceSpanKind::Server, parent);
    span.set("http.request.method", method);
    span
}

/// Names a span by its route, and adds the status. The names of the attributes are those of
/// <https://opentelemetry.io/docs/specs/semconv/http/http-spans/>.
fn describe_span(
    span: &mut TraceSpan,
    operations: &MeasuredOperations,
    operation: &str,
    status: u16,
) {
    if let Some(known) = operations.0.iter().find(|one| &*one.id == operation) {
        span.rename(format!("{} {}", known.method, known.path));
        span.set("http.route", known.path.clone());
    }
    span.set("http.response.status_code", i64::from(status));
    if status >= 500 {
        span.fail("the server failed");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_operation_is_found_by_method_and_path() {
        let document = json!({ "paths": {
            "/v1/things": { "get": { "operationId": "list" }, "post": { "operationId": "create" } },
            "/v1/things/{id}": { "get": { "operationId": "find" } },
        } });
        let operations = MeasuredOperations::of(&document);
        let at = |method: &str, path: &str| operations.at(method, path);
        assert_eq!(at("GET", "/v1/things").as_deref(), Some("list"));
        assert_eq!(at("POST", "/v1/things").as_deref(), Some("create"));
        assert_eq!(at("GET", "/v1/things/7").as_deref(), Some("find"));
        assert_eq!(at("GET", "/nothing"), None);
    }
}
