//! The outermost layer of a request: its id in the response header and in the log, and the
//! JSON error form for every error, poem's own included.

use std::sync::Arc;

use poem::http::HeaderValue;
use poem::{Endpoint, IntoResponse, Request, Response};
use tracing::{Instrument, debug, info_span};
use uuid::Uuid;
use waypost_core::ids::Ids;

use crate::error;
use crate::middleware::path;

/// The id of a request, in the header `X-Request-Id` and in the log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestId(pub(crate) Uuid);

/// Serves a request through `next` with a new request id.
pub(crate) async fn wrap<E: Endpoint>(
    next: Arc<E>,
    mut request: Request,
    ids: Ids,
) -> poem::Result<Response> {
    path::replace_undecodable_segments(&mut request);
    let id: Uuid = ids.next();
    request.set_data(RequestId(id));
    let span = info_span!("request", request.id = %id, method = %request.method());
    let mut response = async {
        let response = match next.call(request).await {
            Ok(output) => output.into_response(),
            Err(failure) => error::respond(failure),
        };
        debug!(status = response.status().as_u16(), "Answered");
        response
    }
    .instrument(span)
    .await;
    let id = HeaderValue::try_from(id.to_string()).expect("a UUID is visible ASCII");
    response.headers_mut().insert("x-request-id", id);
    Ok(response)
}
