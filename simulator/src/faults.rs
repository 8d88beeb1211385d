//! Disturbances set from outside, for load and fault tests.
//!
//! A fault hits a share of a provider's calls. Several may be set; of those that end a call the
//! first set wins, while latency comes on top.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::RwLock;
use serde::{Deserialize, Serialize};

use crate::ids::Ids;
use crate::providers::Provider;

/// What a fault does to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FaultKind {
    /// Refused as too fast, as the provider words it.
    Throttle,
    /// Refused with status 500.
    Error,
    /// A send is accepted and recorded, and nothing is ever answered.
    Timeout,
    /// A send is accepted and recorded, and the connection is cut.
    Reset,
    /// A send is accepted and recorded, and something before the provider answers 502 or 504
    /// with a page.
    Gateway,
    /// Refused because a quota of the account is used up, as the provider words it.
    Limit,
    /// Refused because sending is paused, or a limit that the customer set is reached.
    Pause,
    /// Refused because the account is suspended.
    Suspended,
    /// The answer is held back.
    Latency,
}

/// Which calls a fault may hit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum FaultCalls {
    /// Only calls that send mail.
    #[default]
    Send,
    /// Every call to the provider.
    All,
}

/// One disturbance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fault {
    /// The provider it hits; `None` means all four.
    pub provider: Option<Provider>,
    pub kind: FaultKind,
    /// The share of calls it hits, 0 to 1. Setting 0 removes the fault.
    pub rate: f64,
    /// How long [`FaultKind::Latency`] holds the answer back.
    pub latency_ms: u64,
    pub calls: FaultCalls,
}

impl Fault {
    /// Every provider's answer to every send is held back so long.
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

/// A fault that ends a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disturbance {
    Throttle,
    Error,
    Timeout,
    Reset,
    Gateway,
    Account(Trouble),
}

/// Why an account may not send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    Limit,
    Pause,
    Suspended,
}

/// The faults now set.
#[derive(Default)]
pub(crate) struct Faults {
    any: AtomicBool,
    set: RwLock<Vec<Fault>>,
}

impl Faults {
    /// Adds a fault, in place of one of the same provider, kind and calls.
    pub(crate) fn set(&self, fault: Fault) {
        let mut set = self.set.write();
        set.retain(|known| {
            (known.provider, known.kind, known.calls) != (fault.provider, fault.kind, fault.calls)
        });
        if fault.rate > 0.0 {
            set.push(fault);
        }
        self.any.store(!set.is_empty(), Ordering::Relaxed);
    }

    /// Removes the faults of one provider, or every fault.
    pub(crate) fn clear(&self, provider: Option<Provider>) {
        let mut set = self.set.write();
        set.retain(|fault| provider.is_some() && fault.provider != provider);
        self.any.store(!set.is_empty(), Ordering::Relaxed);
    }

    pub(crate) fn list(&self) -> Vec<Fault> {
        self.set.read().clone()
    }

    /// What ends this send, if anything does.
    pub(crate) fn disturb_send(&self, provider: Provider, ids: &Ids) -> Option<Disturbance> {
        self.disturb(provider, ids, |_| true)
    }

    /// What ends this other call, if anything does.
    pub(crate) fn disturb_read(&self, provider: Provider, ids: &Ids) -> Option<Disturbance> {
        self.disturb(provider, ids, |calls| calls == FaultCalls::All)
    }

    /// How long to hold back the answer of this call.
    pub(crate) fn delay(&self, provider: Provider, is_send: bool, ids: &Ids) -> Option<Duration> {
        if !self.any.load(Ordering::Relaxed) {
            return None;
        }
        let set = self.set.read();
        let total_ms: u64 = set
            .iter()
            .filter(|fault| fault.kind == FaultKind::Latency)
            .filter(|fault| is_send || fault.calls == FaultCalls::All)
            .filter(|fault| fault.hits(provider, ids))
            .map(|fault| fault.latency_ms)
            .sum();
        (total_ms > 0).then(|| Duration::from_millis(total_ms))
    }

    fn disturb(
        &self,
        provider: Provider,
        ids: &Ids,
        covers: impl Fn(FaultCalls) -> bool,
    ) -> Option<Disturbance> {
        if !self.any.load(Ordering::Relaxed) {
            return None;
        }
        let set = self.set.read();
        set.iter()
            .filter(|fault| covers(fault.calls))
            .filter_map(|fault| Some((fault, fault.kind.disturbance()?)))
            .find(|(fault, _)| fault.hits(provider, ids))
            .map(|(_, disturbance)| disturbance)
    }
}

impl FaultKind {
    fn disturbance(self) -> Option<Disturbance> {
        match self {
            Self::Throttle => Some(Disturbance::Throttle),
            Self::Error => Some(Disturbance::Error),
            Self::Timeout => Some(Disturbance::Timeout),
            Self::Reset => Some(Disturbance::Reset),
            Self::Gateway => Some(Disturbance::Gateway),
            Self::Limit => Some(Disturbance::Account(Trouble::Limit)),
            Self::Pause => Some(Disturbance::Account(Trouble::Pause)),
            Self::Suspended => Some(Disturbance::Account(Trouble::Suspended)),
            Self::Latency => None,
        }
    }
}

impl Fault {
    fn hits(&self, provider: Provider, ids: &Ids) -> bool {
        self.provider.is_none_or(|own| own == provider) && ids.chance(self.rate)
    }
}

#[cfg(test)]
mod tests {
    use super::{Disturbance, Fault, FaultCalls, FaultKind, Faults};
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
    fn a_fault_hits_its_provider_and_only_sends() {
        let (faults, ids) = (Faults::default(), Ids::new());
        faults.set(fault(Some(Provider::Ses), FaultKind::Error, 1.0));
        let hit = faults.disturb_send(Provider::Ses, &ids);
        assert_eq!(hit, Some(Disturbance::Error));
        assert_eq!(faults.disturb_send(Provider::Mailgun, &ids), None);
        assert_eq!(faults.disturb_read(Provider::Ses, &ids), None);
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
    fn a_share_of_calls_is_hit() {
        let (faults, ids) = (Faults::default(), Ids::new());
        faults.set(fault(None, FaultKind::Throttle, 0.5));
        let hits = (0..10_000)
            .filter(|_| faults.disturb_send(Provider::Ses, &ids).is_some())
            .count();
        assert!((4_500..5_500).contains(&hits), "{hits}");
    }
}
