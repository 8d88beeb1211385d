//! Resend's endpoints for emails (<https://resend.com/docs/api-reference/emails>). The id of an
//! email is that of the message.

mod change;
mod errors;
mod fields;
mod read;
mod send;
mod translate;

use poem::http::Method;
use poem::web::Json;
use poem::{IntoResponse, Response};
use serde_json::Value;

use super::VendorOperation;
pub(super) use errors::error;
pub(super) use fields::{FIELDS, UPDATE_FIELDS};

/// All operations.
pub(super) fn operations() -> Vec<VendorOperation> {
    vec![
        VendorOperation::new(
            "resend_list_emails",
            Method::GET,
            "/emails",
            read::list_emails,
        ),
        VendorOperation::new(
            "resend_get_email",
            Method::GET,
            "/emails/{id}",
            read::get_email,
        ),
        VendorOperation::new(
            "resend_update_email",
            Method::PATCH,
            "/emails/{id}",
            change::update_email,
        ),
        VendorOperation::new(
            "resend_cancel_email",
            Method::POST,
            "/emails/{id}/cancel",
            change::cancel_email,
        ),
        VendorOperation::new(
            "resend_send_email",
            Method::POST,
            "/emails",
            send::send_email,
        ),
        VendorOperation::new(
            "resend_send_batch",
            Method::POST,
            "/emails/batch",
            send::send_batch,
        ),
    ]
}

fn answer(body: &Value) -> Response {
    Json(body).into_response()
}
