//! `waypost-api jobs` and `waypost-api workers`: what became of work that nobody
//! takes on any more, and who works. Parked chunks lie in Postgres; what Redis holds
//! besides are entries that no worker could use, kept to be looked at.

use chrono::SecondsFormat;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use waypost_core::clock::{Clock, Timestamp};
use waypost_core::config::Settings;
use waypost_core::db::connection_check::SchemaRequirement;
use waypost_core::db::{self, OrFault, PgPool};
use waypost_core::delivery::dead_letter::{self, DeadLetter, DeadLetterSelection};
use waypost_core::delivery::job::{SendJob, send_queue};
use waypost_core::delivery::lease;
use waypost_core::fault::Fault;
use waypost_core::ids::{Ids, MessageId};
use waypost_core::job_queue::{DeadJob, Queue};
use waypost_core::redis::Redis;

use super::CommandError;

/// Parked chunks that are printed at the most.
const PARKED_MAX: i64 = 1_000;
/// Dead entries of Redis that are printed at the most.
const DEAD_MAX: usize = 100;

#[derive(Debug, Subcommand)]
pub(super) enum JobsCommand {
    /// Print the parked jobs, and the entries in Redis that no worker could use.
    List {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Let parked jobs be worked on again, with a clean record.
    Retry {
        /// The message.
        #[arg(required_unless_present = "all")]
        message_id: Option<MessageId>,
        /// One of its chunks; all that are parked where none is named.
        #[arg(long, requires = "message_id")]
        chunk: Option<i32>,
        /// Every parked job.
        #[arg(long, conflicts_with = "message_id")]
        all: bool,
    },
    /// Give up parked jobs: their recipients that were not sent to fail.
    Drop(DropArguments),
}

#[derive(Debug, Args)]
pub(super) struct DropArguments {
    /// The messages.
    #[arg(required = true)]
    message_ids: Vec<MessageId>,
    /// One chunk of each; all that are parked where none is named.
    #[arg(long)]
    chunk: Option<i32>,
}

/// What the commands work with.
struct Bench {
    pool: PgPool,
    queue: Queue<SendJob>,
    redis: Redis,
    settings: Settings,
    ids: Ids,
    clock: Clock,
}

pub(super) async fn run(command: JobsCommand) -> Result<(), CommandError> {
    let bench = Bench::new().await?;
    match command {
        JobsCommand::List { json } => bench.list(json).await,
        JobsCommand::Retry {
            message_id, chunk, ..
        } => {
            let choice = message_id.map_or(DeadLetterSelection::All, |message_id| {
                DeadLetterSelection::Of { message_id, chunk }
            });
            bench.retry(choice).await
        }
        JobsCommand::Drop(DropArguments { message_ids, chunk }) => {
            for message_id in message_ids {
                bench.drop(message_id, chunk).await?;
            }
            Ok(())
        }
    }
}

pub(super) async fn print_workers(as_json: bool) -> Result<(), CommandError> {
    let bench = Bench::new().await?;
    let mut connection = bench.pool.acquire().await.or_fault("reach Postgres")?;
    let workers = lease::list_workers(&mut connection).await?;
    if as_json {
        let workers: Vec<Value> = workers
            .iter()
            .map(|worker| {
                json!({
                    "name": worker.name, "startedAt": shown(worker.started_at),
                    "leasedUntil": shown(worker.leased_until), "isDead": worker.is_dead,
                    "chunks": worker.chunks,
                })
            })
            .collect();
        println!("{:#}", Value::Array(workers));
        return Ok(());
    }
    let rows = workers.into_iter().map(|worker| {
        let state = if worker.is_dead { "dead" } else { "alive" };
        [
            worker.name,
            state.to_owned(),
            shown(worker.started_at),
            shown(worker.leased_until),
            worker.chunks.to_string(),
        ]
    });
    let head = ["WORKER", "STATE", "STARTED", "LEASED UNTIL", "CHUNKS"];
    print!("{}", table(head, rows));
    Ok(())
}

impl Bench {
    async fn new() -> Result<Self, CommandError> {
        let settings = Settings::from_env()?;
        let clock = Clock::system();
        let redis = Redis::new(&settings.redis_url, &settings.redis_prefix)?;
        let pool = super::connect_to(&settings.database_url, SchemaRequirement::Current).await?;
        db::time::correct(&clock, &pool).await?;
        Ok(Self {
            pool,
            queue: send_queue(&redis, clock.clone()),
            redis,
            ids: Ids::new(clock.clone()),
            settings,
            clock,
        })
    }

    async fn list(&self, as_json: bool) -> Result<(), CommandError> {
        let mut connection = self.pool.acquire().await.or_fault("reach Postgres")?;
        let parked = dead_letter::store::list(&mut connection, PARKED_MAX).await?;
        drop(connection);
        let (dead, unknown) = match self.queue.dead(DEAD_MAX).await {
            Ok(dead) => (Some(dead), None),
            Err(fault) => (None, Some(self.cause(&fault).await)),
        };
        if as_json {
            let dead: Option<Vec<Value>> = dead.map(|dead| dead.iter().map(entry).collect());
            let parked: Vec<Value> = parked.iter().map(record).collect();
            println!("{:#}", json!({ "parked": parked, "dead": dead }));
        } else {
            print!("{}", parked_table(parked));
            if let Some(dead) = dead.filter(|dead| !dead.is_empty()) {
                println!();
                print!("{}", dead_table(dead));
            }
        }
        if let Some(cause) = unknown {
            eprintln!("the dead entries in Redis are not known: {cause}");
        }
        Ok(())
    }

    /// What became of something that was asked of Redis, for people.
    async fn cause(&self, fault: &Fault) -> String {
        match self.redis.check_writes().await {
            Ok(()) => fault.chain(),
            Err(error) => self.redis.explain(&error),
        }
    }

    async fn retry(&self, choice: DeadLetterSelection) -> Result<(), CommandError> {
        let now = self.clock.now();
        let mut transaction = db::begin(&self.pool, "reach Postgres").await?;
        let settings = &self.settings.sending;
        let jobs = dead_letter::retry(&mut transaction, choice, settings, &self.ids, now).await?;
        if let DeadLetterSelection::Of { message_id, chunk } = choice
            && jobs.is_empty()
        {
            let is_known = dead_letter::store::is_known(&mut transaction, message_id).await?;
            return Err(nothing_parked(message_id, chunk, is_known).into());
        }
        transaction.commit().await.or_fault("retry jobs")?;
        for job in &jobs {
            println!("{} {}", job.message_id, job.chunk);
        }
        if let Err(fault) = self.queue.push(&jobs).await {
            let cause = self.cause(&fault).await;
            eprintln!("Redis was not told; the relay or a worker finds the jobs: {cause}");
        }
        Ok(())
    }

    async fn drop(&self, message_id: MessageId, chunk: Option<i32>) -> Result<(), CommandError> {
        let now = self.clock.now();
        let choice = DeadLetterSelection::Of { message_id, chunk };
        let mut transaction = db::begin(&self.pool, "reach Postgres").await?;
        let dropped = dead_letter::give_up(&mut transaction, choice, &self.ids, now).await?;
        if dropped.is_empty() {
            let is_known = dead_letter::store::is_known(&mut transaction, message_id).await?;
            return Err(nothing_parked(message_id, chunk, is_known).into());
        }
        transaction.commit().await.or_fault("drop jobs")?;
        for (job, recipients) in dropped {
            println!("{} {}: {recipients} recipients", job.message_id, job.chunk);
        }
        Ok(())
    }
}

fn nothing_parked(message_id: MessageId, chunk: Option<i32>, is_known: bool) -> String {
    match chunk {
        _ if !is_known => format!("there is no message {message_id}"),
        Some(chunk) => format!("chunk {chunk} of message {message_id} is not parked"),
        None => format!("no job of message {message_id} is parked"),
    }
}

fn record(chunk: &DeadLetter) -> Value {
    json!({
        "messageId": chunk.job.message_id, "chunk": chunk.job.chunk,
        "organizationId": chunk.job.organization_id, "recipients": chunk.recipients,
        "losses": chunk.losses, "parkedAt": shown(chunk.parked_at), "reason": chunk.reason,
    })
}

fn entry(dead: &DeadJob) -> Value {
    json!({ "at": shown(dead.at), "reason": dead.reason, "payload": dead.payload })
}

fn parked_table(parked: Vec<DeadLetter>) -> String {
    let head = [
        "MESSAGE",
        "CHUNK",
        "ORGANIZATION",
        "RECIPIENTS",
        "LOSSES",
        "PARKED",
        "REASON",
    ];
    let rows = parked.into_iter().map(|chunk| {
        [
            chunk.job.message_id.to_string(),
            chunk.job.chunk.to_string(),
            chunk.job.organization_id.to_string(),
            chunk.recipients.to_string(),
            chunk.losses.to_string(),
            shown(chunk.parked_at),
            chunk.reason,
        ]
    });
    table(head, rows)
}

fn dead_table(dead: Vec<DeadJob>) -> String {
    let rows = dead
        .into_iter()
        .map(|dead| [shown(dead.at), dead.reason, printable(&dead.payload)]);
    table(["DEAD IN REDIS", "REASON", "ENTRY"], rows)
}

/// What lies in Redis may be anything; a terminal obeys control characters.
fn printable(text: &str) -> String {
    text.chars().flat_map(char::escape_debug).collect()
}

fn shown(moment: Timestamp) -> String {
    moment.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// Columns as wide as what is in them, the last one ragged.
fn table<const N: usize>(head: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let mut lines = vec![head.map(str::to_owned)];
    lines.extend(rows);
    let widths: [usize; N] = std::array::from_fn(|column| {
        let cells = lines.iter().map(|line| line[column].chars().count());
        cells.max().unwrap_or_default()
    });
    let mut text = String::new();
    for line in lines {
        let cells = line.iter().zip(widths);
        let padded: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        text.push_str(padded.join("  ").trim_end());
        text.push('\n');
    }
    text
}
