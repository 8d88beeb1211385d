//! The clients that cancel messages. A client repeats its request, at any of the APIs, until
//! it gets a definite response; what the response says must hold whatever fails.

use std::time::Duration;

use futures_util::future::join_all;
use reqwest::StatusCode;
use serde_json::Value;
use tokio::time::Instant;

use crate::load::{Load, RESPONSE_TIME_MAX};
use crate::plan::Message;
use crate::random::Random;

/// How long a client repeats a request, and the pause in between.
const RETRY_TIME_MAX: Duration = Duration::from_secs(180);
const PAUSE: Duration = Duration::from_millis(300);

/// A cancellation to request.
pub(crate) struct Cancellation {
    pub(crate) message_id: String,
    pub(crate) organization: usize,
    /// How long after its acceptance.
    pub(crate) after: Duration,
}

impl Cancellation {
    /// The planned cancellation of an accepted message.
    pub(crate) fn of(message_id: &str, organization: usize, message: &Message) -> Option<Self> {
        Some(Self {
            message_id: message_id.to_owned(),
            organization,
            after: message.cancelled_after?,
        })
    }
}

impl Load {
    /// Makes the requests at their times.
    pub(crate) async fn cancel_all(&self, all: Vec<Cancellation>, mut random: Random) {
        let each = all.into_iter().map(|one| (one, random.fork()));
        let each: Vec<_> = each.collect();
        join_all(
            each.into_iter()
                .map(|(one, random)| self.cancel(one, random)),
        )
        .await;
    }

    async fn cancel(&self, one: Cancellation, mut random: Random) {
        tokio::time::sleep(one.after).await;
        let end = Instant::now() + RETRY_TIME_MAX;
        while Instant::now() < end {
            if let Some(cancelled) = self.try_cancel(&one, &mut random).await {
                return self.record_cancellation(&one.message_id, cancelled);
            }
            tokio::time::sleep(PAUSE.mul_f64(0.5 + random.fraction())).await;
        }
        self.record_failed_cancellation(&one.message_id);
    }

    /// How many recipients are cancelled, if the response is definite.
    async fn try_cancel(&self, one: &Cancellation, random: &mut Random) -> Option<usize> {
        let api = &self.apis[random.below(self.apis.len())];
        let request = self
            .http
            .post(format!("{api}/v1/messages/{}/cancel", one.message_id))
            .bearer_auth(&self.tenants[one.organization].key)
            .timeout(RESPONSE_TIME_MAX);
        let response = request.send().await.ok()?;
        let status = response.status();
        let answer = response.json::<Value>().await.ok()?;
        match status {
            StatusCode::OK => {
                let count = answer["data"]["cancelledCount"].as_u64()?;
                usize::try_from(count).ok()
            }
            StatusCode::CONFLICT => Some(0),
            _ => None,
        }
    }
}
