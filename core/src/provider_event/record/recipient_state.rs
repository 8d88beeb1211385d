//! The state of one recipient as a fold of the events that its provider reported. Pure.
//! The result, with its counts, depends on the set of events alone, not on their order or
//! on how they are split into requests.
//!
//! - Every event proves that the provider accepted the message. If the answer to the call
//!   is still missing or was lost, the recipient counts as sent from the start of the
//!   call.
//! - A status only moves forward: sent, dropped by the provider (FAILED), delivered,
//!   bounced.
//! - If the provider dropped the message and the customer retries it, it is sent again. A
//!   late `sent`, `deferred`, `bounced` or `dropped` event of the earlier attempt only
//!   goes into the history; a late `delivered` event is true of both.
//! - An open or click by a person proves delivery. It adds an implied DELIVERED event.
//!   When the provider reports the delivery, that event is corrected, so that one
//!   delivery has one event. An open or click by a machine proves nothing: mail gateways
//!   fetch links of messages that they then refuse.

use serde_json::{Map, Value, json};

use crate::clock::Timestamp;
use crate::event::{ATTEMPT_ID, EventType, PROVIDER_MESSAGE_ID};
use crate::ids::{EventId, SendAttemptId};
use crate::message::MessageStatus;
use crate::provider::event::ProviderEventKind;
use crate::provider::kind::ProviderType;

/// The state of a recipient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecipientState {
    pub(super) status: MessageStatus,
    pub(super) sent_at: Option<Timestamp>,
    pub(super) delivered_at: Option<Timestamp>,
    /// The DELIVERED event that an open or a click implied.
    pub(super) implied: Option<EventId>,
    /// The first open by a person.
    pub(super) opened_at: Option<Timestamp>,
    /// The first click by a person.
    pub(super) clicked_at: Option<Timestamp>,
    /// The first bounce.
    pub(super) bounced_at: Option<Timestamp>,
    /// The first spam complaint.
    pub(super) complained_at: Option<Timestamp>,
    /// The first unsubscription.
    pub(super) unsubscribed_at: Option<Timestamp>,
    /// When it was sent before the customer retried it.
    pub(super) first_sent_at: Option<Timestamp>,
}

/// An event of the recipient that was not recorded before.
#[derive(Debug, Clone)]
pub(super) struct ReportedEvent<'a> {
    pub(super) kind: ProviderEventKind,
    pub(super) occurred_at: Timestamp,
    /// When the attempt of the event began, if that is known.
    pub(super) started_at: Option<Timestamp>,
    pub(super) attempt_id: Option<SendAttemptId>,
    pub(super) provider_message_id: Option<&'a str>,
    /// Whether the attempt was known to be accepted before this event.
    pub(super) is_proven: bool,
    pub(super) provider_type: ProviderType,
    pub(super) details: &'a Map<String, Value>,
}

impl ReportedEvent<'_> {
    /// Whether the event says nothing about a recipient that is not known to be sent: it
    /// belongs to an earlier attempt, and the current one has no outcome or was not made.
    fn is_from_earlier_attempt(&self) -> bool {
        let has_arrived = match self.kind {
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

/// An event to add to the history.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DerivedEvent {
    pub(super) id: EventId,
    pub(super) event_type: EventType,
    pub(super) occurred_at: Timestamp,
    pub(super) data: Option<Value>,
}

/// A correction of an earlier DELIVERED event.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Correction {
    pub(super) event_id: EventId,
    pub(super) occurred_at: Timestamp,
    /// The new data; `None` if the delivery is still implied.
    pub(super) data: Option<Value>,
}

/// The result of folding events.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FoldResult {
    pub(super) state: RecipientState,
    /// Whether the events are the first proof that the message was sent.
    pub(super) is_proven: bool,
    /// The new latest error, if it changes.
    pub(super) error: Option<Option<String>>,
    pub(super) events: Vec<DerivedEvent>,
    pub(super) correction: Option<Correction>,
}

/// Folds new events into a recipient's state. No event counts as earlier than the send or
/// later than now: providers report whole seconds, and clocks differ.
pub(super) fn fold(
    before: RecipientState,
    mut events: Vec<ReportedEvent<'_>>,
    now: Timestamp,
    next_id: impl FnMut() -> EventId,
) -> FoldResult {
    // Deliveries first, so that an open in the same batch implies none; then by time.
    events.sort_by_key(|event| {
        (
            event.kind != ProviderEventKind::Delivered,
            event.occurred_at,
        )
    });
    let mut fold = Fold {
        now,
        next_id,
        result: FoldResult {
            state: before,
            is_proven: false,
            error: None,
            events: Vec::new(),
            correction: None,
        },
    };
    fold.prove_sent(&events);
    for event in &events {
        fold.apply(event);
    }
    fold.result
}

struct Fold<F> {
    now: Timestamp,
    next_id: F,
    result: FoldResult,
}

impl<F: FnMut() -> EventId> Fold<F> {
    /// Every event proves that the message was sent, unless all of them belong to an
    /// earlier attempt.
    fn prove_sent(&mut self, events: &[ReportedEvent<'_>]) {
        let is_known = self.result.state.sent_at.is_some();
        if is_known || events.iter().all(ReportedEvent::is_from_earlier_attempt) {
            return;
        }
        let starts = events.iter().filter(|event| event.started_at.is_some());
        let earliest = starts.min_by_key(|event| event.started_at);
        let first = events.iter().map(|event| event.occurred_at).min();
        let sent_at = earliest
            .and_then(|event| event.started_at)
            .or(first)
            .map_or(self.now, |at| at.min(self.now));
        let data = earliest.or(events.first()).map(attempt_data);
        self.result.is_proven = true;
        self.result.state.sent_at = Some(sent_at);
        self.result.error = Some(None);
        self.advance(MessageStatus::Sent, None);
        let data = data.filter(|data| !data.is_empty());
        self.push_event(EventType::Sent, sent_at, data.map(Value::Object));
    }

    fn apply(&mut self, event: &ReportedEvent<'_>) {
        let at = event.occurred_at.min(self.now);
        let sent_at = self.result.state.sent_at;
        let at = sent_at.map_or(at, |sent_at| at.max(sent_at));
        let event_type = match event.kind {
            // Recorded from the outcome of the call, or by `prove_sent`.
            ProviderEventKind::Sent => return,
            ProviderEventKind::Delivered => return self.deliver(event, at),
            ProviderEventKind::Deferred => EventType::Deferred,
            ProviderEventKind::Bounced(bounce_type) => {
                let error = error_text(event, &format!("{} bounce", bounce_type.as_str()));
                self.advance(MessageStatus::Bounced, Some(error));
                set_earliest(&mut self.result.state.bounced_at, at);
                EventType::Bounced
            }
            ProviderEventKind::Dropped => {
                let error = error_text(event, "the provider dropped it");
                self.advance(MessageStatus::Failed, Some(error));
                EventType::Dropped
            }
            ProviderEventKind::Opened { is_bot } => {
                if !is_bot {
                    set_earliest(&mut self.result.state.opened_at, at);
                    self.imply_delivery(event, at);
                }
                EventType::Opened
            }
            ProviderEventKind::Clicked { is_bot } => {
                if !is_bot {
                    set_earliest(&mut self.result.state.clicked_at, at);
                    self.imply_delivery(event, at);
                }
                EventType::Clicked
            }
            ProviderEventKind::Complained => {
                set_earliest(&mut self.result.state.complained_at, at);
                EventType::Complained
            }
            ProviderEventKind::Unsubscribed => {
                set_earliest(&mut self.result.state.unsubscribed_at, at);
                EventType::Unsubscribed
            }
        };
        self.push_event(event_type, at, Some(event_data(event)));
    }

    fn deliver(&mut self, event: &ReportedEvent<'_>, at: Timestamp) {
        self.advance(MessageStatus::Delivered, None);
        let state = &mut self.result.state;
        if let Some(event_id) = state.implied.take() {
            state.delivered_at = Some(at);
            self.result.correction = Some(Correction {
                event_id,
                occurred_at: at,
                data: Some(event_data(event)),
            });
            return;
        }
        set_earliest(&mut state.delivered_at, at);
        self.push_event(EventType::Delivered, at, Some(event_data(event)));
    }

    fn imply_delivery(&mut self, event: &ReportedEvent<'_>, at: Timestamp) {
        self.advance(MessageStatus::Delivered, None);
        let state = &mut self.result.state;
        match (state.delivered_at, state.implied) {
            (None, _) => {
                let mut data = attempt_data(event);
                data.insert("isImplied".to_owned(), json!(true));
                data.insert("providerType".to_owned(), json!(event.provider_type));
                state.delivered_at = Some(at);
                let id = self.push_event(EventType::Delivered, at, Some(Value::Object(data)));
                self.result.state.implied = Some(id);
            }
            (Some(known), Some(event_id)) if at < known => {
                state.delivered_at = Some(at);
                self.result.correction = Some(Correction {
                    event_id,
                    occurred_at: at,
                    data: None,
                });
            }
            (Some(_), _) => {}
        }
    }

    /// Moves the status forward, never back. Without proof that the message was sent, the
    /// events belong to an earlier attempt and move nothing.
    fn advance(&mut self, to: MessageStatus, error: Option<String>) {
        if self.result.state.sent_at.is_none() {
            return;
        }
        if let Ok(status) = self.result.state.status.advance(to) {
            self.result.state.status = status;
            if error.is_some() {
                self.result.error = Some(error);
            }
        }
    }

    fn push_event(
        &mut self,
        event_type: EventType,
        occurred_at: Timestamp,
        data: Option<Value>,
    ) -> EventId {
        let id = (self.next_id)();
        self.result.events.push(DerivedEvent {
            id,
            event_type,
            occurred_at,
            data,
        });
        id
    }
}

fn set_earliest(first: &mut Option<Timestamp>, at: Timestamp) {
    *first = Some(first.map_or(at, |known| known.min(at)));
}

fn error_text(event: &ReportedEvent<'_>, otherwise: &str) -> String {
    let reason = event.details.get("reason").and_then(Value::as_str);
    reason.unwrap_or(otherwise).to_owned()
}

/// The attempt and the provider's message id, as far as they are known.
fn attempt_data(event: &ReportedEvent<'_>) -> Map<String, Value> {
    let attempt_id = event.attempt_id.map(|id| json!(id));
    let provider_message_id = event.provider_message_id.map(|id| json!(id));
    let members = [
        (ATTEMPT_ID, attempt_id),
        (PROVIDER_MESSAGE_ID, provider_message_id),
    ];
    let members = members.into_iter();
    let members = members.filter_map(|(name, value)| Some((name.to_owned(), value?)));
    members.collect()
}

/// The data that the history stores and webhooks send.
fn event_data(event: &ReportedEvent<'_>) -> Value {
    let mut data = event.details.clone();
    data.extend(attempt_data(event));
    data.insert("providerType".to_owned(), json!(event.provider_type));
    match event.kind {
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

    fn reported(kind: ProviderEventKind, second: i64) -> ReportedEvent<'static> {
        ReportedEvent {
            kind,
            occurred_at: at(second),
            started_at: Some(at(0)),
            attempt_id: None,
            provider_message_id: None,
            is_proven: false,
            provider_type: ProviderType::Sendgrid,
            details: &NO_DETAILS,
        }
    }

    fn state(status: MessageStatus) -> RecipientState {
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

    /// The final state and the whole history if the events come in these parts.
    fn fold_parts(
        first: RecipientState,
        parts: &[Vec<ReportedEvent<'_>>],
    ) -> (RecipientState, Vec<(EventType, Timestamp)>) {
        let mut ids = 0_u128;
        let mut state = first;
        let mut events: Vec<DerivedEvent> = Vec::new();
        for part in parts {
            let result = fold(state, part.clone(), at(1_000), || {
                ids += 1;
                EventId(Uuid::from_u128(ids))
            });
            state = result.state;
            if let Some(correction) = result.correction {
                let event = events
                    .iter_mut()
                    .find(|event| event.id == correction.event_id);
                event
                    .expect("only existing events are corrected")
                    .occurred_at = correction.occurred_at;
            }
            events.extend(result.events);
        }
        // The ids differ with the order; whether a delivery is implied must not.
        state.implied = state.implied.map(|_| EventId(Uuid::nil()));
        let mut history: Vec<_> = events
            .iter()
            .map(|event| (event.event_type, event.occurred_at))
            .collect();
        history.sort_by_key(|(event_type, at)| (*at, event_type.as_str()));
        (state, history)
    }

    fn permutations<'a>(events: &[ReportedEvent<'a>]) -> Vec<Vec<ReportedEvent<'a>>> {
        if events.is_empty() {
            return vec![Vec::new()];
        }
        let mut all = Vec::new();
        for first in 0..events.len() {
            let mut rest = events.to_vec();
            let picked = rest.remove(first);
            for mut order in permutations(&rest) {
                order.insert(0, picked.clone());
                all.push(order);
            }
        }
        all
    }

    #[test]
    fn the_final_state_does_not_depend_on_the_order_of_events() {
        let opened = |second| reported(ProviderEventKind::Opened { is_bot: false }, second);
        let clicked = reported(ProviderEventKind::Clicked { is_bot: true }, 25);
        let bounced = reported(ProviderEventKind::Bounced(BounceType::Hard), 40);
        let cases = [
            vec![
                reported(ProviderEventKind::Sent, 1),
                reported(ProviderEventKind::Delivered, 10),
                opened(20),
                clicked.clone(),
            ],
            vec![
                opened(20),
                opened(15),
                clicked,
                reported(ProviderEventKind::Complained, 30),
            ],
            vec![
                reported(ProviderEventKind::Delivered, 10),
                opened(5),
                reported(ProviderEventKind::Delivered, 12),
                bounced.clone(),
            ],
            vec![
                reported(ProviderEventKind::Dropped, 3),
                reported(ProviderEventKind::Delivered, 10),
                reported(ProviderEventKind::Deferred, 2),
            ],
            vec![
                reported(ProviderEventKind::Dropped, 3),
                bounced,
                opened(-5),
                reported(ProviderEventKind::Sent, 2_000),
            ],
        ];
        for (number, case) in cases.iter().enumerate() {
            for status in MessageStatus::ALL {
                let expected = fold_parts(state(status), std::slice::from_ref(case));
                for order in permutations(case) {
                    let single: Vec<_> = order.iter().map(|event| vec![event.clone()]).collect();
                    assert_eq!(
                        fold_parts(state(status), &single),
                        expected,
                        "{number} from {status}"
                    );
                    let (head, tail) = order.split_at(2);
                    let halves = [head.to_vec(), tail.to_vec()];
                    assert_eq!(
                        fold_parts(state(status), &halves),
                        expected,
                        "{number} from {status}"
                    );
                }
            }
        }
    }

    #[test]
    fn an_open_implies_the_delivery_until_the_provider_reports_it() {
        let opened = reported(ProviderEventKind::Opened { is_bot: false }, 20);
        let (alone, history) = fold_parts(state(MessageStatus::Sent), &[vec![opened.clone()]]);
        assert_eq!(alone.status, MessageStatus::Delivered);
        assert_eq!(alone.delivered_at, Some(at(20)));
        assert_eq!(
            history,
            [(EventType::Delivered, at(20)), (EventType::Opened, at(20))]
        );
        let delivered = reported(ProviderEventKind::Delivered, 10);
        let (both, history) =
            fold_parts(state(MessageStatus::Sent), &[vec![opened], vec![delivered]]);
        assert_eq!((both.delivered_at, both.implied), (Some(at(10)), None));
        assert_eq!(
            history,
            [(EventType::Delivered, at(10)), (EventType::Opened, at(20))]
        );
    }

    #[test]
    fn an_event_before_the_answer_proves_that_the_message_was_sent_when_the_call_began() {
        for status in [
            MessageStatus::Queued,
            MessageStatus::Sending,
            MessageStatus::Failed,
        ] {
            let (after, history) = fold_parts(
                state(status),
                &[
                    vec![reported(ProviderEventKind::Deferred, -3)],
                    vec![reported(ProviderEventKind::Sent, 9)],
                ],
            );
            assert_eq!(
                (after.status, after.sent_at),
                (MessageStatus::Sent, Some(at(0)))
            );
            assert_eq!(
                history,
                [(EventType::Deferred, at(0)), (EventType::Sent, at(0))],
                "SENT once, and no event before it"
            );
        }
    }

    #[test]
    fn a_dropped_recipient_fails() {
        let dropped = vec![reported(ProviderEventKind::Dropped, 3)];
        let sent = state(MessageStatus::Sent);
        let (after, _) = fold_parts(sent, std::slice::from_ref(&dropped));
        assert_eq!(after.status, MessageStatus::Failed);
        let (after, _) = fold_parts(sent, &[dropped, vec![reported(ProviderEventKind::Sent, 4)]]);
        assert_eq!(after.status, MessageStatus::Failed);
    }

    #[test]
    fn no_event_counts_as_later_than_now() {
        let late = vec![reported(ProviderEventKind::Delivered, 5_000)];
        let (after, _) = fold_parts(state(MessageStatus::Sent), &[late]);
        assert_eq!(after.delivered_at, Some(at(1_000)));
        assert_eq!(at(1_000) - at(0), TimeDelta::seconds(1_000));
    }
}
