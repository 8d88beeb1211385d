//! The memory that batches take: how much all of them may, and how much a mail of one does.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::store::LeasedChunk;

/// The most bytes of mails in all batches of a worker.
const BATCHES_BYTES_MAX: usize = 16 * 1024 * 1024;
/// About how many bytes a mail takes besides the bodies: its headers and its unsubscribe
/// links.
const MAIL_BYTES: usize = 3 * 1024;
/// About how many bytes a tracked link takes besides its URL.
const LINK_BYTES: usize = 512;
/// The unit in which memory is reserved, in bytes.
const MEMORY_UNIT: usize = 1024;

/// The memory for all batches of a worker. Cheap to clone.
#[derive(Clone)]
pub(super) struct BatchMemory(Arc<Semaphore>);

impl Default for BatchMemory {
    fn default() -> Self {
        let units = BATCHES_BYTES_MAX / MEMORY_UNIT;
        Self(Arc::new(Semaphore::new(units)))
    }
}

impl BatchMemory {
    /// Reserves memory. `None` if not enough is free: a job does not wait for the batches
    /// of other jobs, whose provider may hang.
    pub(super) fn reserve(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let units = u32::try_from(bytes.div_ceil(MEMORY_UNIT)).ok()?;
        Arc::clone(&self.0).try_acquire_many_owned(units).ok()
    }
}

/// About how many bytes of memory one mail of the chunk takes.
pub(super) fn mail_bytes(chunk: &LeasedChunk) -> usize {
    let content = &chunk.message.content;
    let bodies = [&content.html, &content.text];
    let bodies = bodies.into_iter().flatten().map(String::len).sum::<usize>();
    let own = chunk.own_contents.iter().flat_map(HashMap::values);
    let own = own.map(|own| {
        [&own.html, &own.text]
            .into_iter()
            .flatten()
            .map(String::len)
            .sum()
    });
    let bodies = own.fold(bodies, usize::max);
    let links = chunk.plan.links();
    // A tracked link contains its URL, encoded.
    let tracked = if links > 0 { bodies } else { 0 };
    bodies + 2 * tracked + links * LINK_BYTES + MAIL_BYTES
}
