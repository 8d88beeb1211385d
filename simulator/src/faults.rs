//! Faults that tests set, for load and fault tests.
//!
//! A fault affects a share of a provider's calls. Several faults may be set; if more than
//! one would end a call, the first one set does. Latencies add up.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::RwLock;
use serde::{Deserialize, Serialize};

use crate::ids::Ids;
use crate::providers::Provider;

/// The effect of a fault on a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FaultKind {
    /// Rejected as too fast, in the provider's words.
    Throttle,
    /// Rejected with status 500.
    Error,
    /// A send is accepted and recorded, and never gets a response.
    Timeout,
    /// A send is accepted and recorded, and the connection is reset.
    Reset,
    /// A send is accepted and recorded, and a gateway in front of the provider responds
    /// with 502 or 504 and an HTML page.
    Gateway,
    /// Rejected because a quota of the account is used up, in the provider's words.
    Limit,
    /// Rejected because sending is paused, or a limit that the customer set is reached.
    Pause,
    /// Rejected because the account is suspended.
    Suspended,
    /// The response is delayed.
    Latency,
}

/// The calls that a fault affects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum FaultCalls {
    /// Only calls that send messages.
    #[default]
    Send,
    /// Every call to the provider.
    All,
}

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fault {
    /// The affected provider; `None` is all providers.
    pub provider: Option<Provider>,
    pub kind: FaultKind,
    /// The share of calls that it affects, 0 to 1. Setting 0 removes the fault.
    pub rate: f64,
    /// The delay of [`FaultKind::Latency`].
    pub latency_ms: u64,
    pub calls: FaultCalls,
}

impl Fault {
    /// Delays every provider's response to every send.
    #[must_use]
    pub const fn slow_sends(latency_ms: u64) -> Self {
        Self {
            provider: None,
            kind: FaultKind::Latency,
            rate: 1.0,
            latency_ms,
            calls: FaultCalls::Send,
        }
    }
}

/// The effect of a fault that ends a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultEffect {
    Throttle,
    Error,
    Timeout,
    Reset,
    Gateway,
    Account(AccountProblem),
}

/// Why an account may not send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccountProblem {
    Limit,
    Pause,
    Suspended,
}

/// The current faults.
#[derive(Default)]
pub(crate) struct Faults {
    any: AtomicBool,
    set: RwLock<Vec<Fault>>,
}

impl Faults {
    /// Adds a fault and replaces one with the same provider, kind and calls.
    pub(crate) fn set(&self, fault: Fault) {
        let mut set = self.set.write();
        set.retain(|other| {
            (other.provider, other.kind, other.calls) != (fault.provider, fault.kind, fault.calls)
        });
        if fault.rate > 0.0 {
            set.push(fault);
        }
        self.any.store(!set.is_empty(), Ordering::Relaxed);
    }

    /// Removes the faults of one provider, or all faults.
    pub(crate) fn clear(&self, provider: Option<Provider>) {
        let mut set = self.set.write();
        set.retain(|fault| provider.is_some() && fault.provider != provider);
        self.any.store(!set.is_empty(), Ordering::Relaxed);
    }

    pub(crate) fn list(&self) -> Vec<Fault> {
        self.set.read().clone()
    }

    /// The effect that ends this send, if any.
    pub(crate) fn effect_on_send(&self, provider: Provider, ids: &Ids) -> Option<FaultEffect> {
        self.effect_on(provider, ids, |_| true)
    }

    /// The effect that ends this other call, if any.
    pub(crate) fn effect_on_read(&self, provider: Provider, ids: &Ids) -> Option<FaultEffect> {
        self.effect_on(provider, ids, |calls| calls == FaultCalls::All)
    }

    /// How long to delay the response to this call.
    pub(crate) fn delay(&self, provider: Provider, is_send: bool, ids: &Ids) -> Option<Duration> {
        if !self.any.load(Ordering::Relaxed) {
            return None;
        }
        let set = self.set.read();
        let total_ms: u64 = set
            .iter()
            .filter(|fault| fault.kind == FaultKind::Latency)
            .filter(|fault| is_send || fault.calls == FaultCalls::All)
            .filter(|fault| fault.applies(provider, ids))
            .map(|fault| fault.latency_ms)
            .sum();
        (total_ms > 0).then(|| Duration::from_millis(total_ms))
    }

    fn effect_on(
        &self,
        provider: Provider,
        ids: &Ids,
        covers: impl Fn(FaultCalls) -> bool,
    ) -> Option<FaultEffect> {
        if !self.any.load(Ordering::Relaxed) {
            return None;
        }
        let set = self.set.read();
        set.iter()
            .filter(|fault| covers(fault.calls))
            .filter_map(|fault| Some((fault, fault.kind.effect()?)))
            .find(|(fault, _)| fault.applies(provider, ids))
            .map(|(_, effect)| effect)
    }
}

impl FaultKind {
    fn effect(self) -> Option<FaultEffect> {
        match self {
            Self::Throttle => Some(FaultEffect::Throttle),
            Self::Error => Some(FaultEffect::Error),
            Self::Timeout => Some(FaultEffect::Timeout),
            Self::Reset => Some(FaultEffect::Reset),
            Self::Gateway => Some(FaultEffect::Gateway),
            Self::Limit => Some(FaultEffect::Account(AccountProblem::Limit)),
            Self::Pause => Some(FaultEffect::Account(AccountProblem::Pause)),
            Self::Suspended => Some(FaultEffect::Account(AccountProblem::Suspended)),
            Self::Latency => None,
        }
    }
}

impl Fault {
    fn applies(&self, provider: Provider, ids: &Ids) -> bool {
        self.provider.is_none_or(|own| own == provider) && ids.chance(self.rate)
    }
}

#[cfg(test)]
mod tests {
    use super::{Fault, FaultCalls, FaultEffect, FaultKind, Faults};
    use crate::ids::Ids;
    use crate::providers::Provider;

    fn fault(provider: Option<Provider>, kind: FaultKind, rate: f64) -> Fault {
        Fault {
            provider,
            kind,
            rate,
            latency_ms: 5,
            calls: FaultCalls::Send,
        }
    }

    #[test]
    fn a_fault_affects_its_provider_and_only_sends() {
        let (faults, ids) = (Faults::default(), Ids::new());
        faults.set(fault(Some(Provider::Ses), FaultKind::Error, 1.0));
        let hit = faults.effect_on_send(Provider::Ses, &ids);
        assert_eq!(hit, Some(FaultEffect::Error));
        assert_eq!(faults.effect_on_send(Provider::Mailgun, &ids), None);
        assert_eq!(faults.effect_on_read(Provider::Ses, &ids), None);
    }

    #[test]
    fn a_rate_of_zero_removes_and_clear_removes_all() {
        let (faults, ids) = (Faults::default(), Ids::new());
        faults.set(fault(None, FaultKind::Latency, 1.0));
        assert!(faults.delay(Provider::Postmark, true, &ids).is_some());
        faults.set(fault(None, FaultKind::Latency, 0.0));
        assert!(faults.list().is_empty());
        faults.set(fault(Some(Provider::Ses), FaultKind::Reset, 1.0));
        faults.clear(None);
        assert!(faults.list().is_empty());
    }

    #[test]
    fn a_share_of_calls_is_affected() {
        let (faults, ids) = (Faults::default(), Ids::new());
        faults.set(fault(None, FaultKind::Throttle, 0.5));
        let applies = (0..10_000)
            .filter(|_| faults.effect_on_send(Provider::Ses, &ids).is_some())
            .count();
        assert!((4_500..5_500).contains(&applies), "{applies}");
    }
}
