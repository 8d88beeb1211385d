//! The memory that the bodies of large requests take. Each takes its bytes from the budget of
//! the process before it is read, and gives them back when its request is answered: what a
//! handler makes of a body is about as large. A request for which too little is left gets 503.

use std::sync::{Arc, Mutex, PoisonError};

use poem::{Endpoint, Request};
use waypost_core::attachment::{ByteBudget, ReservedBytes};
use waypost_core::fault::Fault;

use crate::error::Failure;

/// Bodies up to this size are not counted.
pub(crate) const SMALL_BYTES_MAX: usize = 1 << 20;

/// What a request has taken from the budget.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestMemory(Arc<Mutex<Vec<ReservedBytes>>>);

impl RequestMemory {
    /// Takes `bytes` until the request is answered.
    ///
    /// # Errors
    /// 503 if fewer are left.
    pub(crate) fn reserve(&self, budget: &ByteBudget, bytes: usize) -> Result<(), Failure> {
        let reserved = budget.reserve(bytes as u64);
        let reserved = reserved.map_err(|full| Fault::unavailable("read a large request", full))?;
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.push(reserved);
        Ok(())
    }
}

/// Serves a request through `next`, with its [`RequestMemory`] as request data.
pub(crate) async fn wrap<E: Endpoint>(
    next: Arc<E>,
    mut request: Request,
) -> poem::Result<E::Output> {
    let memory = RequestMemory::default();
    request.set_data(memory.clone());
    let answered = next.call(request).await;
    drop(memory);
    answered
}
