//! What becomes of one copy by what its provider tells. Pure, and the same in
//! whatever order and in however many parts the news comes: where a copy ends and
//! what it counts as follow from the set of events alone.
//!
//! - Whatever a provider tells of a copy proves that it took it. Where the answer to
//!   the call is still out, or was lost, the copy is sent as of when the call began.
//! - A status only moves on: sent, dropped by the provider (FAILED), delivered,
//!   bounced.
//! - What its provider dropped and its owner tries again is another copy. What is told
//!   late of the call before, that it was taken, deferred, bounced or dropped, is
//!   history; that the mail arrived is true of both.
//! - A person who opens a copy or follows a link in it has it. That stands in for
//!   the DELIVERED event until the provider tells of the delivery; then the one
//!   becomes the other, so a copy has not two of them for one delivery. A machine
//!   proves nothing: gateways fetch what they then refuse.

use serde_json::{Map, Value, json};

use crate::clock::Timestamp;
use crate::event::{ATTEMPT_ID, EventType, PROVIDER_MESSAGE_ID};
use crate::ids::{EventId, SendAttemptId};
use crate::message::MessageStatus;
use crate::provider::event::ProviderEventKind;
use crate::provider::kind::ProviderType;

/// Where a copy stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecipientState {
    pub(super) status: MessageStatus,
    pub(super) sent_at: Option<Timestamp>,
    pub(super) delivered_at: Option<Timestamp>,
    /// The DELIVERED event that an open or a click stands for.
    pub(super) implied: Option<EventId>,
    /// When a person first opened it.
    pub(super) opened_at: Option<Timestamp>,
    /// When a person first followed a link in it.
    pub(super) clicked_at: Option<Timestamp>,
    /// When it first came back.
    pub(super) bounced_at: Option<Timestamp>,
    /// When it was first marked as spam.
    pub(super) complained_at: Option<Timestamp>,
    /// When its recipient first unsubscribed.
    pub(super) unsubscribed_at: Option<Timestamp>,
    /// When it was sent before its owner had it tried again.
    pub(super) first_sent_at: Option<Timestamp>,
}

/// One thing told about the copy, for the first time.
#[derive(Debug, Clone)]
pub(super) struct ReportedEvent<'a> {
    pub(super) happening: ProviderEventKind,
    pub(super) occurred_at: Timestamp,
    /// When the call began that it is about, where the event says which.
    pub(super) started_at: Option<Timestamp>,
    pub(super) attempt_id: Option<SendAttemptId>,
    /// The provider's id of what it tells of.
    pub(super) provider_message_id: Option<&'a str>,
    /// Whether it was known of that call before that the provider took the copy.
    pub(super) is_proven: bool,
    pub(super) provider_type: ProviderType,
    pub(super) details: &'a Map<String, Value>,
}

impl ReportedEvent<'_> {
    /// Whether it says nothing of a copy that is not known to be sent: of that one the
    /// call has no outcome yet, or there was none.
    fn is_of_the_one_before(&self) -> bool {
        let has_arrived = match self.happening {
            ProviderEventKind::Sent
            | ProviderEventKind::Deferred
            | ProviderEventKind::Bounced(_)
            | ProviderEventKind::Dropped => false,
            ProviderEventKind::Delivered
            | ProviderEventKind::Opened { .. }
            | ProviderEventKind::Clicked { .. }
            | ProviderEventKind::Complained
            | ProviderEventKind::Unsubscribed => true,
        };
        self.is_proven && !has_arrived
    }
}

/// A line that the history gets.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DerivedEvent {
    pub(super) id: EventId,
    pub(super) event_type: EventType,
    pub(super) occurred_at: Timestamp,
    pub(super) data: Option<Value>,
}

/// A DELIVERED event of before that is known better now.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Correction {
    pub(super) event_id: EventId,
    pub(super) occurred_at: Timestamp,
    /// What it says now; nothing where it is still implied.
    pub(super) data: Option<Value>,
}

/// What follows.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FoldResult {
    pub(super) standing: RecipientState,
    /// Whether the news was the first proof that the copy was sent.
    pub(super) is_proven: bool,
    /// What to show as the latest error, where that changes.
    pub(super) error: Option<Option<String>>,
    pub(super) lines: Vec<DerivedEvent>,
    pub(super) correction: Option<Correction>,
}

/// Goes through what is new about a copy. Nothing is believed to have happened
/// before the copy was sent, or later than now: providers count in seconds, and
/// clocks disagree.
pub(super) fn follow(
    before: RecipientState,
    mut told: Vec<ReportedEvent<'_>>,
    now: Timestamp,
    next_id: impl FnMut() -> EventId,
) -> FoldResult {
    // The provider's own words first, so that an open need not stand for what comes
    // along with it; then in the order of time.
    told.sort_by_key(|told| {
        (
            told.happening != ProviderEventKind::Delivered,
            told.occurred_at,
        )
    });
    let mut reader = Fold {
        now,
        next_id,
        progress: FoldResult {
            standing: before,
            is_proven: false,
            error: None,
            lines: Vec::new(),
            correction: None,
        },
    };
    reader.prove(&told);
    for told in &told {
        reader.take(told);
    }
    reader.progress
}

struct Fold<F> {
    now: Timestamp,
    next_id: F,
    progress: FoldResult,
}

impl<F: FnMut() -> EventId> Fold<F> {
    /// Whatever is told proves that the copy was sent, unless it is all of the one that
    /// was tried before it.
    fn prove(&mut self, told: &[ReportedEvent<'_>]) {
        let is_known = self.progress.standing.sent_at.is_some();
        if is_known || told.iter().all(ReportedEvent::is_of_the_one_before) {
            return;
        }
        let starts = told.iter().filter(|told| told.started_at.is_some());
        let earliest = starts.min_by_key(|told| told.started_at);
        let first = told.iter().map(|told| told.occurred_at).min();
        let sent_at = earliest
            .and_then(|told| told.started_at)
            .or(first)
            .map_or(self.now, |at| at.min(self.now));
        let data = earliest.or(told.first()).map(copy_of);
        self.progress.is_proven = true;
        self.progress.standing.sent_at = Some(sent_at);
        self.progress.error = Some(None);
        self.advance(MessageStatus::Sent, None);
        let data = data.filter(|data| !data.is_empty());
        self.add(EventType::Sent, sent_at, data.map(Value::Object));
    }

    fn take(&mut self, told: &ReportedEvent<'_>) {
        let at = told.occurred_at.min(self.now);
        let sent_at = self.progress.standing.sent_at;
        let at = sent_at.map_or(at, |sent_at| at.max(sent_at));
        let event_type = match told.happening {
            // Said by the event that follows from the call, or from the proof.
            ProviderEventKind::Sent => return,
            ProviderEventKind::Delivered => return self.deliver(told, at),
            ProviderEventKind::Deferred => EventType::Deferred,
            ProviderEventKind::Bounced(bounce_type) => {
                let error = reason(told, &format!("{} bounce", bounce_type.as_str()));
                self.advance(MessageStatus::Bounced, Some(error));
                earliest(&mut self.progress.standing.bounced_at, at);
                EventType::Bounced
            }
            ProviderEventKind::Dropped => {
                let error = reason(told, "the provider dropped it");
                self.advance(MessageStatus::Failed, Some(error));
                EventType::Dropped
            }
            ProviderEventKind::Opened { is_bot } => {
                if !is_bot {
                    earliest(&mut self.progress.standing.opened_at, at);
                    self.imply(told, at);
                }
                EventType::Opened
            }
            ProviderEventKind::Clicked { is_bot } => {
                if !is_bot {
                    earliest(&mut self.progress.standing.clicked_at, at);
                    self.imply(told, at);
                }
                EventType::Clicked
            }
            ProviderEventKind::Complained => {
                earliest(&mut self.progress.standing.complained_at, at);
                EventType::Complained
            }
            ProviderEventKind::Unsubscribed => {
                earliest(&mut self.progress.standing.unsubscribed_at, at);
                EventType::Unsubscribed
            }
        };
        self.add(event_type, at, Some(data(told)));
    }

    fn deliver(&mut self, told: &ReportedEvent<'_>, at: Timestamp) {
        self.advance(MessageStatus::Delivered, None);
        let standing = &mut self.progress.standing;
        if let Some(event_id) = standing.implied.take() {
            standing.delivered_at = Some(at);
            self.progress.correction = Some(Correction {
                event_id,
                occurred_at: at,
                data: Some(data(told)),
            });
            return;
        }
        earliest(&mut standing.delivered_at, at);
        self.add(EventType::Delivered, at, Some(data(told)));
    }

    fn imply(&mut self, told: &ReportedEvent<'_>, at: Timestamp) {
        self.advance(MessageStatus::Delivered, None);
        let standing = &mut self.progress.standing;
        match (standing.delivered_at, standing.implied) {
            (None, _) => {
                let mut data = copy_of(told);
                data.insert("isImplied".to_owned(), json!(true));
                data.insert("providerType".to_owned(), json!(told.provider_type));
                standing.delivered_at = Some(at);
                let id = self.add(EventType::Delivered, at, Some(Value::Object(data)));
                self.progress.standing.implied = Some(id);
            }
            (Some(known), Some(event_id)) if at < known => {
                standing.delivered_at = Some(at);
                self.progress.correction = Some(Correction {
                    event_id,
                    occurred_at: at,
                    data: None,
                });
            }
            (Some(_), _) => {}
        }
    }

    /// Moves on, and never back. What is told does not move a copy that it did not prove to
    /// be sent: it is about the one before.
    fn advance(&mut self, to: MessageStatus, error: Option<String>) {
        if self.progress.standing.sent_at.is_none() {
            return;
        }
        if let Ok(status) = self.progress.standing.status.advance(to) {
            self.progress.standing.status = status;
            if error.is_some() {
                self.progress.error = Some(error);
            }
        }
    }

    fn add(
        &mut self,
        event_type: EventType,
        occurred_at: Timestamp,
        data: Option<Value>,
    ) -> EventId {
        let id = (self.next_id)();
        self.progress.lines.push(DerivedEvent {
            id,
            event_type,
            occurred_at,
            data,
        });
        id
    }
}

fn earliest(first: &mut Option<Timestamp>, at: Timestamp) {
    *first = Some(first.map_or(at, |known| known.min(at)));
}

fn reason(told: &ReportedEvent<'_>, otherwise: &str) -> String {
    let reason = told.details.get("reason").and_then(Value::as_str);
    reason.unwrap_or(otherwise).to_owned()
}

/// Which of several copies of one recipient it is about, as far as that is told.
fn copy_of(told: &ReportedEvent<'_>) -> Map<String, Value> {
    let attempt_id = told.attempt_id.map(|id| json!(id));
    let provider_message_id = told.provider_message_id.map(|id| json!(id));
    let members = [
        (ATTEMPT_ID, attempt_id),
        (PROVIDER_MESSAGE_ID, provider_message_id),
    ];
    let members = members.into_iter();
    let members = members.filter_map(|(name, value)| Some((name.to_owned(), value?)));
    members.collect()
}

/// What the history keeps, and webhooks show.
fn data(told: &ReportedEvent<'_>) -> Value {
    let mut data = told.details.clone();
    data.extend(copy_of(told));
    data.insert("providerType".to_owned(), json!(told.provider_type));
    match told.happening {
        ProviderEventKind::Bounced(bounce_type) => {
            data.insert("bounceType".to_owned(), json!(bounce_type.as_str()));
        }
        ProviderEventKind::Opened { is_bot } | ProviderEventKind::Clicked { is_bot } => {
            data.insert("isBot".to_owned(), json!(is_bot));
        }
        ProviderEventKind::Sent
        | ProviderEventKind::Delivered
        | ProviderEventKind::Deferred
        | ProviderEventKind::Dropped
        | ProviderEventKind::Complained
        | ProviderEventKind::Unsubscribed => {}
    }
    Value::Object(data)
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;
    use chrono::{DateTime, TimeDelta};
    use uuid::Uuid;

    use crate::provider::event::BounceType;

    static NO_DETAILS: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

    fn at(second: i64) -> Timestamp {
        DateTime::from_timestamp(1_800_000_000 + second, 0).unwrap()
    }

    fn told(happening: ProviderEventKind, second: i64) -> ReportedEvent<'static> {
        ReportedEvent {
            happening,
            occurred_at: at(second),
            started_at: Some(at(0)),
            attempt_id: None,
            provider_message_id: None,
            is_proven: false,
            provider_type: ProviderType::Sendgrid,
            details: &NO_DETAILS,
        }
    }

    fn standing(status: MessageStatus) -> RecipientState {
        let is_sent = !matches!(
            status,
            MessageStatus::Queued | MessageStatus::Sending | MessageStatus::Failed
        );
        RecipientState {
            status,
            sent_at: is_sent.then(|| at(0)),
            delivered_at: None,
            implied: None,
            opened_at: None,
            clicked_at: None,
            bounced_at: None,
            complained_at: None,
            unsubscribed_at: None,
            first_sent_at: None,
        }
    }

    /// Where a copy ends, with its whole history, when the news comes in parts.
    fn end(
        first: RecipientState,
        parts: &[Vec<ReportedEvent<'_>>],
    ) -> (RecipientState, Vec<(EventType, Timestamp)>) {
        let mut ids = 0_u128;
        let mut standing = first;
        let mut lines: Vec<DerivedEvent> = Vec::new();
        for part in parts {
            let progress = follow(standing, part.clone(), at(1_000), || {
                ids += 1;
                EventId(Uuid::from_u128(ids))
            });
            standing = progress.standing;
            if let Some(correction) = progress.correction {
                let line = lines.iter_mut().find(|line| line.id == correction.event_id);
                line.expect("only what is there is corrected").occurred_at = correction.occurred_at;
            }
            lines.extend(progress.lines);
        }
        // Ids differ with the order; whether something is implied may not.
        standing.implied = standing.implied.map(|_| EventId(Uuid::nil()));
        let mut history: Vec<_> = lines
            .iter()
            .map(|line| (line.event_type, line.occurred_at))
            .collect();
        history.sort_by_key(|(event_type, at)| (*at, event_type.as_str()));
        (standing, history)
    }

    fn orders<'a>(told: &[ReportedEvent<'a>]) -> Vec<Vec<ReportedEvent<'a>>> {
        if told.is_empty() {
            return vec![Vec::new()];
        }
        let mut all = Vec::new();
        for first in 0..told.len() {
            let mut rest = told.to_vec();
            let picked = rest.remove(first);
            for mut order in orders(&rest) {
                order.insert(0, picked.clone());
                all.push(order);
            }
        }
        all
    }

    #[test]
    fn a_copy_ends_the_same_in_whatever_order_and_parts_the_news_comes() {
        let opened = |second| told(ProviderEventKind::Opened { is_bot: false }, second);
        let clicked = told(ProviderEventKind::Clicked { is_bot: true }, 25);
        let bounced = told(ProviderEventKind::Bounced(BounceType::Hard), 40);
        let cases = [
            vec![
                told(ProviderEventKind::Sent, 1),
                told(ProviderEventKind::Delivered, 10),
                opened(20),
                clicked.clone(),
            ],
            vec![
                opened(20),
                opened(15),
                clicked,
                told(ProviderEventKind::Complained, 30),
            ],
            vec![
                told(ProviderEventKind::Delivered, 10),
                opened(5),
                told(ProviderEventKind::Delivered, 12),
                bounced.clone(),
            ],
            vec![
                told(ProviderEventKind::Dropped, 3),
                told(ProviderEventKind::Delivered, 10),
                told(ProviderEventKind::Deferred, 2),
            ],
            vec![
                told(ProviderEventKind::Dropped, 3),
                bounced,
                opened(-5),
                told(ProviderEventKind::Sent, 2_000),
            ],
        ];
        for (number, case) in cases.iter().enumerate() {
            for status in MessageStatus::ALL {
                let expected = end(standing(status), std::slice::from_ref(case));
                for order in orders(case) {
                    let single: Vec<_> = order.iter().map(|told| vec![told.clone()]).collect();
                    assert_eq!(
                        end(standing(status), &single),
                        expected,
                        "{number} from {status}"
                    );
                    let (head, tail) = order.split_at(2);
                    let halves = [head.to_vec(), tail.to_vec()];
                    assert_eq!(
                        end(standing(status), &halves),
                        expected,
                        "{number} from {status}"
                    );
                }
            }
        }
    }

    #[test]
    fn an_open_stands_for_the_delivery_until_the_provider_tells_of_it() {
        let opened = told(ProviderEventKind::Opened { is_bot: false }, 20);
        let (alone, history) = end(standing(MessageStatus::Sent), &[vec![opened.clone()]]);
        assert_eq!(alone.status, MessageStatus::Delivered);
        assert_eq!(alone.delivered_at, Some(at(20)));
        assert_eq!(
            history,
            [(EventType::Delivered, at(20)), (EventType::Opened, at(20))]
        );
        let delivered = told(ProviderEventKind::Delivered, 10);
        let (both, history) = end(
            standing(MessageStatus::Sent),
            &[vec![opened], vec![delivered]],
        );
        assert_eq!((both.delivered_at, both.implied), (Some(at(10)), None));
        assert_eq!(
            history,
            [(EventType::Delivered, at(10)), (EventType::Opened, at(20))]
        );
    }

    #[test]
    fn news_before_the_answer_proves_that_the_copy_was_sent_when_its_call_began() {
        for status in [
            MessageStatus::Queued,
            MessageStatus::Sending,
            MessageStatus::Failed,
        ] {
            let (after, history) = end(
                standing(status),
                &[
                    vec![told(ProviderEventKind::Deferred, -3)],
                    vec![told(ProviderEventKind::Sent, 9)],
                ],
            );
            assert_eq!(
                (after.status, after.sent_at),
                (MessageStatus::Sent, Some(at(0)))
            );
            assert_eq!(
                history,
                [(EventType::Deferred, at(0)), (EventType::Sent, at(0))],
                "once, and nothing before it"
            );
        }
    }

    #[test]
    fn what_a_provider_drops_fails_unless_it_arrived_after_all() {
        let dropped = vec![told(ProviderEventKind::Dropped, 3)];
        let sent = standing(MessageStatus::Sent);
        let (after, _) = end(sent, std::slice::from_ref(&dropped));
        assert_eq!(after.status, MessageStatus::Failed);
        let (after, _) = end(sent, &[dropped, vec![told(ProviderEventKind::Sent, 4)]]);
        assert_eq!(after.status, MessageStatus::Failed);
    }

    #[test]
    fn nothing_happens_later_than_now() {
        let late = vec![told(ProviderEventKind::Delivered, 5_000)];
        let (after, _) = end(standing(MessageStatus::Sent), &[late]);
        assert_eq!(after.delivered_at, Some(at(1_000)));
        assert_eq!(at(1_000) - at(0), TimeDelta::seconds(1_000));
    }
}
