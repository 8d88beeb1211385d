//! What surrounds every request: an id in the answer and in the log, and the
//! contract's form for every error, poem's own included.

use std::sync::Arc;

use poem::http::HeaderValue;
use poem::{Endpoint, IntoResponse, Request, Response};
use tracing::{Instrument, debug, info_span};
use uuid::Uuid;
use waypost_core::ids::Ids;

use crate::{error, path};

/// The id of a request, as `X-Request-Id` and the log tell it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestId(pub(crate) Uuid);

/// Serves one request through `next`.
pub(crate) async fn wrap<E: Endpoint>(
    next: Arc<E>,
    mut request: Request,
    ids: Ids,
) -> poem::Result<Response> {
    path::make_legible(&mut request);
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
