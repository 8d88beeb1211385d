//! A simulator for one test, and a client with a short timeout.

use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::{Client, RequestBuilder, StatusCode};
use serde_json::Value;
use waypost_simulator::{Captured, Config, Simulator};

/// Long enough for a busy machine, short enough for a test that waits for silence.
const TIMEOUT: Duration = Duration::from_millis(700);

pub(crate) struct World {
    pub(crate) simulator: Simulator,
    pub(crate) client: Client,
}

/// A complete response.
pub(crate) struct Seen {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(Config::default())
    }

    pub(crate) fn with(config: Config) -> Self {
        let client = Client::builder().no_proxy().build();
        Self {
            simulator: Simulator::start(config).expect("a free port exists"),
            client: client.expect("the client has no special settings"),
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.simulator.url())
    }

    pub(crate) fn post(&self, path: &str) -> RequestBuilder {
        self.client.post(self.url(path))
    }

    pub(crate) fn get(&self, path: &str) -> RequestBuilder {
        self.client.get(self.url(path))
    }

    pub(crate) fn only_recipient(&self, address: &str) -> Captured {
        let mut recipient_count = self.simulator.captured_to(address);
        assert_eq!(recipient_count.len(), 1, "copies for {address}");
        recipient_count.remove(0)
    }

    pub(crate) fn recipient_count(&self, address: &str) -> usize {
        self.simulator.captured_to(address).len()
    }
}

impl Seen {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).expect("the answer is JSON")
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().unwrap_or_default())
    }
}

pub(crate) async fn seen(request: RequestBuilder) -> Seen {
    let response = request.send().await.expect("the simulator answers");
    Seen {
        status: response.status(),
        headers: response.headers().clone(),
        text: response.text().await.expect("the answer is complete"),
    }
}

/// Asserts that no response comes while the connection stays open.
pub(crate) async fn assert_silent(request: RequestBuilder) {
    let error = request
        .timeout(TIMEOUT)
        .send()
        .await
        .expect_err("no response comes");
    assert!(error.is_timeout(), "{error:?}");
}

/// Asserts that the connection is closed without a response.
pub(crate) async fn assert_cut(request: RequestBuilder) {
    let error = request.send().await.expect_err("no response comes");
    assert!(!error.is_timeout(), "{error:?}");
}
