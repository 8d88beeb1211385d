//! The acknowledger: tells Redis how jobs ended. It gathers without a timer, by
//! taking all that ended while its last call ran, so that one job alone waits for
//! nothing and many share a round trip.

use std::sync::Arc;

use super::Job;
use super::desk::{Consumer, Ending, Entry, EntryId};
use super::line::{Line, NoAnswer, Question};
use super::store::GROUP;

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
            .partition(|(_, ending)| matches!(ending, Ending::Done));
        if !done.is_empty() {
            tell(&consumer, &mut line, &done).await;
        }
        if !others.is_empty() {
            tell(&consumer, &mut line, &others).await;
        }
    }
}

async fn tell<J: Job>(consumer: &Consumer<J>, line: &mut Line, ended: &[(Entry, Ending)]) {
    let pipeline = endings(consumer, ended);
    let mut refusals = 0;
    while let Err(no_answer) = line.ask::<()>(Question::Pipeline(&pipeline)).await {
        if no_answer == NoAnswer::Refused {
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

/// One transaction: what follows from the endings, then the acknowledgement. Tried
/// twice it does no harm: at worst a job is handed back twice.
fn endings<J: Job>(consumer: &Consumer<J>, ended: &[(Entry, Ending)]) -> redis::Pipeline {
    let queue = &consumer.queue;
    let keys = queue.keys();
    let mut pipeline = redis::pipe();
    pipeline.atomic();
    let mut any_dead = false;
    for (entry, ending) in ended {
        match ending {
            Ending::Done => {}
            Ending::Again => queue.add_entry(&mut pipeline, &entry.payload, entry.attempts),
            Ending::Later { after, attempts } => {
                queue.add_delayed(&mut pipeline, &entry.payload, *attempts, *after);
            }
            Ending::Dead { reason } => {
                any_dead = true;
                let name = queue.name();
                tracing::warn!(queue = name, job.entry = %entry.id, "A job is dead: {reason}");
                queue.add_dead(&mut pipeline, &entry.payload, reason);
            }
        }
    }
    if any_dead {
        queue.trim_dead(&mut pipeline);
    }
    let ids: Vec<String> = ended
        .iter()
        .map(|(entry, _)| entry.id.to_string())
        .collect();
    pipeline
        .cmd("XACK")
        .arg(&keys.stream)
        .arg(GROUP)
        .arg(&ids)
        .ignore();
    pipeline.cmd("XDEL").arg(&keys.stream).arg(&ids).ignore();
    pipeline
}
