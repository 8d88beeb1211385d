//! A filled database with an API in front of it, and how its answers are timed.

use std::time::{Duration, Instant};

use reqwest::{Client, Method};
use serde_json::Value;
use uuid::Uuid;
use waypost_core::clock::Timestamp;

/// Where data of a certain size is.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) database_url: String,
    /// The API, without a final slash.
    pub(crate) api: String,
    pub(crate) http: Client,
    /// How many messages were filled in.
    pub(crate) messages: u64,
    /// When it was filled: what is measured does not depend on when that is done.
    pub(crate) filled_at: Timestamp,
}

/// An organization, and a key of it that may do everything.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) organization: Uuid,
    pub(crate) key: String,
}

impl Place {
    /// Asks the API, which has to say yes. The time is that until the last byte of the
    /// answer.
    pub(crate) async fn call(
        &self,
        caller: &Caller,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> (Duration, Value) {
        let url = format!("{}{path}", self.api);
        let mut request = self.http.request(method, url).bearer_auth(&caller.key);
        if let Some(body) = body {
            request = request.json(body);
        }
        let request = request.build().expect("the path is one");
        let began = Instant::now();
        let answer = self.http.execute(request).await.expect("the API answers");
        let status = answer.status();
        let bytes = answer.bytes().await.expect("the answer is complete");
        let took = began.elapsed();
        assert!(status.is_success(), "{path}: {status}");
        (
            took,
            serde_json::from_slice(&bytes).expect("the answer is JSON"),
        )
    }

    /// Asks so often, one request after the other, and answers the last answer too. Some
    /// are asked before, so that everything is warm.
    pub(crate) async fn ask(&self, caller: &Caller, path: &str, times: usize) -> (Timings, Value) {
        const WARM_UP: usize = 10;
        let mut timings = Timings::default();
        let mut last = Value::Null;
        for nth in 0..WARM_UP + times {
            let (took, answer) = self.call(caller, Method::GET, path, None).await;
            if nth >= WARM_UP {
                timings.add(took);
            }
            last = answer;
        }
        (timings, last)
    }
}

/// How long something took, each time.
#[derive(Debug, Default)]
pub(crate) struct Timings(Vec<Duration>);

impl Timings {
    pub(crate) fn add(&mut self, took: Duration) {
        self.0.push(took);
    }

    pub(crate) fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// Milliseconds within which half of them were done.
    pub(crate) fn p50(&self) -> f64 {
        self.within(50)
    }

    /// … and all but one in a hundred.
    pub(crate) fn p99(&self) -> f64 {
        self.within(99)
    }

    /// Milliseconds of the fastest.
    pub(crate) fn best(&self) -> f64 {
        let best = self.0.iter().min().copied().unwrap_or_default();
        best.as_secs_f64() * 1_000.0
    }

    fn within(&self, percent: usize) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let place = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
        let found = sorted.get(place).copied().unwrap_or_default();
        found.as_secs_f64() * 1_000.0
    }
}
