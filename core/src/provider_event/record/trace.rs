//! The spans of recorded events, in the traces of their messages.

use super::recipients::store;
use super::writer::MatchedEvent;
use crate::db::{OrFault, PgPool};
use crate::fault::Fault;
use crate::ids::MessageId;
use crate::telemetry::traces::{self, TraceSpanKind};

/// What a span says of an event.
pub(super) struct TracedEvent {
    message_id: MessageId,
    provider: &'static str,
    event_type: &'static str,
}

impl TracedEvent {
    pub(super) fn of(matched: &MatchedEvent<'_>) -> Self {
        let (message_id, _) = matched.recipient.key;
        Self {
            message_id,
            provider: matched.source().provider_type.as_str(),
            event_type: matched.event.kind.as_str(),
        }
    }
}

/// Makes the spans, in the background: nothing waits for them.
pub(super) fn trace(pool: PgPool, events: Vec<TracedEvent>) {
    tokio::spawn(async move {
        if let Err(fault) = make_spans(&pool, &events).await {
            let cause = fault.chain();
            tracing::debug!(cause, "Events are missing from their traces");
        }
    });
}

async fn make_spans(pool: &PgPool, events: &[TracedEvent]) -> Result<(), Fault> {
    let ids: Vec<MessageId> = events.iter().map(|event| event.message_id).collect();
    let mut connection = pool.acquire().await.or_fault("trace events")?;
    for (message_id, place) in store::list_traces(&mut connection, &ids).await? {
        for event in events.iter().filter(|event| event.message_id == message_id) {
            let (kind, place) = (TraceSpanKind::Consumer, Some(place));
            let mut span = traces::message_span("provider event", kind, place);
            span.set("waypost.message.id", message_id.to_string());
            span.set("waypost.provider", event.provider);
            span.set("waypost.event", event.event_type);
        }
    }
    Ok(())
}
