//! One fault of the servers instead of all others (`make test-servers`): a script makes
//! PostgreSQL or Redis fail over in the middle of the load. Measures how long the APIs are
//! not ready, and how long no mail is sent.

use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Client;
use tokio::time::Instant;

use crate::faults::{LATENCY_MS, Targets};
use crate::output::progress;

/// How long the load lasts, and the share of it after which the servers fail.
pub(crate) const LOAD_TIME: Duration = Duration::from_secs(25);
const FAILS_AT: f64 = 0.35;
/// Within which time every API must be ready again.
const READY_WITHIN: Duration = Duration::from_secs(20);
/// How long the mail at the providers is watched from the fault on: until the load ends.
const WATCH_TIME: Duration = Duration::from_secs(14);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The fault of a run.
pub(crate) struct ServerFault {
    pub(crate) targets: Arc<Targets>,
    pub(crate) http: Client,
    pub(crate) apis: Vec<String>,
    /// The argument of `scripts/failover-servers.sh`.
    pub(crate) action: String,
}

impl ServerFault {
    /// Injects the fault. The error says which API was not ready in time after it.
    pub(crate) async fn run(self) -> Result<(), String> {
        let latency = waypost_simulator::Fault::slow_sends(LATENCY_MS);
        self.targets.simulator.set_fault(latency);
        tokio::time::sleep(LOAD_TIME.mul_f64(FAILS_AT)).await;
        progress(&self.action);
        let (ready_after, pause) = tokio::join!(self.fail_over(), self.longest_pause());
        let ready_after = ready_after?;
        progress(format!(
            "every API was ready again after {:.1} s; no mail was sent for at most {:.1} s",
            ready_after.as_secs_f64(),
            pause.as_secs_f64()
        ));
        Ok(())
    }

    /// How long it took until every API was ready.
    async fn fail_over(&self) -> Result<Duration, String> {
        let begun = Instant::now();
        self.targets.servers.fail_over(self.action.clone()).await;
        for api in &self.apis {
            if !self.is_ready_by(api, begun + READY_WITHIN).await {
                return Err(format!("{api} is not ready within {READY_WITHIN:?}"));
            }
        }
        Ok(begun.elapsed())
    }

    /// The longest time in which the providers received no mail, from now on.
    async fn longest_pause(&self) -> Duration {
        let begun = Instant::now();
        let (mut count, mut since, mut longest) = (0, begun, Duration::ZERO);
        while begun.elapsed() < WATCH_TIME {
            tokio::time::sleep(POLL_INTERVAL).await;
            let captured = self.targets.simulator.captured_count();
            if captured != count {
                longest = longest.max(since.elapsed());
                (count, since) = (captured, Instant::now());
            }
        }
        longest.max(since.elapsed())
    }

    async fn is_ready_by(&self, api: &str, end: Instant) -> bool {
        let url = format!("{api}/readyz");
        while Instant::now() < end {
            let answer = self.http.get(&url).send().await;
            if answer.is_ok_and(|answer| answer.status().is_success()) {
                return true;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        false
    }
}

/// An address that follows a failover: each connection goes to the first of the servers that
/// accepts it. Written `address=server,server`.
#[derive(Debug, Clone)]
pub(crate) struct Forward {
    pub(crate) listen: SocketAddr,
    pub(crate) servers: Vec<SocketAddr>,
}

impl FromStr for Forward {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let address = |text: &str| text.parse().map_err(|error| format!("{text}: {error}"));
        let (listen, servers) = text.split_once('=').ok_or("there is no =")?;
        let servers = servers
            .split(',')
            .map(address)
            .collect::<Result<_, String>>()?;
        Ok(Self {
            listen: address(listen)?,
            servers,
        })
    }
}
