//! The circuits of accounts, and the rates of throttled ones, as the workers share them, for
//! whoever shows them. Reads only.

use std::collections::HashMap;

use super::circuit_breaker::{BreakerPhase, BreakerState, Cause};
use super::shared::SharedStates;
use crate::clock::{Clock, Timestamp, delta};
use crate::ids::ProviderAccountId;
use crate::redis::Redis;

/// Whether calls to an account are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Circuit {
    Closed,
    /// No calls are made until a time.
    Open {
        cause: OpenCause,
        until: Timestamp,
    },
    /// Each worker makes one call, whose result closes or opens the circuit.
    HalfOpen {
        cause: OpenCause,
    },
}

/// Why a circuit is not closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OpenCause {
    /// Too many calls failed.
    CallsFailed,
    /// The provider named a pause.
    ProviderPause,
    /// The account itself cannot send.
    AccountUnusable,
}

impl OpenCause {
    /// All causes.
    pub const ALL: [Self; 3] = [
        Self::CallsFailed,
        Self::ProviderPause,
        Self::AccountUnusable,
    ];

    /// The name in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CallsFailed => "CALLS_FAILED",
            Self::ProviderPause => "PROVIDER_PAUSE",
            Self::AccountUnusable => "ACCOUNT_UNUSABLE",
        }
    }
}

impl From<Cause> for OpenCause {
    fn from(cause: Cause) -> Self {
        match cause {
            Cause::Failures => Self::CallsFailed,
            Cause::Pause => Self::ProviderPause,
            Cause::Unusable => Self::AccountUnusable,
        }
    }
}

impl Circuit {
    /// The names of the states in the API.
    pub const STATES: [&'static str; 3] = ["CLOSED", "OPEN", "HALF_OPEN"];

    /// The name of the state in the API.
    #[must_use]
    pub fn state(self) -> &'static str {
        let [closed, open, half_open] = Self::STATES;
        match self {
            Self::Closed => closed,
            Self::Open { .. } => open,
            Self::HalfOpen { .. } => half_open,
        }
    }

    /// Why it is not closed.
    #[must_use]
    pub fn cause(self) -> Option<OpenCause> {
        match self {
            Self::Closed => None,
            Self::Open { cause, .. } | Self::HalfOpen { cause } => Some(cause),
        }
    }

    /// Until when no calls are made.
    #[must_use]
    pub fn until(self) -> Option<Timestamp> {
        match self {
            Self::Open { until, .. } => Some(until),
            Self::Closed | Self::HalfOpen { .. } => None,
        }
    }

    fn of(state: BreakerState, revision: u32, now: Timestamp) -> Self {
        let state = state.clamped(now);
        let state = state.reset_by_revision(revision, now).unwrap_or(state);
        match state.phase(now) {
            BreakerPhase::Closed => Self::Closed,
            BreakerPhase::Open(cause, wait) => Self::Open {
                cause: cause.into(),
                until: now + delta(wait),
            },
            BreakerPhase::HalfOpen(cause) => Self::HalfOpen {
                cause: cause.into(),
            },
        }
    }
}

/// What workers share of an account.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SharedState {
    pub circuit: Circuit,
    /// The calls per second, over all workers, to which they hold back because the provider
    /// throttles; `None` if it does not.
    pub throttled_rate: Option<f64>,
}

impl SharedState {
    /// The state of an account of which workers share none: its calls do not fail.
    const GOOD: Self = Self {
        circuit: Circuit::Closed,
        throttled_rate: None,
    };
}

/// The states that were read.
#[derive(Debug, Clone)]
pub struct SharedAccounts(HashMap<ProviderAccountId, SharedState>);

impl SharedAccounts {
    /// The state of an account.
    #[must_use]
    pub fn of(&self, account: ProviderAccountId) -> SharedState {
        self.0.get(&account).copied().unwrap_or(SharedState::GOOD)
    }
}

/// Reads the states from Redis. Cheap to clone.
#[derive(Clone)]
pub struct CircuitReader {
    shared: SharedStates,
    clock: Clock,
}

impl CircuitReader {
    /// Starts the connection to Redis. It ends when the last clone is dropped.
    #[must_use]
    pub fn start(redis: Redis, clock: Clock) -> Self {
        let shared = SharedStates::start(redis, "the health of provider accounts");
        Self { shared, clock }
    }

    /// The states of accounts with their revisions; `None` if Redis does not answer. A change of
    /// an account closes a circuit that opened before it.
    pub async fn read(&self, accounts: &[(ProviderAccountId, u32)]) -> Option<SharedAccounts> {
        if accounts.is_empty() {
            return Some(SharedAccounts(HashMap::new()));
        }
        let ids: Vec<ProviderAccountId> = accounts.iter().map(|(id, _)| *id).collect();
        let now = self.clock.now();
        let breakers = self.shared.read(&ids).await?;
        let rates = self.shared.read_rates(&ids, now).await?;
        let found = accounts.iter().zip(breakers).zip(rates);
        let states = found.map(|(((id, revision), (breaker, _)), throttled_rate)| {
            let circuit = breaker.map(|state| Circuit::of(state, *revision, now));
            let state = SharedState {
                circuit: circuit.unwrap_or(Circuit::Closed),
                throttled_rate,
            };
            (*id, state)
        });
        Some(SharedAccounts(states.collect()))
    }
}
