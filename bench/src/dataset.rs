//! A filled database with an API in front of it, and the response times of that API.

use std::time::{Duration, Instant};

use reqwest::{Client, Method};
use serde_json::Value;
use uuid::Uuid;
use waypost_core::clock::Timestamp;

/// A database of a certain size, and the API that serves it.
#[derive(Debug, Clone)]
pub(crate) struct Dataset {
    pub(crate) database_url: String,
    /// The API's URL, without a final slash.
    pub(crate) api: String,
    pub(crate) http: Client,
    /// Number of messages in it.
    pub(crate) messages: u64,
    /// When it was filled. Queries use this time, so the time of the measurement makes no
    /// difference.
    pub(crate) filled_at: Timestamp,
}

/// An organization, and a key of it with all permissions.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) organization: Uuid,
    pub(crate) key: String,
}

impl Dataset {
    /// Calls the API, which must respond with success. The time runs until the last byte
    /// of the response.
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
        let request = request.build().expect("the path is valid");
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

    /// Sends this many GET requests, one after the other, and returns the last response
    /// too. A few untimed requests come first to warm up.
    pub(crate) async fn get_repeatedly(
        &self,
        caller: &Caller,
        path: &str,
        times: usize,
    ) -> (Timings, Value) {
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

/// Durations of repeated calls.
#[derive(Debug, Default)]
pub(crate) struct Timings(Vec<Duration>);

impl Timings {
    pub(crate) fn add(&mut self, took: Duration) {
        self.0.push(took);
    }

    pub(crate) fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// The median, in milliseconds.
    pub(crate) fn p50(&self) -> f64 {
        self.within(50)
    }

    /// The 99th percentile, in milliseconds.
    pub(crate) fn p99(&self) -> f64 {
        self.within(99)
    }

    /// The shortest, in milliseconds.
    pub(crate) fn best(&self) -> f64 {
        let best = self.0.iter().min().copied().unwrap_or_default();
        best.as_secs_f64() * 1_000.0
    }

    fn within(&self, percent: usize) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let place = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
        let create_organizations = sorted.get(place).copied().unwrap_or_default();
        create_organizations.as_secs_f64() * 1_000.0
    }
}
