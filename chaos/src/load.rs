//! The clients that send. Every request carries an `Idempotency-Key`, and a client
//! repeats it with the same key, at any of the APIs, until it gets a definite response.
//! Only a message answered with 202 (in a batch, `queued`) counts as accepted.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;
use waypost_core::clock::{Clock, Timestamp, delta};
use waypost_tests::{SENDER, untracked};

use crate::cancellation::Cancellation;
use crate::fleet::{Fleet, Role};
use crate::plan::{Content, Kind, Message, Plan, Submission};
use crate::random::Random;
use crate::tenants::{Tenant, tag};

/// Concurrent requests, including those that are being repeated.
const REQUESTS_MAX: usize = 96;
/// Time limit of one response.
pub(crate) const RESPONSE_TIME_MAX: Duration = Duration::from_secs(10);
/// Share of the tries whose client disconnects early, and the longest time until then.
/// The API may have done the work; the client repeats the request.
const DISCONNECT_SHARE: f64 = 0.05;
const DISCONNECT_MS_MAX: f64 = 30.0;
/// The reason noted for a request whose connection broke before the end of the response.
const BROKEN: &str = "a connection that broke";
/// The text of a message, and the attachment of some, in base64.
const TEXT: &str = "Nothing lost, nothing twice.";
pub(crate) const FILE_NAME: &str = "receipt.txt";
const FILE: &str = "UGFpZC4=";
/// How long a client repeats a request.
const RETRY_TIME_MAX: Duration = Duration::from_secs(180);

/// A message that was accepted.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) message_id: String,
    pub(crate) organization: usize,
    pub(crate) message: Message,
    /// No provider may have it before.
    pub(crate) scheduled_at: Option<Timestamp>,
    /// How many of its recipients are cancelled, as the API says.
    pub(crate) cancelled: usize,
}

/// The results of the load.
#[derive(Debug, Default)]
pub(crate) struct LoadResult {
    pub(crate) accepted: Vec<Accepted>,
    /// Requests that were rejected or never answered, with the reason.
    pub(crate) failed: Vec<String>,
    /// Tries without a definite response, by reason.
    pub(crate) repeated: BTreeMap<String, usize>,
    /// Responses that were replayed for a repeated key.
    pub(crate) replayed: usize,
    /// Requests that the graceful stop of an API left without an answer.
    pub(crate) cut_by_stop: usize,
}

/// The clients.
pub(crate) struct Load {
    pub(crate) http: Client,
    pub(crate) apis: Vec<String>,
    pub(crate) tenants: Arc<Vec<Tenant>>,
    fleet: Arc<Fleet>,
    clock: Clock,
    results: Mutex<LoadResult>,
}

/// The result of one try.
enum TryResult {
    Definite(Value),
    Retry { why: String, wait: Duration },
    Refused(String),
}

impl Load {
    pub(crate) fn new(
        http: Client,
        apis: Vec<String>,
        tenants: Arc<Vec<Tenant>>,
        fleet: Arc<Fleet>,
        clock: Clock,
    ) -> Arc<Self> {
        Arc::new(Self {
            http,
            apis,
            tenants,
            fleet,
            clock,
            results: Mutex::default(),
        })
    }

    /// Makes all requests of a plan at their times, and waits for the responses.
    pub(crate) async fn run(self: &Arc<Self>, plan: &Plan, mut random: Random) {
        let (begun, permits) = (Instant::now(), Arc::new(Semaphore::new(REQUESTS_MAX)));
        let mut requests = JoinSet::new();
        for submission in &plan.submissions {
            tokio::time::sleep_until(begun + submission.at).await;
            let permit = Arc::clone(&permits).acquire_owned().await;
            let (own, submission) = (Arc::clone(self), submission.clone());
            let [sending, cancelling] = [random.fork(), random.fork()];
            requests.spawn(async move {
                let cancellations = own.submit(submission, sending).await;
                drop(permit);
                own.cancel_all(cancellations, cancelling).await;
            });
            while let Some(ended) = requests.try_join_next() {
                ended.expect("a client does not panic");
            }
        }
        while let Some(ended) = requests.join_next().await {
            ended.expect("a client does not panic");
        }
    }

    /// The number of recipients accepted so far.
    pub(crate) fn accepted(&self) -> usize {
        let results = self.lock();
        let recipients = results
            .accepted
            .iter()
            .flat_map(|one| &one.message.recipients);
        recipients
            .filter(|one| one.kind != Kind::Suppressed)
            .count()
    }

    /// Removes and returns the results.
    pub(crate) fn take(&self) -> LoadResult {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, LoadResult> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the cancellations of what was accepted.
    async fn submit(&self, submission: Submission, mut random: Random) -> Vec<Cancellation> {
        let begun_at = self.clock.now();
        let tenant = &self.tenants[submission.organization];
        let (path, body) = path_and_body(&submission, &tenant.template_id, begun_at);
        let end = Instant::now() + RETRY_TIME_MAX;
        loop {
            let mut api = random.below(self.apis.len());
            if self.fleet.is_unused(Role::Api, api) {
                api = random.below(api);
            }
            let wait = match random.chance(DISCONNECT_SHARE) {
                true => Duration::from_secs_f64(random.between(1.0, DISCONNECT_MS_MAX) / 1_000.0),
                false => RESPONSE_TIME_MAX,
            };
            let request = self
                .http
                .post(format!("{}{path}", self.apis[api]))
                .bearer_auth(&tenant.key)
                .header("Idempotency-Key", &submission.key)
                .timeout(wait)
                .json(&body);
            match self.try_once(request).await {
                TryResult::Definite(answer) => return self.record(submission, begun_at, &answer),
                TryResult::Refused(why) => {
                    self.record_failure(&submission, &why);
                    return Vec::new();
                }
                TryResult::Retry { why, wait } => {
                    let is_cut = why == BROKEN && self.fleet.is_stopping(api);
                    self.lock().cut_by_stop += usize::from(is_cut);
                    *self.lock().repeated.entry(why.clone()).or_default() += 1;
                    if Instant::now() > end {
                        self.record_failure(&submission, &format!("at last: {why}"));
                        return Vec::new();
                    }
                    tokio::time::sleep(wait.mul_f64(0.5 + random.fraction())).await;
                }
            }
        }
    }

    async fn try_once(&self, request: RequestBuilder) -> TryResult {
        let response = match request.send().await {
            Ok(response) => response,
            Err(error) => return retry(cause(&error).to_owned(), None),
        };
        let (status, wait) = (response.status(), retry_after(&response));
        let is_replayed = response.headers().contains_key("Idempotent-Replayed");
        let Ok(answer) = response.json::<Value>().await else {
            return retry(BROKEN.to_owned(), None);
        };
        match status {
            StatusCode::OK | StatusCode::ACCEPTED => {
                self.lock().replayed += usize::from(is_replayed);
                TryResult::Definite(answer)
            }
            // Another try with this key is still running, or too many requests came at
            // once.
            StatusCode::CONFLICT | StatusCode::TOO_MANY_REQUESTS => retry(status.to_string(), wait),
            _ if status.is_server_error() => retry(status.to_string(), wait),
            _ => TryResult::Refused(format!("{status} {answer}")),
        }
    }

    fn record(
        &self,
        submission: Submission,
        begun_at: Timestamp,
        answer: &Value,
    ) -> Vec<Cancellation> {
        let single = std::slice::from_ref(answer);
        let results = answer["results"].as_array().map_or(single, Vec::as_slice);
        let mut cancellations = Vec::new();
        let mut load = self.lock();
        if results.len() != submission.messages.len() {
            let why = format!("{}: {} results", submission.key, results.len());
            load.failed.push(why);
        }
        for (message, result) in submission.messages.into_iter().zip(results) {
            match (result["messageId"].as_str(), result["status"].as_str()) {
                (Some(id), Some("queued")) => {
                    cancellations.extend(Cancellation::of(id, submission.organization, &message));
                    load.accepted.push(Accepted {
                        message_id: id.to_owned(),
                        organization: submission.organization,
                        scheduled_at: scheduled_at(&message, begun_at),
                        message,
                        cancelled: 0,
                    });
                }
                _ => load.failed.push(format!("{}: {result}", submission.key)),
            }
        }
        cancellations
    }

    pub(crate) fn record_cancellation(&self, message_id: &str, cancelled: usize) {
        let mut results = self.lock();
        let mut accepted = results.accepted.iter_mut();
        if let Some(one) = accepted.find(|one| one.message_id == message_id) {
            one.cancelled = cancelled;
        }
    }

    pub(crate) fn record_failed_cancellation(&self, message_id: &str) {
        let why = format!("the cancellation of {message_id} got no definite response");
        self.lock().failed.push(why);
    }

    fn record_failure(&self, submission: &Submission, why: &str) {
        let mut results = self.lock();
        results.failed.push(format!("{}: {why}", submission.key));
    }
}

fn path_and_body(
    submission: &Submission,
    template_id: &str,
    begun_at: Timestamp,
) -> (&'static str, Value) {
    let messages = submission.messages.iter();
    let mut messages = messages.map(|message| body(message, template_id, begun_at));
    if submission.is_batch {
        let messages: Vec<Value> = messages.collect();
        return ("/v1/emails/batch", json!({ "messages": messages }));
    }
    ("/v1/send", messages.next().unwrap_or_default())
}

/// When a message of a request is due, if it is scheduled.
fn scheduled_at(message: &Message, begun_at: Timestamp) -> Option<Timestamp> {
    Some(begun_at + delta(message.scheduled?))
}

fn body(message: &Message, template_id: &str, begun_at: Timestamp) -> Value {
    let to: Vec<&str> = message
        .recipients
        .iter()
        .map(|one| one.address.as_str())
        .collect();
    let mut body = json!({
        "from": SENDER,
        "to": to,
        "subject": "Chaos",
        "tags": [tag(message.rule)],
        "tracking": untracked(),
    });
    match message.content {
        Content::Text | Content::File => body["text"] = TEXT.into(),
        Content::Template => {
            body["templateId"] = template_id.into();
            body["variables"] = json!({ "name": "Ada" });
        }
    }
    if message.content == Content::File {
        body["attachments"] = json!([{ "filename": FILE_NAME, "content": FILE }]);
    }
    if let Some(time) = scheduled_at(message, begun_at) {
        body["scheduledAt"] = time.to_rfc3339().into();
    }
    body
}

fn retry(why: String, wait: Option<Duration>) -> TryResult {
    TryResult::Retry {
        why,
        wait: wait.unwrap_or(Duration::from_millis(300)),
    }
}

fn cause(error: &reqwest::Error) -> &'static str {
    if error.is_timeout() {
        "no answer in time"
    } else if error.is_connect() {
        "no connection"
    } else {
        BROKEN
    }
}

fn retry_after(response: &Response) -> Option<Duration> {
    let wait = response.headers().get("Retry-After")?.to_str().ok()?;
    wait.parse().ok().map(Duration::from_secs)
}
