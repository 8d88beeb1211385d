//! The delay until the providers' searches show accepted messages.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::json;

use crate::clock;
use crate::reply::{self, Answer};
use crate::request::Request;
use crate::state::State;

/// The search settings. At the start searches show everything at once.
#[derive(Default)]
pub(crate) struct Searches {
    lag_ms: AtomicU64,
}

impl Searches {
    pub(crate) fn set_lag(&self, lag: Duration) {
        let lag_ms = u64::try_from(lag.as_millis()).unwrap_or(u64::MAX);
        self.lag_ms.store(lag_ms, Ordering::Relaxed);
    }

    /// The latest time of acceptance that a search shows.
    pub(crate) fn horizon(&self) -> DateTime<Utc> {
        let lag_ms = i64::try_from(self.lag_ms.load(Ordering::Relaxed)).ok();
        let lag = lag_ms.and_then(TimeDelta::try_milliseconds);
        let horizon = lag.and_then(|lag| clock::now().checked_sub_signed(lag));
        horizon.unwrap_or(DateTime::<Utc>::MIN_UTC)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Settings {
    lag_ms: u64,
}

/// `GET` and `POST /searches`; `None` if the path is another.
pub(crate) fn handle(state: &State, request: &Request) -> Option<Answer> {
    if request.path() != "/searches" {
        return None;
    }
    let status = match request.method {
        Method::GET => StatusCode::OK,
        Method::POST => match serde_json::from_slice::<Settings>(&request.body) {
            Ok(settings) => {
                let lag = Duration::from_millis(settings.lag_ms);
                state.searches.set_lag(lag);
                StatusCode::OK
            }
            Err(cause) => {
                let body = json!({ "error": cause.to_string() });
                return Some(reply::json(StatusCode::BAD_REQUEST, body.to_string()));
            }
        },
        _ => return None,
    };
    let lag_ms = state.searches.lag_ms.load(Ordering::Relaxed);
    Some(reply::json(status, json!({ "lagMs": lag_ms }).to_string()))
}
