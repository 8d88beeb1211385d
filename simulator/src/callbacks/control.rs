//! The simulator's own interface for callbacks.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::settings::CallbackSettings;
use crate::reply::{self, Answer};
use crate::request::Request;
use crate::state::State;

const LOG_DEFAULT: usize = 100;
const LOG_MAX: usize = 1_000;

/// `None` if this module does not serve the path.
pub(crate) fn handle(state: &State, request: &Request) -> Option<Answer> {
    let answer = match (&request.method, request.path()) {
        (&Method::GET, "/callbacks") => show(state),
        (&Method::POST, "/callbacks") => match change(state, request) {
            Ok(()) => show(state),
            Err(message) => {
                let body = json!({ "error": message }).to_string();
                reply::json(StatusCode::BAD_REQUEST, body)
            }
        },
        (&Method::DELETE, "/callbacks") => {
            state.callbacks.reset();
            reply::empty(StatusCode::NO_CONTENT)
        }
        (&Method::GET, "/callbacks/log") => {
            let limit = request.query_number("limit", LOG_DEFAULT, LOG_MAX);
            let calls = state.callbacks.report.log(limit);
            reply::json(StatusCode::OK, json!({ "calls": calls }).to_string())
        }
        _ => return None,
    };
    Some(answer)
}

fn show(state: &State) -> Answer {
    let mut body = json!(state.callbacks.counts());
    body["settings"] = json!(state.callbacks.settings());
    reply::json(StatusCode::OK, body.to_string())
}

/// Changes the named settings; the others stay.
fn change(state: &State, request: &Request) -> Result<(), String> {
    let wish: Value = serde_json::from_slice(&request.body).map_err(|cause| cause.to_string())?;
    let Value::Object(wish) = wish else {
        return Err("the body must be an object".to_owned());
    };
    let mut settings = json!(state.callbacks.settings());
    if let Value::Object(known) = &mut settings {
        known.extend(wish);
    }
    let settings: CallbackSettings =
        serde_json::from_value(settings).map_err(|cause| cause.to_string())?;
    settings.check()?;
    state.callbacks.set(settings);
    Ok(())
}
