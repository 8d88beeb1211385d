//! The instruments: what each process counts and measures of itself, and how Prometheus reads
//! it. The names follow <https://prometheus.io/docs/practices/naming/>.
//!
//! A label takes few values, all known when the program is built, so an installation with a
//! million organizations has as many series as one with a single organization. No label is an
//! organization or an address. `account` is the only exception, by a setting.
//!
//! `monitoring` sets the gauges that are read from the database. `docs/metrics.md` lists all
//! instruments; `make test-alerts` compares it with this file.

use std::sync::OnceLock;
use std::time::Duration;

pub use metrics::SharedString;
use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use metrics_process::Collector;

/// What an instrument is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstrumentKind {
    Counter,
    Gauge,
    Histogram,
}

/// An instrument, for the documents.
#[derive(Debug, Clone, Copy)]
pub struct Instrument {
    pub name: &'static str,
    pub kind: InstrumentKind,
    pub labels: &'static [&'static str],
    pub help: &'static str,
}

/// The upper bounds of durations, in seconds.
const SECONDS: [f64; 14] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];
/// The upper bounds of the time from due to sent, in seconds: mail may wait for hours.
const LONG_SECONDS: [f64; 14] = [
    0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1_800.0, 7_200.0, 86_400.0,
];
/// The upper bounds of the sizes of batches.
const SIZES: [f64; 10] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0];
/// How often recorded durations are sorted into buckets if nobody reads them.
const SORT_EVERY: Duration = Duration::from_secs(15);

macro_rules! instruments {
    ($($constant:ident = $kind:ident $name:literal [$($label:literal),*] $help:literal;)*) => {
        $(const $constant: &str = $name;)*

        /// All instruments.
        pub const INSTRUMENTS: &[Instrument] = &[
            $(Instrument {
                name: $name,
                kind: InstrumentKind::$kind,
                labels: &[$($label),*],
                help: $help,
            },)*
        ];
    };
}

instruments! {
    BUILD_INFO = Gauge "waypost_build_info" ["program", "version"]
        "Always 1. The labels say which program this is, and its version.";
    READY = Gauge "waypost_ready" ["server"]
        "1 if the server works as the process needs it, else 0: `postgres`, `redis`, or `encryption_keys` if the keys open what is stored (NaN if PostgreSQL does not say). Checked when the metrics are read.";
    DATABASE_ERRORS = Counter "waypost_database_errors_total" ["class"]
        "Errors of PostgreSQL, by the first two characters of SQLSTATE. `53` means that it lacks disk, memory or connections. `pool` means that no connection was free in time, `connection` that the connection broke.";
    DATABASE_WAIT = Histogram "waypost_database_pool_wait_seconds" []
        "How long a transaction or a statement waited for a connection of its pool.";
    BATCH_SIZE = Histogram "waypost_batch_size" ["batch"]
        "Callers that shared one statement or transaction.";
    HTTP_REQUESTS = Counter "waypost_http_requests_total" ["operation", "status"]
        "Requests to the API, by the operation's id in the OpenAPI document and the HTTP status. `other` is any other path.";
    HTTP_DURATION = Histogram "waypost_http_request_duration_seconds" ["operation"]
        "How long the API took to answer.";
    SUBMISSIONS = Counter "waypost_submissions_total" ["reply"]
        "Mails over SMTP, by the code of the reply: 250 is accepted, 4xx is to be repeated, 5xx is refused.";
    SUBMISSION_DURATION = Histogram "waypost_submission_duration_seconds" []
        "How long SMTP submission took to answer a mail, from its end to the reply.";
    SUBMISSION_REFUSALS = Counter "waypost_submission_refusals_total" ["reason"]
        "Sessions, logins and mails that SMTP submission refused: `sessions` (too many), `tls` (no handshake), `login`, `logins` (too many failed), `rate_limit`, `unavailable`, `memory`, `too_large`, `line_ends`, `slow`, `commands` (too many without a mail), or `content`.";
    SUBMISSION_SESSIONS = Gauge "waypost_submission_sessions" []
        "SMTP sessions that are open.";
    ACCEPTANCE_DURATION = Histogram "waypost_acceptance_duration_seconds" []
        "How long the API took to accept the messages of one request, from the checked request to the commit.";
    MESSAGES_ACCEPTED = Counter "waypost_messages_accepted_total" []
        "Accepted messages.";
    PROVIDER_EVENTS = Counter "waypost_provider_events_total" ["provider", "type"]
        "Events that providers reported and that matched a message.";
    PROVIDER_EVENTS_UNMATCHED = Counter "waypost_provider_events_unmatched_total" ["provider"]
        "Events that providers reported of unknown messages.";
    PROVIDER_EVENTS_UNREADABLE = Counter "waypost_provider_events_unreadable_total" ["provider"]
        "Items in verified posts of providers that could not be read.";
    PROVIDER_POSTS_REFUSED = Counter "waypost_provider_posts_refused_total" ["provider"]
        "Posts to the event URLs of accounts whose signature was wrong, or whose account has no event secrets.";
    SEND_ATTEMPTS = Counter "waypost_send_attempts_total" ["provider", "outcome"]
        "Mails in calls to providers, by outcome. `UNKNOWN` means that the answer was lost.";
    SEND_CALL_DURATION = Histogram "waypost_send_call_duration_seconds" ["provider"]
        "How long calls that send took. A call may carry many mails.";
    SEND_DELAY = Histogram "waypost_send_delay_seconds" []
        "The time from when a mail was to be sent until a provider accepted it.";
    JOBS_RUNNING = Gauge "waypost_worker_jobs_running" []
        "Jobs that the worker runs.";
    JOBS_MAX = Gauge "waypost_worker_jobs_max" []
        "Jobs that the worker runs at most (WAYPOST_WORKER_CONCURRENCY).";
    WEBHOOK_ATTEMPTS = Counter "waypost_webhook_attempts_total" ["outcome"]
        "Posts to webhook endpoints: `delivered`, `failed`, or `gone` (410).";
    WEBHOOK_DURATION = Histogram "waypost_webhook_attempt_duration_seconds" []
        "How long posts to webhook endpoints took.";
    LEADER = Gauge "waypost_scheduler_leader" []
        "1 if this scheduler runs the tasks, else 0.";
    TASK_RUNS = Counter "waypost_task_runs_total" ["task", "outcome"]
        "Runs of the scheduler's tasks: `ok` or `failed`.";
    TASK_DURATION = Histogram "waypost_task_duration_seconds" ["task"]
        "How long the scheduler's tasks took.";
    TASK_LAG = Gauge "waypost_task_lag_seconds" ["task"]
        "Time since the task's last success, less its interval and the 10 s within which it is stored.";
    WORKERS = Gauge "waypost_workers" []
        "Workers whose lease has not ended.";
    QUEUE_JOBS = Gauge "waypost_queue_jobs" ["state"]
        "Jobs of unfinished messages (up to 100 recipients each): `waiting` for a worker, a retry or evidence, `leased` by a worker, `scheduled` for later, `dead`.";
    QUEUE_AGE = Gauge "waypost_queue_oldest_due_age_seconds" []
        "How long the oldest message that is due has waited. 0 if none is due: one that waits for its next try is not.";
    UNKNOWN_ATTEMPTS = Gauge "waypost_unknown_attempts" []
        "Attempts whose answer was lost and whose mail is looked up at the provider, or waits for an event.";
    ACCOUNTS = Gauge "waypost_provider_accounts" ["provider", "state"]
        "Provider accounts: `active`, `paused` (the provider refuses the account itself) or `inactive`.";
    CIRCUITS_OPEN = Gauge "waypost_circuits_open" ["provider", "cause"]
        "Accounts to which no calls are made for now: `CALLS_FAILED`, `PROVIDER_PAUSE` or `ACCOUNT_UNUSABLE`.";
    ACCOUNT_CIRCUIT_OPEN = Gauge "waypost_account_circuit_open" ["account"]
        "1 if no calls are made to the account for now, else 0. Only with WAYPOST_METRICS_ACCOUNTS.";
    ACCOUNT_MAILS = Gauge "waypost_account_mails" ["account", "kind"]
        "What became of the account's mail in the last 15 minutes and the rest of their first quarter of an hour: `attempts`, `accepted`, `rejected` and `deferred` calls, `sent`, `delivered`, `bounced` and `complained` recipients. Only with WAYPOST_METRICS_ACCOUNTS.";
    WEBHOOK_AGE = Gauge "waypost_webhook_oldest_due_age_seconds" []
        "How long the oldest webhook delivery that is due has waited, at endpoints that do not fail. 0 if none is due.";
    WEBHOOK_ENDPOINTS = Gauge "waypost_webhook_endpoints" ["state"]
        "Webhook endpoints: `active`, `failing` (the last posts failed; not counted as `active`) or `inactive`.";
}

static HANDLE: OnceLock<PrometheusHandle> = OnceLock::new();
static PROGRAM: OnceLock<&'static str> = OnceLock::new();

/// Starts the instruments of this process. Call it once, at the start of a program; before
/// that nothing is recorded.
pub fn start(program: &'static str) {
    let bounds = [
        (Matcher::Full(SEND_DELAY.to_owned()), &LONG_SECONDS[..]),
        (Matcher::Full(BATCH_SIZE.to_owned()), &SIZES[..]),
        (Matcher::Suffix("_seconds".to_owned()), &SECONDS[..]),
    ];
    let builder =
        bounds
            .into_iter()
            .fold(PrometheusBuilder::new(), |builder, (matcher, buckets)| {
                let builder = builder.set_buckets_for_metric(matcher, buckets);
                builder.expect("the list of bounds is not empty")
            });
    let recorder = builder.build_recorder();
    let handle = recorder.handle();
    // Fails if it is already set: tests share a process.
    if metrics::set_global_recorder(recorder).is_err() {
        return;
    }
    for instrument in INSTRUMENTS {
        match instrument.kind {
            InstrumentKind::Counter => describe_counter!(instrument.name, instrument.help),
            InstrumentKind::Gauge => describe_gauge!(instrument.name, instrument.help),
            InstrumentKind::Histogram => describe_histogram!(instrument.name, instrument.help),
        }
    }
    Collector::default().describe();
    begin_at_zero();
    let _ = PROGRAM.set(program);
    let _ = HANDLE.set(handle.clone());
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(SORT_EVERY).await;
            handle.run_upkeep();
        }
    });
}

/// All instruments of the process in Prometheus' text format.
#[must_use]
pub fn render() -> String {
    let Some(handle) = HANDLE.get() else {
        return String::new();
    };
    let program = PROGRAM.get().copied().unwrap_or_default();
    gauge!(BUILD_INFO, "program" => program, "version" => env!("CARGO_PKG_VERSION")).set(1);
    Collector::default().collect();
    handle.render()
}

/// Notes whether a server works; `None` if nobody knows.
pub fn ready(server: &'static str, is_ok: Option<bool>) {
    let value = is_ok.map_or(f64::NAN, |is_ok| f64::from(u8::from(is_ok)));
    gauge!(READY, "server" => server).set(value);
}

/// Makes the series of the errors that alerts watch, so that the first one is an increase.
fn begin_at_zero() {
    for class in ["53", POOL, CONNECTION] {
        counter!(DATABASE_ERRORS, "class" => class).increment(0);
    }
}

/// Does the same for the posts of providers, which an API receives.
pub fn begin_posts(providers: impl IntoIterator<Item = &'static str>) {
    for provider in providers {
        counter!(PROVIDER_EVENTS_UNMATCHED, "provider" => provider).increment(0);
        counter!(PROVIDER_EVENTS_UNREADABLE, "provider" => provider).increment(0);
        counter!(PROVIDER_POSTS_REFUSED, "provider" => provider).increment(0);
    }
}

/// Does the same for the attempts of a worker.
pub fn begin_attempts(
    providers: impl IntoIterator<Item = &'static str>,
    outcomes: &[&'static str],
) {
    for provider in providers {
        for outcome in outcomes {
            counter!(SEND_ATTEMPTS, "provider" => provider, "outcome" => *outcome).increment(0);
        }
    }
}

/// The class of the error that no connection was free in time.
pub const POOL: &str = "pool";
/// The class of broken connections.
pub const CONNECTION: &str = "connection";

/// Counts an error of Postgres.
pub fn database_error(class: &str) {
    counter!(DATABASE_ERRORS, "class" => class.to_owned()).increment(1);
}

/// Notes how long a caller waited for a connection.
pub fn database_wait(waited: Duration) {
    histogram!(DATABASE_WAIT).record(waited);
}

/// Notes the size of a batch.
pub fn batch(name: &'static str, size: usize) {
    histogram!(BATCH_SIZE, "batch" => name).record(count(size));
}

/// Counts a request of the API.
pub fn request(operation: SharedString, status: u16, took: Duration) {
    let status = status.to_string();
    counter!(HTTP_REQUESTS, "operation" => operation.clone(), "status" => status).increment(1);
    histogram!(HTTP_DURATION, "operation" => operation).record(took);
}

/// Counts a mail over SMTP by the code of its reply.
pub fn submission(reply: u16, took: Duration) {
    counter!(SUBMISSIONS, "reply" => reply.to_string()).increment(1);
    histogram!(SUBMISSION_DURATION).record(took);
}

/// Counts a session, a login or a mail that SMTP submission refused.
pub fn submission_refused(reason: &'static str) {
    counter!(SUBMISSION_REFUSALS, "reason" => reason).increment(1);
}

/// Counts an SMTP session until it is dropped.
#[must_use]
pub fn open_session() -> OpenSessionCount {
    gauge!(SUBMISSION_SESSIONS).increment(1);
    OpenSessionCount(())
}

/// An SMTP session that is open.
#[derive(Debug)]
pub struct OpenSessionCount(());

impl Drop for OpenSessionCount {
    fn drop(&mut self) {
        gauge!(SUBMISSION_SESSIONS).decrement(1);
    }
}

/// Counts accepted messages of one request, and how long it took to accept them.
pub fn accepted(messages: usize, took: Duration) {
    counter!(MESSAGES_ACCEPTED).increment(messages as u64);
    histogram!(ACCEPTANCE_DURATION).record(took);
}

/// Counts an event of a provider that matched a message.
pub fn provider_event(provider: &'static str, event_type: &'static str) {
    counter!(PROVIDER_EVENTS, "provider" => provider, "type" => event_type).increment(1);
}

/// Counts what a provider reported and nobody can use.
pub fn unusable_events(provider: &'static str, unmatched: usize, unreadable: usize) {
    if unmatched > 0 {
        counter!(PROVIDER_EVENTS_UNMATCHED, "provider" => provider).increment(unmatched as u64);
    }
    if unreadable > 0 {
        counter!(PROVIDER_EVENTS_UNREADABLE, "provider" => provider).increment(unreadable as u64);
    }
}

/// Counts a refused post of events.
pub fn post_refused(provider: &'static str) {
    counter!(PROVIDER_POSTS_REFUSED, "provider" => provider).increment(1);
}

/// Counts the outcome of one mail.
pub fn send_attempt(provider: &'static str, outcome: &'static str) {
    counter!(SEND_ATTEMPTS, "provider" => provider, "outcome" => outcome).increment(1);
}

/// Notes how long a call that sends took.
pub fn send_call(provider: &'static str, took: Duration) {
    histogram!(SEND_CALL_DURATION, "provider" => provider).record(took);
}

/// Notes how long after its time a mail was accepted by a provider.
pub fn send_delay(delay: Duration) {
    histogram!(SEND_DELAY).record(delay);
}

/// Notes how many jobs a worker runs at most.
pub fn jobs_max(jobs: usize) {
    gauge!(JOBS_MAX).set(count(jobs));
}

/// Counts a running job until it is dropped.
#[must_use]
pub fn running_job() -> RunningJobCount {
    gauge!(JOBS_RUNNING).increment(1);
    RunningJobCount(())
}

/// A job that runs.
#[derive(Debug)]
pub struct RunningJobCount(());

impl Drop for RunningJobCount {
    fn drop(&mut self) {
        gauge!(JOBS_RUNNING).decrement(1);
    }
}

/// Counts a post to a webhook endpoint.
pub fn webhook_attempt(outcome: &'static str, took: Duration) {
    counter!(WEBHOOK_ATTEMPTS, "outcome" => outcome).increment(1);
    histogram!(WEBHOOK_DURATION).record(took);
}

/// Notes whether this scheduler runs the tasks.
pub fn leader(is_leader: bool) {
    gauge!(LEADER).set(if is_leader { 1 } else { 0 });
}

/// Counts a run of a task of the scheduler.
pub fn task_run(task: &'static str, is_ok: bool, took: Duration) {
    let outcome = if is_ok { "ok" } else { "failed" };
    counter!(TASK_RUNS, "task" => task, "outcome" => outcome).increment(1);
    histogram!(TASK_DURATION, "task" => task).record(took);
}

/// Sets the lag of a task, in seconds.
pub fn task_lag(task: &str, lag: f64) {
    gauge!(TASK_LAG, "task" => task.to_owned()).set(lag);
}

/// A gauge whose value is read from the database; NaN if it could not be read.
#[derive(Debug, Clone, Copy)]
pub enum SampledGauge {
    Workers,
    QueueJobs(&'static str),
    QueueAge,
    UnknownAttempts,
    /// The provider and the state.
    Accounts(&'static str, &'static str),
    /// The provider and the cause.
    CircuitsOpen(&'static str, &'static str),
    WebhookAge,
    WebhookEndpoints(&'static str),
}

/// Sets a gauge whose value was read from the database.
pub fn sampled(which: SampledGauge, value: f64) {
    match which {
        SampledGauge::Workers => gauge!(WORKERS),
        SampledGauge::QueueJobs(state) => gauge!(QUEUE_JOBS, "state" => state),
        SampledGauge::QueueAge => gauge!(QUEUE_AGE),
        SampledGauge::UnknownAttempts => gauge!(UNKNOWN_ATTEMPTS),
        SampledGauge::Accounts(provider, state) => {
            gauge!(ACCOUNTS, "provider" => provider, "state" => state)
        }
        SampledGauge::CircuitsOpen(provider, cause) => {
            gauge!(CIRCUITS_OPEN, "provider" => provider, "cause" => cause)
        }
        SampledGauge::WebhookAge => gauge!(WEBHOOK_AGE),
        SampledGauge::WebhookEndpoints(state) => gauge!(WEBHOOK_ENDPOINTS, "state" => state),
    }
    .set(value);
}

/// Notes whether no calls are made to an account.
pub fn account_circuit(account: &str, is_open: bool) {
    gauge!(ACCOUNT_CIRCUIT_OPEN, "account" => account.to_owned()).set(if is_open { 1 } else { 0 });
}

/// Notes what became of an account's latest mail.
pub fn account_mails(account: &str, kind: &'static str, mails: f64) {
    gauge!(ACCOUNT_MAILS, "account" => account.to_owned(), "kind" => kind).set(mails);
}

#[expect(
    clippy::cast_precision_loss,
    reason = "sizes and counts are far below 2^52"
)]
fn count(number: usize) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_conventions_of_prometheus() {
        for instrument in INSTRUMENTS {
            let name = instrument.name;
            assert!(name.starts_with("waypost_"), "{name}");
            let is_total = name.ends_with("_total");
            assert_eq!(
                is_total,
                instrument.kind == InstrumentKind::Counter,
                "{name}"
            );
            assert!(instrument.help.ends_with('.'), "{name}");
        }
    }
}
