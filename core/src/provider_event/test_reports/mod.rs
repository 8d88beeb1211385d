//! The events of tests: what a provider would report of the mail that it accepted. The outcome
//! of a test's attempt writes a row of `test_reports` in its own transaction; the scheduler
//! makes the events from it and records them (`record`) like those of a provider.
//!
//! A row is deleted after its events are committed. If the process dies between the two, the
//! events are made again, with the same ids, and are recognized as recorded.

mod store;

use std::collections::BTreeMap;

use chrono::TimeDelta;
use futures_util::{StreamExt as _, stream};
use serde_json::{Map, json};

use super::record::{EventBatch, EventRecorder, EventSource, RecordRefusal};
use crate::audit::Origin;
use crate::clock::{Clock, Timestamp};
use crate::db::PgConnection;
use crate::db::lifo_pool::LifoPool;
use crate::fault::Fault;
use crate::ids::{MessageId, OrganizationId, ProviderAccountId, SendAttemptId};
use crate::message::SimulatedOutcome;
use crate::provider::event::{BounceType, EventIds, ProviderEvent, ProviderEventKind};
use store::TestReport;

const DOING: &str = "report tests";
/// The time from the acceptance of a test to its last event. The events are a part of it
/// apart, so that a history has one order.
const REPORTED_AFTER: TimeDelta = TimeDelta::milliseconds(100);
/// The most events of one accepted test.
const EVENTS_MAX: i32 = 2;
/// Rows that are read at once.
const STEP: i64 = 500;
/// Accounts whose events are recorded at the same time.
const RECORDED_AT_ONCE: usize = 8;

/// Reports what became of tests. Cheap to clone.
#[derive(Clone)]
pub struct TestReporter {
    pub pool: LifoPool,
    pub recorder: EventRecorder,
    pub clock: Clock,
}

/// The account that would report the events of tests.
type Reporting = (OrganizationId, ProviderAccountId);

impl TestReporter {
    /// Records the events of the tests that are due, up to a number. Returns how many
    /// there were.
    ///
    /// # Errors
    /// A fault if some of them could not be recorded. They are due again.
    pub async fn report_due(&self) -> Result<usize, Fault> {
        let due_at = self.clock.now() - REPORTED_AFTER;
        let list =
            async |connection: &mut PgConnection| store::list_due(connection, due_at, STEP).await;
        let due = self.pool.run(DOING, list).await?;
        let count = due.len();
        let mut by_account: BTreeMap<Reporting, Vec<TestReport>> = BTreeMap::new();
        for report in due {
            let account = (report.organization_id, report.provider_account_id);
            by_account.entry(account).or_default().push(report);
        }
        let all = by_account.into_values();
        let recording = stream::iter(all.map(|reports| self.record(reports)));
        let recorded: Vec<_> = recording.buffer_unordered(RECORDED_AT_ONCE).collect().await;
        recorded.into_iter().collect::<Result<(), Fault>>()?;
        Ok(count)
    }

    /// Records the events of tests of one account, and deletes their rows.
    async fn record(&self, reports: Vec<TestReport>) -> Result<(), Fault> {
        let Some(first) = reports.first() else {
            return Ok(());
        };
        let origin = Origin::system(first.attempt_id);
        let source = EventSource {
            organization_id: first.organization_id,
            account_id: first.provider_account_id,
            provider_type: first.provider_type,
            is_test: true,
            first_verified_with: None,
        };
        let batch = EventBatch {
            events: reports.iter().flat_map(events).collect(),
            unreadable: 0,
            guard: None,
        };
        match self.recorder.record(source, origin, batch).await {
            Ok(_) => {}
            Err(RecordRefusal::Fault(fault)) => return Err(fault),
            Err(RecordRefusal::Replayed) => {
                return Err(Fault::internal(DOING, "a report of tests has no signature"));
            }
        }
        let keys = reports.iter().map(|one| (one.message_id, one.attempt_id));
        let keys: Vec<(MessageId, SendAttemptId)> = keys.collect();
        let delete = async |connection: &mut PgConnection| store::delete(connection, &keys).await;
        self.pool.run(DOING, delete).await
    }
}

/// The events that follow the acceptance of a test, in their order.
fn kinds(outcome: SimulatedOutcome) -> &'static [ProviderEventKind] {
    match outcome {
        SimulatedOutcome::Delivered | SimulatedOutcome::Unknown | SimulatedOutcome::Failover => {
            &[ProviderEventKind::Delivered]
        }
        SimulatedOutcome::Bounced => &[ProviderEventKind::Bounced(BounceType::Hard)],
        SimulatedOutcome::Complained => {
            &[ProviderEventKind::Delivered, ProviderEventKind::Complained]
        }
        SimulatedOutcome::Deferred => &[ProviderEventKind::Deferred, ProviderEventKind::Delivered],
        // Never accepted.
        SimulatedOutcome::Failed | SimulatedOutcome::Suppressed => &[],
    }
}

/// Why, in the words of a receiving server.
fn reason(kind: ProviderEventKind) -> Option<&'static str> {
    match kind {
        ProviderEventKind::Bounced(_) => Some("550 5.1.1 no such user (test)"),
        ProviderEventKind::Deferred => Some("450 4.2.0 try again later (test)"),
        ProviderEventKind::Sent
        | ProviderEventKind::Delivered
        | ProviderEventKind::Dropped
        | ProviderEventKind::Opened { .. }
        | ProviderEventKind::Clicked { .. }
        | ProviderEventKind::Complained
        | ProviderEventKind::Unsubscribed => None,
    }
}

/// The events of one test. Their ids are the same whenever they are made.
fn events(report: &TestReport) -> Vec<ProviderEvent> {
    let numbered = (1..).zip(kinds(report.test_outcome));
    let events = numbered.map(|(nth, kind)| ProviderEvent {
        id: format!("test:{}:{nth}", report.attempt_id),
        kind: *kind,
        occurred_at: occurred_at(report.accepted_at, nth),
        ids: Some(EventIds {
            message_id: report.message_id,
            position: Some(report.position),
            attempt_id: report.attempt_id,
        }),
        provider_message_id: report.provider_message_id.clone(),
        recipient: None,
        details: reason(*kind)
            .map(|reason| ("reason".to_owned(), json!(reason)))
            .into_iter()
            .collect::<Map<_, _>>(),
        raw: json!({ "test": report.test_outcome.as_str() })
            .to_string()
            .into_bytes(),
    });
    events.collect()
}

/// When the nth event occurred: after the acceptance, and before it is reported.
fn occurred_at(accepted_at: Timestamp, nth: i32) -> Timestamp {
    accepted_at + REPORTED_AFTER / EVENTS_MAX * nth
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_is_reported_after_it_occurred_and_in_order() {
        let accepted_at = Timestamp::from_timestamp_millis(1_795_000_000_000).unwrap();
        for outcome in SimulatedOutcome::ALL {
            let count = i32::try_from(kinds(outcome).len()).unwrap();
            let mut last = accepted_at;
            for nth in 1..=count {
                let at = occurred_at(accepted_at, nth);
                assert!(at > last, "{outcome:?}");
                assert!(at <= accepted_at + REPORTED_AFTER, "{outcome:?}");
                last = at;
            }
        }
    }
}
