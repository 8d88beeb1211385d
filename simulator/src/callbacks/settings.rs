//! How callbacks are sent.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use crate::clock;

const DELAY_MS_MAX: u64 = 3_600_000;
const BATCH_EVENTS_MAX: usize = 10_000;
/// Ten years.
const AHEAD_MS_MAX: u64 = 10 * 366 * 86_400_000;

/// A fault in a callback's proof of origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SignatureFault {
    #[default]
    Off,
    /// It is present and wrong: the signature of another text, another password.
    Wrong,
    None,
}

/// How callbacks are sent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CallbackSettings {
    /// Whether events of messages accepted from now on are reported.
    pub enabled: bool,
    /// The approximate time of a delivery, in milliseconds: half of it to twice as long.
    /// Later events take up to three times as long again.
    pub delay_ms: u64,
    /// How long SendGrid collects events for one call, in milliseconds.
    pub flush_ms: u64,
    /// The most events in a call of SendGrid.
    pub batch_events_max: usize,
    /// The share of calls that are made twice, byte for byte, 0 to 1.
    pub duplicate_rate: f64,
    /// Whether the events of a message come in random order.
    pub shuffle: bool,
    /// The factor on the providers' retry pauses: 1 is as long as the real ones.
    pub retry_factor: f64,
    /// The fault of the signatures.
    pub signature_fault: SignatureFault,
    /// How far the clock of callbacks is ahead of the machine's clock, in milliseconds,
    /// for tests that change the receiver's clock.
    pub clock_ahead_ms: u64,
}

/// The time of a call, and the fault of its signature.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp {
    pub(crate) fault: SignatureFault,
    pub(crate) now: DateTime<Utc>,
}

impl Default for CallbackSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            delay_ms: 100,
            flush_ms: 200,
            batch_events_max: 500,
            duplicate_rate: 0.0,
            shuffle: false,
            retry_factor: 0.01,
            signature_fault: SignatureFault::Off,
            clock_ahead_ms: 0,
        }
    }
}

impl CallbackSettings {
    /// The stamp of a call that is made now.
    pub(crate) fn stamp(&self) -> Stamp {
        Stamp {
            fault: self.signature_fault,
            now: clock::now() + self.ahead(),
        }
    }

    pub(super) fn ahead(&self) -> TimeDelta {
        i64::try_from(self.clock_ahead_ms).map_or(TimeDelta::zero(), TimeDelta::milliseconds)
    }

    pub(super) fn check(&self) -> Result<(), String> {
        if self.delay_ms > DELAY_MS_MAX || self.flush_ms > DELAY_MS_MAX {
            return Err(format!(
                "delayMs and flushMs must be at most {DELAY_MS_MAX}"
            ));
        }
        if self.clock_ahead_ms > AHEAD_MS_MAX {
            return Err(format!("clockAheadMs must be at most {AHEAD_MS_MAX}"));
        }
        if !(1..=BATCH_EVENTS_MAX).contains(&self.batch_events_max) {
            return Err(format!("batchEventsMax must be 1 to {BATCH_EVENTS_MAX}"));
        }
        if !(0.0..=1.0).contains(&self.duplicate_rate) {
            return Err("duplicateRate must be between 0 and 1".to_owned());
        }
        if !(0.0..=1.0).contains(&self.retry_factor) {
            return Err("retryFactor must be between 0 and 1".to_owned());
        }
        Ok(())
    }
}
