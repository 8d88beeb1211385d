//! SendGrid's endpoint for mail
//! (<https://www.twilio.com/docs/sendgrid/api-reference/mail-send/mail-send>). `X-Message-Id` is
//! the id of the message; of the first one, if the request makes several.

mod errors;
mod fields;
mod personalization;
mod send;
mod settings;
mod substitutions;
mod translate;

use poem::http::Method;

use super::VendorOperation;
pub(super) use errors::error;
pub(super) use fields::FIELDS;

/// The path of the endpoint, below the vendor's base.
pub(super) const SEND_PATH: &str = "/v3/mail/send";

/// All operations.
pub(super) fn operations() -> Vec<VendorOperation> {
    vec![VendorOperation::new(
        "sendgrid_send_mail",
        Method::POST,
        SEND_PATH,
        send::send_mail,
    )]
}
