//! Postmark's endpoints for sending mail and for reading what became of it
//! (<https://postmarkapp.com/developer/api/email-api>). A `MessageID` is the id of the message.

mod addresses;
mod details;
mod errors;
mod fields;
mod send;
mod translate;

use poem::http::Method;
use poem::web::Json;
use poem::{IntoResponse, Response};
use serde_json::Value;

use super::VendorOperation;
use super::call::VendorCall;
pub(super) use errors::error;
pub(super) use fields::FIELDS;
use translate::ContentFrom;

/// The header that holds the API key.
pub(super) const TOKEN: &str = "x-postmark-server-token";
/// The paths of operations that send one message. Clients write the second with and without a
/// slash at its end.
pub(super) const SEND_PATHS: &[&str] = &["/email", "/email/withTemplate", "/email/withTemplate/"];

/// All operations.
pub(super) fn operations() -> Vec<VendorOperation> {
    let with_template = ["/email/withTemplate", "/email/withTemplate/"].map(|path| {
        VendorOperation::new("postmark_send_template", Method::POST, path, |call| {
            send::send_email(call, ContentFrom::Template)
        })
    });
    let batch_with_templates =
        ["/email/batchWithTemplates", "/email/batchWithTemplates/"].map(|path| {
            VendorOperation::new("postmark_send_template_batch", Method::POST, path, |call| {
                send::send_batch(call, ContentFrom::Template)
            })
        });
    let mut operations = vec![
        VendorOperation::new(
            "postmark_send_email",
            Method::POST,
            "/email",
            |call: VendorCall| send::send_email(call, ContentFrom::Bodies),
        ),
        VendorOperation::new(
            "postmark_send_batch",
            Method::POST,
            "/email/batch",
            |call: VendorCall| send::send_batch(call, ContentFrom::Bodies),
        ),
        VendorOperation::new(
            "postmark_get_message",
            Method::GET,
            "/messages/outbound/{id}/details",
            details::get_details,
        ),
    ];
    operations.extend(with_template);
    operations.extend(batch_with_templates);
    operations
}

fn answer(body: &Value) -> Response {
    Json(body).into_response()
}
