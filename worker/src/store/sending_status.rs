//! What is shown of messages under way: SENDING, where sending takes its time.

use std::collections::HashSet;
use std::sync::Weak;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};
use tracing::debug;
use waypost_core::db::OrFault;
use waypost_core::fault::Fault;
use waypost_core::ids::MessageId;
use waypost_core::message::store;

use super::{StoreWriter, again_after_deadlocks, lock};

/// How long a claim is in hand before its message shows that it is being sent.
const SHOWN_AFTER: Duration = Duration::from_millis(100);
/// Messages that are shown so in one transaction.
const SHOWN_AT_ONCE: usize = 1_000;
const SHOW: &str = "show what is being sent";

/// Lets messages show that they are being sent whose settlement takes its time, until
/// the ledger is gone. Most are settled before anybody could look.
pub(super) async fn keep(writer: Weak<StoreWriter>) {
    let mut ticks = interval(SHOWN_AFTER);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(writer) = writer.upgrade() else {
            return;
        };
        let slow: Vec<(MessageId, bool)> = {
            let in_hand = lock(&writer.in_hand);
            let slow = in_hand
                .iter()
                .filter(|(_, held)| !held.shown && held.since.elapsed() >= SHOWN_AFTER);
            let slow = slow.take(SHOWN_AT_ONCE);
            slow.map(|((_, job), held)| (job.message_id, held.is_single))
                .collect()
        };
        if slow.is_empty() {
            continue;
        }
        let ids = |is_single: bool| -> Vec<MessageId> {
            let alike = slow.iter().filter(|(_, single)| *single == is_single);
            alike.map(|(id, _)| *id).collect()
        };
        let (single, several) = (ids(true), ids(false));
        let showing = || writer.show_sending(&single, &several);
        match again_after_deadlocks(showing, SHOW).await {
            Ok(shown) => {
                let shown: HashSet<MessageId> = shown.into_iter().chain(several).collect();
                for ((_, job), held) in lock(&writer.in_hand).iter_mut() {
                    held.shown |= shown.contains(&job.message_id);
                }
            }
            Err(fault) => debug!(cause = fault.chain(), "What is being sent is not shown yet"),
        }
    }
}

impl StoreWriter {
    async fn show_sending(
        &self,
        single: &[MessageId],
        several: &[MessageId],
    ) -> Result<Vec<MessageId>, Fault> {
        let mut transaction = self.pool.begin(SHOW).await?;
        let shown = store::mark_sending(&mut transaction, single, several).await?;
        transaction.commit().await.or_fault(SHOW)?;
        Ok(shown)
    }
}
