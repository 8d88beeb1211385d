//! The acknowledger: tells Redis how jobs ended. It gathers without a timer, by
//! taking all that ended while its last call ran, so that one job alone waits for
//! nothing and many share a round trip.

use std::collections::HashMap;
use std::sync::Arc;

use redis::{ScriptInvocation, Value};

use super::connection::{CallError, ReconnectingConnection, RedisCall};
use super::in_flight::{Consumer, EntryId, JobOutcome, StreamEntry};
use super::store::text;
use super::{FairnessKey, Job};

/// The most endings told in one call.
const BATCH_MAX: usize = 1_000;
/// How often, about once a second, endings are told while Redis refuses them (out
/// of memory, say), before the jobs are left to their leases so as not to hold up
/// others for ever.
const REFUSALS_MAX: u32 = 60;

pub(super) async fn run<J: Job>(consumer: Arc<Consumer<J>>) {
    let mut line = consumer.queue.line(&consumer.lines_down);
    loop {
        let ended = consumer.desk.ended(BATCH_MAX).await;
        let (done, others): (Vec<_>, Vec<_>) = ended
            .into_iter()
            .partition(|(_, ending)| matches!(ending, JobOutcome::Done));
        if !done.is_empty() {
            tell(&consumer, &mut line, &done).await;
        }
        if !others.is_empty() {
            tell(&consumer, &mut line, &others).await;
        }
    }
}

async fn tell<J: Job>(
    consumer: &Consumer<J>,
    line: &mut ReconnectingConnection,
    ended: &[(StreamEntry, JobOutcome)],
) {
    let script = endings(consumer, ended);
    let mut refusals = 0;
    while let Err(no_answer) = line.ask::<Value>(RedisCall::Script(&script)).await {
        if no_answer == CallError::Refused {
            refusals += 1;
        }
        if refusals >= REFUSALS_MAX {
            let (queue, count) = (consumer.queue.name(), ended.len());
            tracing::warn!(
                queue,
                "Redis will not take the end of {count} jobs: they will run again"
            );
            break;
        }
    }
    let ids: Vec<EntryId> = ended.iter().map(|(entry, _)| entry.id).collect();
    consumer.desk.let_go(&ids);
}

/// What follows from the endings, then the acknowledgement of each lane's, whose order
/// is kept. Tried twice it does no harm: at worst a job is handed back twice.
fn endings<J: Job>(
    consumer: &Consumer<J>,
    ended: &[(StreamEntry, JobOutcome)],
) -> ScriptInvocation<'static> {
    let queue = &consumer.queue;
    let mut script = queue.end();
    let mut gone: HashMap<Option<FairnessKey>, (i64, Vec<EntryId>)> = HashMap::new();
    for (entry, ending) in ended {
        match ending {
            JobOutcome::Done => {}
            JobOutcome::Again => queue.again(&mut script, entry),
            JobOutcome::Later { after, attempts } => {
                queue.later(&mut script, entry, *attempts, *after);
            }
            JobOutcome::Dead { reason } => {
                let name = queue.name();
                tracing::warn!(queue = name, job.entry = %entry.id, "A job is dead: {reason}");
                queue.bury(&mut script, entry, reason);
            }
        }
        let (newest, ids) = gone.entry(entry.lane).or_insert((entry.at_ms, Vec::new()));
        *newest = entry.at_ms.max(*newest);
        ids.push(entry.id);
    }
    script.arg("gone").arg(gone.len());
    for (lane, (newest, ids)) in &gone {
        script.arg(text(*lane)).arg(*newest).arg(ids.len());
    }
    for id in gone.values().flat_map(|(_, ids)| ids) {
        script.arg(id.to_string());
    }
    script
}
