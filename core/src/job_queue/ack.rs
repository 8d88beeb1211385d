//! The acknowledger: reports to Redis how jobs ended. Each call reports all jobs that ended
//! during the call before, so one job does not wait for others and many share a round trip.

use std::collections::HashMap;
use std::sync::Arc;

use redis::{ScriptInvocation, Value};

use super::connection::{CallError, ReconnectingConnection, RedisCall};
use super::in_flight::{Consumer, EntryId, JobOutcome, StreamEntry};
use super::store::key_text;
use super::{FairnessKey, Job};

/// The most jobs in one call.
const BATCH_MAX: usize = 1_000;
/// How often, about once a second, a call is repeated that Redis refuses (out of memory, for
/// example). Then the jobs are left to their leases, so that they do not block others.
const REFUSALS_MAX: u32 = 60;

pub(super) async fn run<J: Job>(consumer: Arc<Consumer<J>>) {
    let mut connection = consumer.connection();
    loop {
        let ended = consumer.in_flight.ended(BATCH_MAX).await;
        let (done, others): (Vec<_>, Vec<_>) = ended
            .into_iter()
            .partition(|(_, outcome)| matches!(outcome, JobOutcome::Done));
        if !done.is_empty() {
            acknowledge(&consumer, &mut connection, &done).await;
        }
        if !others.is_empty() {
            acknowledge(&consumer, &mut connection, &others).await;
        }
    }
}

async fn acknowledge<J: Job>(
    consumer: &Consumer<J>,
    connection: &mut ReconnectingConnection,
    ended: &[(StreamEntry, JobOutcome)],
) {
    let script = end_script(consumer, ended);
    let mut refusals = 0;
    while let Err(error) = connection.call::<Value>(RedisCall::Script(&script)).await {
        if error == CallError::Refused {
            refusals += 1;
        }
        if refusals >= REFUSALS_MAX {
            let (queue, count) = (consumer.queue.name(), ended.len());
            tracing::warn!(
                queue,
                "Redis refuses to acknowledge {count} jobs: they will run again"
            );
            break;
        }
    }
    let ids: Vec<EntryId> = ended.iter().map(|(entry, _)| entry.id).collect();
    consumer.in_flight.release(&ids);
}

/// The call for these jobs: first what follows from each outcome, then the acknowledgements,
/// by fairness key and in their order. To repeat it is harmless: at worst a job is pushed
/// twice.
fn end_script<J: Job>(
    consumer: &Consumer<J>,
    ended: &[(StreamEntry, JobOutcome)],
) -> ScriptInvocation<'static> {
    let queue = &consumer.queue;
    let mut script = queue.end();
    let mut gone: HashMap<Option<FairnessKey>, (i64, Vec<EntryId>)> = HashMap::new();
    for (entry, outcome) in ended {
        match outcome {
            JobOutcome::Done => {}
            JobOutcome::Return => queue.push_back(&mut script, entry),
            JobOutcome::Later(after) => queue.delay(&mut script, entry, *after),
        }
        let (newest, ids) = gone.entry(entry.key).or_insert((entry.at_ms, Vec::new()));
        *newest = entry.at_ms.max(*newest);
        ids.push(entry.id);
    }
    script.arg("gone").arg(gone.len());
    for (key, (newest, ids)) in &gone {
        script.arg(key_text(*key)).arg(*newest).arg(ids.len());
    }
    for id in gone.values().flat_map(|(_, ids)| ids) {
        script.arg(id.to_string());
    }
    script
}
