//! Callbacks: what providers tell, after they accepted a mail, to whoever registered for it.
//!
//! The characters: `story` says what becomes of a mail; `queue` holds what is to be told until it
//! is due; a `lane` leads to one URL; a `call` is one POST, signed as its provider signs, and
//! repeated as its provider repeats; `report` counts. What an event looks like is said beside the
//! rest of its provider.
//!
//! Nobody who sends mail waits for any of this. Events are put into words only when their call is
//! made, and beyond a number of them that wait, further ones are not queued but counted.

mod call;
mod control;
mod keys;
mod lane;
mod queue;
mod report;
mod settings;
mod story;

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
pub(crate) use call::Dressed;
use call::{Call, Verdict};
pub(crate) use control::handle;
pub(crate) use keys::{SendGridKey, SnsVersion, sign_mailgun, sns_certificate};
pub(crate) use lane::{Event, Lane, Subscriber, Target, parse_url};
use queue::{Due, Queue, Work};
pub use report::CallbackCounts;
use report::{LogEntry, Report};
pub(crate) use settings::Stamp;
pub use settings::{CallbackSettings, SignatureFault};
pub(crate) use story::{Kinds, ProviderEventKind, story_of};

/// Events that may wait; each keeps its mail in memory. Further ones are only counted.
const WAITING_MAX: usize = 400_000;
/// Events that move into their lanes before others get a turn.
const RELEASE_MAX: usize = 1_000;

/// Everything about callbacks that goes on.
pub(crate) struct Callbacks {
    settings: RwLock<CallbackSettings>,
    queue: Queue,
    report: Report,
    /// Events that are queued, in lanes, under way or to be repeated.
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
            queue: Queue::default(),
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

    /// Settings as at the start, and nothing remembered or queued. Calls under way go on.
    pub(crate) fn reset(&self) {
        self.set(CallbackSettings::default());
        self.waiting
            .fetch_sub(self.queue.clear(), Ordering::Relaxed);
        self.report.clear();
    }

    /// Queues what becomes of these copies for those who asked.
    pub(crate) fn tell(&self, records: &[Arc<Record>], subscribers: &[Subscriber]) {
        let settings = self.settings();
        if !settings.enabled {
            return;
        }
        let now = Instant::now();
        let mut all = Vec::new();
        for record in records {
            self.tell_one(record, subscribers, settings, now, &mut all);
        }
        let (count, room) = (all.len(), WAITING_MAX.saturating_sub(self.counted()));
        all.truncate(room);
        self.waiting.fetch_add(all.len(), Ordering::Relaxed);
        self.report.count(|counts| {
            counts.queued += all.len() as u64;
            counts.overflowed += (count - all.len()) as u64;
        });
        self.queue.push(all);
    }

    /// Posts a text at once that is no event.
    pub(crate) fn post(self: &Arc<Self>, lane: Arc<Lane>, text: String) {
        self.spawn_call(Call::new(lane, text, &[]));
    }

    /// Moves what is due into its lane, until the simulator stops.
    pub(crate) async fn run(self: Arc<Self>) {
        loop {
            let (due, next) = self.queue.take_due(Instant::now(), RELEASE_MAX);
            let batch_max = self.settings().batch_events_max;
            for one in due {
                match one.work {
                    Work::Tell(lane, event) => {
                        if lane.push(event, batch_max) {
                            let emptying = Arc::clone(&self).empty(lane);
                            self.spawn(emptying);
                        }
                    }
                    Work::Repeat(call) => self.spawn_call(*call),
                }
            }
            let ripening = async {
                match next {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.stopping.cancelled() => return,
                () = self.queue.sooner.notified() => {}
                () = ripening => {}
            }
        }
    }

    fn tell_one(
        &self,
        record: &Arc<Record>,
        subscribers: &[Subscriber],
        settings: CallbackSettings,
        now: Instant,
        all: &mut Vec<Due>,
    ) {
        let delay = Duration::from_millis(settings.delay_ms);
        let story = story::story_of(&record.copy.to);
        let mut after = Duration::ZERO;
        for (step, &happening) in story.iter().enumerate() {
            after += delay.mul_f64(match step {
                0 => self.ids.uniform() / 4.0,
                1 => 0.5 + self.ids.uniform(),
                _ => 1.0 + 2.0 * self.ids.uniform(),
            });
            // SendGrid says of a mail that it drops only that.
            let is_left_out = happening == ProviderEventKind::Sent
                && record.provider == Provider::SendGrid
                && story.contains(&ProviderEventKind::Dropped);
            let wait = match settings.shuffle {
                true => delay.mul_f64(5.0 * self.ids.uniform()),
                false => after,
            };
            let wanting = subscribers
                .iter()
                .filter(|one| one.wants.contains(happening) && !is_left_out);
            for subscriber in wanting {
                let event = Event {
                    record: Arc::clone(record),
                    happening,
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
                    work: Work::Tell(Arc::clone(&subscriber.lane), event),
                });
            }
        }
    }

    /// Makes calls until the lane is empty.
    async fn empty(self: Arc<Self>, lane: Arc<Lane>) {
        loop {
            let settings = self.settings();
            let max = if lane.batches() {
                self.gather(&lane, settings).await;
                settings.batch_events_max
            } else {
                1
            };
            // The semaphore is never closed.
            let permit = Arc::clone(&lane.calls).acquire_owned().await.ok();
            let events = lane.take(max);
            if events.is_empty() {
                return;
            }
            let (callbacks, lane) = (Arc::clone(&self), Arc::clone(&lane));
            self.spawn(async move {
                let stamp = settings.stamp();
                let mut rest = events.as_slice();
                while !rest.is_empty() {
                    let (text, count) = providers::word(&lane, rest, stamp);
                    let (told, later) = rest.split_at(count);
                    rest = later;
                    callbacks
                        .call(Call::new(Arc::clone(&lane), text, told))
                        .await;
                }
                drop(permit);
            });
        }
    }

    /// Waits until a batch is full, or has waited long enough.
    async fn gather(&self, lane: &Lane, settings: CallbackSettings) {
        let flush = tokio::time::sleep(Duration::from_millis(settings.flush_ms));
        tokio::pin!(flush);
        while !lane.is_full(settings.batch_events_max) {
            tokio::select! {
                () = lane.full.notified() => {}
                () = &mut flush => return,
            }
        }
    }

    /// Makes one call, twice where chance wants it, and sees to what its answer means.
    async fn call(&self, mut call: Call) {
        let settings = self.settings();
        call.tries += 1;
        let dressed = call.dress(settings.stamp(), &self.ids);
        let client = self.client.get_or_init(call::client);
        let status = call::post(client, &call.lane, &dressed).await;
        self.note(&call, status, false);
        if self.ids.chance(settings.duplicate_rate) {
            let status = call::post(client, &call.lane, &dressed).await;
            self.note(&call, status, true);
        }
        let events = call.events();
        let verdict = call.judge(status);
        if let Verdict::Again(pause) = verdict {
            self.queue.push(vec![Due {
                at: Instant::now() + pause.mul_f64(settings.retry_factor),
                tie: 0,
                work: Work::Repeat(Box::new(call)),
            }]);
            return;
        }
        self.report.count(|counts| match verdict {
            Verdict::Taken => counts.acknowledged += events as u64,
            Verdict::GivenUp | Verdict::Again(_) => counts.given_up += events as u64,
        });
        self.waiting.fetch_sub(events, Ordering::Relaxed);
    }

    fn note(&self, call: &Call, status: Option<u16>, is_duplicate: bool) {
        self.report.count(|counts| {
            counts.sent += 1;
            counts.duplicated += u64::from(is_duplicate);
            match status {
                Some(200..300) => {}
                Some(status) => *counts.refused.entry(status).or_default() += 1,
                None => counts.unanswered += 1,
            }
        });
        self.report.note(LogEntry {
            at: clock::now().to_rfc3339_opts(SecondsFormat::Millis, true),
            provider: call.lane.provider(),
            url: call.lane.url.to_string(),
            attempt: call.tries,
            events: call.events_by_name(),
            status,
            is_duplicate,
        });
    }

    fn spawn_call(self: &Arc<Self>, call: Call) {
        let callbacks = Arc::clone(self);
        self.spawn(async move {
            let permit = Arc::clone(&call.lane.calls).acquire_owned().await.ok();
            callbacks.call(call).await;
            drop(permit);
        });
    }

    /// Runs it until the simulator stops.
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
