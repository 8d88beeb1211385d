//! Callbacks: the events that providers report to registered URLs after they accepted a
//! message.
//!
//! `event_kinds` selects the events of a message; `schedule` holds events until they are
//! due; an `endpoint` is a registered URL; a `call` is one POST, signed and retried as
//! its provider does; `report` counts. The module of each provider builds its events.
//!
//! A send never waits for callbacks. The text of an event is written when its call is
//! made. Beyond a number of waiting events, further ones are not queued but counted.

mod call;
mod control;
mod endpoint;
mod event_kinds;
mod keys;
mod report;
mod schedule;
mod settings;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use chrono::{SecondsFormat, TimeDelta};
use parking_lot::RwLock;
use reqwest::Client;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clock;
use crate::ids::Ids;
use crate::mail::Record;
use crate::providers::{self, Provider};
pub(crate) use call::PreparedCall;
use call::{Call, CallResult};
pub(crate) use control::handle;
pub(crate) use endpoint::{Endpoint, Event, Subscriber, Target, parse_url};
pub(crate) use event_kinds::{Kinds, ProviderEventKind, events_for};
pub(crate) use keys::{SendGridKey, SnsVersion, sign_mailgun, sns_certificate};
pub use report::CallbackCounts;
use report::{LogEntry, Report};
use schedule::{Due, Schedule, Work};
pub(crate) use settings::Stamp;
pub use settings::{CallbackSettings, SignatureFault};

/// Events that may wait; each keeps its message in memory. Further ones are only counted.
const WAITING_MAX: usize = 400_000;
/// Events that move to their endpoints before the task yields.
const RELEASE_MAX: usize = 1_000;

/// The state of all callbacks.
pub(crate) struct Callbacks {
    settings: RwLock<CallbackSettings>,
    schedule: Schedule,
    report: Report,
    /// Events that are scheduled, in endpoints, in calls, or waiting for a retry.
    waiting: AtomicUsize,
    ids: Ids,
    client: OnceLock<Client>,
    tasks: TaskTracker,
    stopping: CancellationToken,
}

impl Callbacks {
    pub(crate) fn new(tasks: TaskTracker, stopping: CancellationToken) -> Self {
        Self {
            settings: RwLock::default(),
            schedule: Schedule::default(),
            report: Report::default(),
            waiting: AtomicUsize::new(0),
            ids: Ids::new(),
            client: OnceLock::new(),
            tasks,
            stopping,
        }
    }

    pub(crate) fn settings(&self) -> CallbackSettings {
        *self.settings.read()
    }

    pub(crate) fn set(&self, settings: CallbackSettings) {
        *self.settings.write() = settings;
    }

    pub(crate) fn counts(&self) -> CallbackCounts {
        CallbackCounts {
            waiting: self.waiting.load(Ordering::Relaxed),
            ..self.report.counts()
        }
    }

    /// Resets the settings, the log and the schedule. Running calls continue.
    pub(crate) fn reset(&self) {
        self.set(CallbackSettings::default());
        self.waiting
            .fetch_sub(self.schedule.clear(), Ordering::Relaxed);
        self.report.clear();
    }

    /// Schedules the events of these recipients for the subscribers.
    pub(crate) fn schedule_events(&self, records: &[Arc<Record>], subscribers: &[Subscriber]) {
        let settings = self.settings();
        if !settings.enabled {
            return;
        }
        let now = Instant::now();
        let mut all = Vec::new();
        for record in records {
            self.schedule_events_of(record, subscribers, settings, now, &mut all);
        }
        let (count, room) = (all.len(), WAITING_MAX.saturating_sub(self.counted()));
        all.truncate(room);
        self.waiting.fetch_add(all.len(), Ordering::Relaxed);
        self.report.count(|counts| {
            counts.queued += all.len() as u64;
            counts.overflowed += (count - all.len()) as u64;
        });
        self.schedule.push(all);
    }

    /// Posts a text immediately that is no event.
    pub(crate) fn post(self: &Arc<Self>, endpoint: Arc<Endpoint>, text: String) {
        self.spawn_call(Call::new(endpoint, text, &[]));
    }

    /// Moves due events to their endpoints, until the simulator stops.
    pub(crate) async fn run(self: Arc<Self>) {
        loop {
            let (due, next) = self.schedule.take_due(Instant::now(), RELEASE_MAX);
            let batch_max = self.settings().batch_events_max;
            for one in due {
                match one.work {
                    Work::Report(endpoint, event) => {
                        if endpoint.push(event, batch_max) {
                            let draining = Arc::clone(&self).drain(endpoint);
                            self.spawn(draining);
                        }
                    }
                    Work::Retry(call) => self.spawn_call(*call),
                }
            }
            let next_due = async {
                match next {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.stopping.cancelled() => return,
                () = self.schedule.sooner.notified() => {}
                () = next_due => {}
            }
        }
    }

    fn schedule_events_of(
        &self,
        record: &Arc<Record>,
        subscribers: &[Subscriber],
        settings: CallbackSettings,
        now: Instant,
        all: &mut Vec<Due>,
    ) {
        let delay = Duration::from_millis(settings.delay_ms);
        let kinds = event_kinds::events_for(&record.recipient.to);
        let mut after = Duration::ZERO;
        for (step, &kind) in kinds.iter().enumerate() {
            after += delay.mul_f64(match step {
                0 => self.ids.uniform() / 4.0,
                1 => 0.5 + self.ids.uniform(),
                _ => 1.0 + 2.0 * self.ids.uniform(),
            });
            // SendGrid reports nothing else about a message that it drops.
            let is_left_out = kind == ProviderEventKind::Sent
                && record.provider == Provider::SendGrid
                && kinds.contains(&ProviderEventKind::Dropped);
            let wait = match settings.shuffle {
                true => delay.mul_f64(5.0 * self.ids.uniform()),
                false => after,
            };
            let subscribed = subscribers
                .iter()
                .filter(|one| one.subscribed_kinds.contains(kind) && !is_left_out);
            for subscriber in subscribed {
                let event = Event {
                    record: Arc::clone(record),
                    kind,
                    at: record.accepted_at
                        + settings.ahead()
                        + TimeDelta::from_std(after).unwrap_or_default(),
                };
                all.push(Due {
                    at: now + wait,
                    tie: match settings.shuffle {
                        true => self.ids.number(),
                        false => step as u64,
                    },
                    work: Work::Report(Arc::clone(&subscriber.endpoint), event),
                });
            }
        }
    }

    /// Makes calls until the endpoint is empty.
    async fn drain(self: Arc<Self>, endpoint: Arc<Endpoint>) {
        loop {
            let settings = self.settings();
            let max = if endpoint.batches() {
                self.wait_for_batch(&endpoint, settings).await;
                settings.batch_events_max
            } else {
                1
            };
            // The semaphore is never closed.
            let permit = Arc::clone(&endpoint.calls).acquire_owned().await.ok();
            let events = endpoint.take(max);
            if events.is_empty() {
                return;
            }
            let (callbacks, endpoint) = (Arc::clone(&self), Arc::clone(&endpoint));
            self.spawn(async move {
                let stamp = settings.stamp();
                let mut rest = events.as_slice();
                while !rest.is_empty() {
                    let (text, count) = providers::call_body(&endpoint, rest, stamp);
                    let (now, later) = rest.split_at(count);
                    rest = later;
                    callbacks
                        .call(Call::new(Arc::clone(&endpoint), text, now))
                        .await;
                }
                drop(permit);
            });
        }
    }

    /// Waits until a batch is full, or its time is over.
    async fn wait_for_batch(&self, endpoint: &Endpoint, settings: CallbackSettings) {
        let flush = tokio::time::sleep(Duration::from_millis(settings.flush_ms));
        tokio::pin!(flush);
        while !endpoint.is_full(settings.batch_events_max) {
            tokio::select! {
                () = endpoint.full.notified() => {}
                () = &mut flush => return,
            }
        }
    }

    /// Makes one call, twice if a duplicate is due, and handles the response.
    async fn call(&self, mut call: Call) {
        let settings = self.settings();
        call.tries += 1;
        let prepared = call.prepare_call(settings.stamp(), &self.ids);
        let client = self.client.get_or_init(call::client);
        let status = call::post(client, &call.endpoint, &prepared).await;
        self.record(&call, status, false);
        if self.ids.chance(settings.duplicate_rate) {
            let status = call::post(client, &call.endpoint, &prepared).await;
            self.record(&call, status, true);
        }
        let events = call.events();
        let result = call.evaluate(status);
        if let CallResult::Retry(pause) = result {
            self.schedule.push(vec![Due {
                at: Instant::now() + pause.mul_f64(settings.retry_factor),
                tie: 0,
                work: Work::Retry(Box::new(call)),
            }]);
            return;
        }
        self.report.count(|counts| match result {
            CallResult::Accepted => counts.acknowledged += events as u64,
            CallResult::GivenUp | CallResult::Retry(_) => counts.given_up += events as u64,
        });
        self.waiting.fetch_sub(events, Ordering::Relaxed);
    }

    fn record(&self, call: &Call, status: Option<u16>, is_duplicate: bool) {
        self.report.count(|counts| {
            counts.sent += 1;
            counts.duplicated += u64::from(is_duplicate);
            match status {
                Some(200..300) => {}
                Some(status) => *counts.refused.entry(status).or_default() += 1,
                None => counts.unanswered += 1,
            }
        });
        self.report.add(LogEntry {
            at: clock::now().to_rfc3339_opts(SecondsFormat::Millis, true),
            provider: call.endpoint.provider(),
            url: call.endpoint.url.to_string(),
            attempt: call.tries,
            events: call.events_by_name(),
            status,
            is_duplicate,
        });
    }

    fn spawn_call(self: &Arc<Self>, call: Call) {
        let callbacks = Arc::clone(self);
        self.spawn(async move {
            let permit = Arc::clone(&call.endpoint.calls).acquire_owned().await.ok();
            callbacks.call(call).await;
            drop(permit);
        });
    }

    /// Runs a task until the simulator stops.
    fn spawn(self: &Arc<Self>, task: impl Future<Output = ()> + Send + 'static) {
        let stopping = self.stopping.clone();
        self.tasks.spawn(async move {
            stopping.run_until_cancelled(task).await;
        });
    }

    fn counted(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }
}
