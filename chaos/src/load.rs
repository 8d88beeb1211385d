//! Those who send: honest clients. Every request carries an `Idempotency-Key`, and is
//! made again with the same key, at whichever API, until there is a definite answer.
//! Only what was answered 202 (in a batch, `queued`) counts as accepted.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;
use waypost_tests::{SENDER, untracked};

use crate::fleet::Fleet;
use crate::plan::{Kind, Message, Plan, Submission};
use crate::random::Random;
use crate::tenants::{Tenant, tag};

/// Requests that are under way or being repeated at the same time.
const REQUESTS_MAX: usize = 96;
/// How long one answer is waited for.
pub(crate) const ANSWER_MAX: Duration = Duration::from_secs(10);
/// Of the tries, those whose client loses patience, or its connection, while the request
/// is under way, and how soon: what it asked for may be done, and is asked for again.
const HASTY_SHARE: f64 = 0.05;
const HASTE_MS: f64 = 30.0;
/// What is said of a request whose connection ended before its whole answer.
const BROKEN: &str = "a connection that broke";
/// How long a request is repeated.
const PATIENCE: Duration = Duration::from_secs(180);

/// A message that was accepted.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) message_id: String,
    pub(crate) organization: usize,
    pub(crate) message: Message,
}

/// What came of the load.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    pub(crate) accepted: Vec<Accepted>,
    /// Requests that were refused or never answered, and why.
    pub(crate) failed: Vec<String>,
    /// Tries that had no definite answer, by what was wrong with them.
    pub(crate) repeated: BTreeMap<String, usize>,
    /// Answers that said that the work was done before.
    pub(crate) replayed: usize,
    /// Requests that the graceful stop of an API left without an answer.
    pub(crate) cut: usize,
}

/// The clients.
pub(crate) struct Load {
    pub(crate) http: Client,
    pub(crate) apis: Vec<String>,
    pub(crate) tenants: Arc<Vec<Tenant>>,
    fleet: Arc<Fleet>,
    answers: Mutex<Answers>,
}

/// What a try came to.
enum Try {
    Definite(Value),
    Again { why: String, wait: Duration },
    Refused(String),
}

impl Load {
    pub(crate) fn new(
        http: Client,
        apis: Vec<String>,
        tenants: Arc<Vec<Tenant>>,
        fleet: Arc<Fleet>,
    ) -> Arc<Self> {
        Arc::new(Self {
            http,
            apis,
            tenants,
            fleet,
            answers: Mutex::default(),
        })
    }

    /// Makes all requests of a plan, each at its time, and waits for their answers.
    pub(crate) async fn run(self: &Arc<Self>, plan: &Plan, mut random: Random) {
        let (begun, room) = (Instant::now(), Arc::new(Semaphore::new(REQUESTS_MAX)));
        let mut requests = JoinSet::new();
        for submission in &plan.submissions {
            tokio::time::sleep_until(begun + submission.at).await;
            let permit = Arc::clone(&room).acquire_owned().await;
            let (own, submission, random) = (Arc::clone(self), submission.clone(), random.fork());
            requests.spawn(async move {
                own.submit(submission, random).await;
                drop(permit);
            });
            while let Some(ended) = requests.try_join_next() {
                ended.expect("a client does not panic");
            }
        }
        while let Some(ended) = requests.join_next().await {
            ended.expect("a client does not panic");
        }
    }

    /// How many recipients were accepted so far.
    pub(crate) fn accepted(&self) -> usize {
        let answers = self.lock();
        let recipients = answers
            .accepted
            .iter()
            .flat_map(|one| &one.message.recipients);
        recipients
            .filter(|one| one.kind != Kind::Suppressed)
            .count()
    }

    /// What came of it, once.
    pub(crate) fn take(&self) -> Answers {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn submit(&self, submission: Submission, mut random: Random) {
        let (path, body) = written(&submission);
        let end = Instant::now() + PATIENCE;
        loop {
            let api = random.below(self.apis.len());
            let wait = match random.chance(HASTY_SHARE) {
                true => Duration::from_secs_f64(random.between(1.0, HASTE_MS) / 1_000.0),
                false => ANSWER_MAX,
            };
            let request = self
                .http
                .post(format!("{}{path}", self.apis[api]))
                .bearer_auth(&self.tenants[submission.organization].key)
                .header("Idempotency-Key", &submission.key)
                .timeout(wait)
                .json(&body);
            match self.try_once(request).await {
                Try::Definite(answer) => return self.note(submission, &answer),
                Try::Refused(why) => return self.note_failure(&submission, &why),
                Try::Again { why, wait } => {
                    let is_cut = why == BROKEN && self.fleet.is_stopping(api);
                    self.lock().cut += usize::from(is_cut);
                    *self.lock().repeated.entry(why.clone()).or_default() += 1;
                    if Instant::now() > end {
                        return self.note_failure(&submission, &format!("at last: {why}"));
                    }
                    tokio::time::sleep(wait.mul_f64(0.5 + random.fraction())).await;
                }
            }
        }
    }

    async fn try_once(&self, request: RequestBuilder) -> Try {
        let response = match request.send().await {
            Ok(response) => response,
            Err(error) => return again(cause(&error).to_owned(), None),
        };
        let (status, wait) = (response.status(), retry_after(&response));
        let is_replayed = response.headers().contains_key("Idempotent-Replayed");
        let Ok(answer) = response.json::<Value>().await else {
            return again(BROKEN.to_owned(), None);
        };
        match status {
            StatusCode::OK | StatusCode::ACCEPTED => {
                self.lock().replayed += usize::from(is_replayed);
                Try::Definite(answer)
            }
            // Another try with this key is still under way, or too many came at once.
            StatusCode::CONFLICT | StatusCode::TOO_MANY_REQUESTS => again(status.to_string(), wait),
            _ if status.is_server_error() => again(status.to_string(), wait),
            _ => Try::Refused(format!("{status} {answer}")),
        }
    }

    fn note(&self, submission: Submission, answer: &Value) {
        let single = std::slice::from_ref(answer);
        let results = answer["results"].as_array().map_or(single, Vec::as_slice);
        let mut answers = self.lock();
        if results.len() != submission.messages.len() {
            let why = format!("{}: {} answers", submission.key, results.len());
            answers.failed.push(why);
        }
        for (message, result) in submission.messages.into_iter().zip(results) {
            match (result["messageId"].as_str(), result["status"].as_str()) {
                (Some(id), Some("queued")) => answers.accepted.push(Accepted {
                    message_id: id.to_owned(),
                    organization: submission.organization,
                    message,
                }),
                _ => answers.failed.push(format!("{}: {result}", submission.key)),
            }
        }
    }

    fn note_failure(&self, submission: &Submission, why: &str) {
        let mut answers = self.lock();
        answers.failed.push(format!("{}: {why}", submission.key));
    }
}

fn written(submission: &Submission) -> (&'static str, Value) {
    let mut messages = submission.messages.iter().map(body);
    if submission.is_batch {
        let messages: Vec<Value> = messages.collect();
        return ("/v1/emails/batch", json!({ "messages": messages }));
    }
    ("/v1/send", messages.next().unwrap_or_default())
}

fn body(message: &Message) -> Value {
    let to: Vec<&str> = message
        .recipients
        .iter()
        .map(|one| one.address.as_str())
        .collect();
    json!({
        "from": SENDER,
        "to": to,
        "subject": "Chaos",
        "text": "Nothing lost, nothing twice.",
        "tags": [tag(message.rule)],
        "tracking": untracked(),
    })
}

fn again(why: String, wait: Option<Duration>) -> Try {
    Try::Again {
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
