//! How callbacks are sent.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use crate::clock;

const DELAY_MS_MAX: u64 = 3_600_000;
const BATCH_EVENTS_MAX: usize = 10_000;
/// Ten years.
const AHEAD_MS_MAX: u64 = 10 * 366 * 86_400_000;

/// What is done to the proof on a callback that it comes from the provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SignatureFault {
    #[default]
    Off,
    /// It is there, and does not fit: a signature of something else, another password.
    Wrong,
    None,
}

/// How callbacks are sent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CallbackSettings {
    /// Whether mail accepted from now on is told of.
    pub enabled: bool,
    /// How long a delivery takes, roughly, in milliseconds: half of it to twice as long. What
    /// comes after it takes up to three times as long again.
    pub delay_ms: u64,
    /// How long SendGrid gathers events for one call, in milliseconds.
    pub flush_ms: u64,
    /// How many events SendGrid puts into one call at most.
    pub batch_events_max: usize,
    /// The share of calls that are made twice, byte for byte, 0 to 1.
    pub duplicate_rate: f64,
    /// Whether events of one mail come in any order.
    pub shuffle: bool,
    /// What the providers' pauses between tries are multiplied by: 1 is as long as theirs.
    pub retry_factor: f64,
    /// What is wrong with the signatures.
    pub signature_fault: SignatureFault,
    /// How far the clock of callbacks is ahead of the machine's, in milliseconds, for tests that
    /// move the receiver's clock.
    pub clock_ahead_ms: u64,
}

/// What is put on a call to prove whose it is, and when.
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
    /// The proof on a call that is made now.
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
