//! Shared code of the fuzz targets: the properties of every provider event.

use chrono::{DateTime, TimeDelta, Utc};
use waypost_core::provider::inbound::read_unverified;
use waypost_core::provider::kind::ProviderType;

/// 2026-11-21 12:00:00 UTC.
#[must_use]
pub fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_795_262_400, 0).expect("the constant is a valid time")
}

/// Parses a body as one of this provider and checks the events against the guarantees of
/// `inbound`.
///
/// # Panics
/// If an event breaks a guarantee.
pub fn read_events(kind: ProviderType, body: &[u8]) {
    let Ok(received) = read_unverified(kind, body, now()) else {
        return;
    };
    for event in &received.events {
        assert!(
            (1..=255).contains(&event.id.len()),
            "id of {}",
            event.id.len()
        );
        assert!(!event.id.chars().any(char::is_control));
        assert!(event.occurred_at <= now() + TimeDelta::days(1));
        assert!(event.occurred_at.timestamp() >= 946_684_800);
        assert!(event.raw.len() <= 16 << 10);
        assert!(
            event
                .provider_message_id
                .as_ref()
                .is_none_or(|id| id.len() <= 255)
        );
        assert!(event.ids.is_none_or(|ids| ids.position.is_none_or(|position| position >= 0)));
        for (name, detail) in &event.details {
            let text = detail.as_str().expect("details are texts");
            assert!(text.len() <= 1_200, "{name} of {} bytes", text.len());
            assert!(!text.chars().any(char::is_control), "{name}");
            assert!(!text.contains('@'), "{name}");
        }
    }
    // Parsing is deterministic, so that a repeated event is recognized.
    let again = read_unverified(kind, body, now()).expect("the first parse succeeded");
    assert!(
        received
            .events
            .iter()
            .map(|event| &event.id)
            .eq(again.events.iter().map(|event| &event.id))
    );
    assert_eq!(received.replay_guard, again.replay_guard);
}
