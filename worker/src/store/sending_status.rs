//! Sets messages to SENDING if sending them takes long. Most outcomes are recorded
//! before; for those the row is not updated twice.

use std::collections::HashSet;
use std::sync::Weak;
use std::time::Duration;

use tokio::time::{sleep, timeout_at};
use tracing::debug;
use waypost_core::db::OrFault;
use waypost_core::fault::Fault;
use waypost_core::ids::MessageId;
use waypost_core::message::store;
use waypost_core::ticks::next_tick;

use super::held_leases::HeldLeases;
use super::{StoreWriter, retry_deadlocks};

/// How long a chunk is held before its message is set to SENDING. Outcomes of accepted mails are
/// recorded sooner, in a flood too.
const SENDING_AFTER: Duration = Duration::from_millis(250);
/// How often it is looked whether the store is dropped while no chunk is held.
const STORE_CHECK_EVERY: Duration = Duration::from_secs(1);
/// Messages in one transaction.
const MESSAGES_MAX: usize = 1_000;
const DOING: &str = "set messages to SENDING";

/// Runs until the store is dropped.
pub(super) async fn run(held: HeldLeases, writer: Weak<StoreWriter>) {
    loop {
        let check_at = next_tick(STORE_CHECK_EVERY);
        if timeout_at(check_at, held.wait_for_any()).await.is_ok() {
            sleep(SENDING_AFTER).await;
        }
        let Some(writer) = writer.upgrade() else {
            return;
        };
        let slow = writer.held.not_sending(SENDING_AFTER, MESSAGES_MAX);
        if slow.is_empty() {
            continue;
        }
        let ids = |with_one_recipient: bool| -> Vec<MessageId> {
            let alike = slow.iter().filter(|(_, one)| *one == with_one_recipient);
            alike.map(|(id, _)| *id).collect()
        };
        let (single, several) = (ids(true), ids(false));
        let updating = || writer.set_sending(&single, &several);
        match retry_deadlocks(updating, DOING).await {
            Ok(updated) => {
                let sending: HashSet<MessageId> = updated.into_iter().chain(several).collect();
                writer.held.mark_sending(&sending);
            }
            Err(fault) => debug!(
                cause = fault.chain(),
                "Could not set messages to SENDING yet"
            ),
        }
    }
}

impl StoreWriter {
    async fn set_sending(
        &self,
        single: &[MessageId],
        several: &[MessageId],
    ) -> Result<Vec<MessageId>, Fault> {
        let mut transaction = self.pool.begin(DOING).await?;
        let updated = store::mark_sending(&mut transaction, single, several).await?;
        transaction.commit().await.or_fault(DOING)?;
        Ok(updated)
    }
}
