//! The settings of the SMTP server.

use std::sync::atomic::Ordering;

use http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::json;

use crate::reply::{self, Answer};
use crate::request::Request;
use crate::state::State;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Settings {
    ehlo: bool,
}

/// `GET` and `POST /smtp`; `None` if the path is another.
pub(crate) fn handle(state: &State, request: &Request) -> Option<Answer> {
    if request.path() != "/smtp" {
        return None;
    }
    let status = match request.method {
        Method::GET => StatusCode::OK,
        Method::POST => match serde_json::from_slice::<Settings>(&request.body) {
            Ok(settings) => {
                state
                    .smtp_knows_ehlo
                    .store(settings.ehlo, Ordering::Relaxed);
                StatusCode::OK
            }
            Err(cause) => {
                let body = json!({ "error": cause.to_string() });
                return Some(reply::json(StatusCode::BAD_REQUEST, body.to_string()));
            }
        },
        _ => return None,
    };
    let ehlo = state.smtp_knows_ehlo.load(Ordering::Relaxed);
    Some(reply::json(status, json!({ "ehlo": ehlo }).to_string()))
}
