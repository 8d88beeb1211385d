//! How many sessions there may be, in all and of one address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use waypost_core::config::SubmissionSettings;
use waypost_core::limit::ClientNetwork;
use waypost_core::telemetry::instruments::{self, OpenSessionCount};

/// The sessions that are open. Cheap to clone.
#[derive(Clone)]
pub(super) struct SessionSlots {
    open: Arc<Mutex<OpenSessions>>,
    sessions_max: usize,
    per_address_max: usize,
}

#[derive(Default)]
struct OpenSessions {
    count: usize,
    by_network: HashMap<ClientNetwork, usize>,
}

/// A place for one session until it is dropped.
pub(super) struct SessionSlot {
    slots: SessionSlots,
    network: ClientNetwork,
    _counted: OpenSessionCount,
}

/// Why there is no place for a session. `Display` is the text of the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoSlot {
    InAll,
    OfAddress,
}

impl std::fmt::Display for NoSlot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::InAll => "Too many sessions; try again later",
            Self::OfAddress => "Too many sessions from your address; try again later",
        })
    }
}

impl SessionSlots {
    pub(super) fn new(settings: &SubmissionSettings) -> Self {
        Self {
            open: Arc::default(),
            sessions_max: settings.sessions_max,
            per_address_max: settings.sessions_per_address_max,
        }
    }

    /// Takes a place for a session from this address.
    pub(super) fn take(&self, address: IpAddr) -> Result<SessionSlot, NoSlot> {
        let network = ClientNetwork::from(address);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.count >= self.sessions_max {
            return Err(NoSlot::InAll);
        }
        let of_network = open.by_network.get(&network).copied().unwrap_or_default();
        if of_network >= self.per_address_max {
            return Err(NoSlot::OfAddress);
        }
        open.count += 1;
        open.by_network.insert(network, of_network + 1);
        Ok(SessionSlot {
            slots: self.clone(),
            network,
            _counted: instruments::open_session(),
        })
    }
}

impl Drop for SessionSlot {
    fn drop(&mut self) {
        let open = self.slots.open.lock();
        let mut open = open.unwrap_or_else(PoisonError::into_inner);
        open.count -= 1;
        let left = open.by_network.get(&self.network).copied();
        match left.unwrap_or_default() {
            0 | 1 => open.by_network.remove(&self.network),
            left => open.by_network.insert(self.network, left - 1),
        };
    }
}
