//! `waypost-api jobs` and `waypost-api workers`. Dead jobs are stored in Postgres.

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
use waypost_core::job_queue::Queue;
use waypost_core::redis::Redis;

use super::CommandError;

/// The most dead jobs that are printed.
const DEAD_JOBS_MAX: i64 = 1_000;

#[derive(Debug, Subcommand)]
pub(super) enum JobsCommand {
    /// List the dead jobs.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Retry dead jobs, counting lost workers from 0 again.
    Retry {
        /// The id of the message.
        #[arg(required_unless_present = "all")]
        message_id: Option<MessageId>,
        /// The number of one chunk of the message. Default: all its dead jobs.
        #[arg(long, requires = "message_id")]
        chunk: Option<i32>,
        /// Retry all dead jobs.
        #[arg(long, conflicts_with = "message_id")]
        all: bool,
    },
    /// Drop dead jobs. Recipients that the message was not sent to become FAILED.
    Drop(DropArguments),
}

#[derive(Debug, Args)]
pub(super) struct DropArguments {
    /// The ids of the messages.
    #[arg(required = true)]
    message_ids: Vec<MessageId>,
    /// The number of one chunk of each message. Default: all their dead jobs.
    #[arg(long)]
    chunk: Option<i32>,
}

/// The connections and settings of the commands.
struct JobTools {
    pool: PgPool,
    queue: Queue<SendJob>,
    redis: Redis,
    settings: Settings,
    ids: Ids,
    clock: Clock,
}

pub(super) async fn run(command: JobsCommand) -> Result<(), CommandError> {
    let tools = JobTools::new().await?;
    match command {
        JobsCommand::List { json } => tools.list(json).await,
        JobsCommand::Retry {
            message_id, chunk, ..
        } => {
            let selection = message_id.map_or(DeadLetterSelection::All, |message_id| {
                DeadLetterSelection::Of { message_id, chunk }
            });
            tools.retry(selection).await
        }
        JobsCommand::Drop(DropArguments { message_ids, chunk }) => {
            for message_id in message_ids {
                tools.drop(message_id, chunk).await?;
            }
            Ok(())
        }
    }
}

pub(super) async fn print_workers(as_json: bool) -> Result<(), CommandError> {
    let tools = JobTools::new().await?;
    let mut connection = tools.pool.acquire().await.or_fault("reach Postgres")?;
    let workers = lease::list_workers(&mut connection).await?;
    if as_json {
        let workers: Vec<Value> = workers
            .iter()
            .map(|worker| {
                json!({
                    "name": worker.name, "startedAt": timestamp(worker.started_at),
                    "leasedUntil": timestamp(worker.leased_until), "isDead": worker.is_dead,
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
            timestamp(worker.started_at),
            timestamp(worker.leased_until),
            worker.chunks.to_string(),
        ]
    });
    let head = ["WORKER", "STATE", "STARTED", "LEASED UNTIL", "CHUNKS"];
    print!("{}", super::table(head, rows));
    Ok(())
}

impl JobTools {
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
        let dead_jobs = dead_letter::store::list(&mut connection, DEAD_JOBS_MAX).await?;
        if as_json {
            let dead_jobs: Vec<Value> = dead_jobs.iter().map(dead_job_json).collect();
            println!("{:#}", json!({ "deadJobs": dead_jobs }));
        } else {
            print!("{}", dead_jobs_table(dead_jobs));
        }
        Ok(())
    }

    /// The cause of a Redis fault, for the operator.
    async fn cause(&self, fault: &Fault) -> String {
        match self.redis.check_writes().await {
            Ok(()) => fault.chain(),
            Err(error) => self.redis.explain(&error),
        }
    }

    async fn retry(&self, selection: DeadLetterSelection) -> Result<(), CommandError> {
        let now = self.clock.now();
        let mut transaction = db::begin(&self.pool, "reach Postgres").await?;
        let settings = &self.settings.sending;
        let jobs =
            dead_letter::retry(&mut transaction, selection, settings, &self.ids, now).await?;
        if let DeadLetterSelection::Of { message_id, chunk } = selection
            && jobs.is_empty()
        {
            let is_known = dead_letter::store::is_known(&mut transaction, message_id).await?;
            return Err(no_dead_job(message_id, chunk, is_known).into());
        }
        transaction.commit().await.or_fault("retry jobs")?;
        for job in &jobs {
            println!("{} {}", job.message_id, job.chunk);
        }
        if let Err(fault) = self.queue.push(&jobs).await {
            let cause = self.cause(&fault).await;
            eprintln!(
                "could not push the jobs to Redis; the scheduler or a worker will find them in Postgres: {cause}"
            );
        }
        Ok(())
    }

    async fn drop(&self, message_id: MessageId, chunk: Option<i32>) -> Result<(), CommandError> {
        let now = self.clock.now();
        let selection = DeadLetterSelection::Of { message_id, chunk };
        let mut transaction = db::begin(&self.pool, "reach Postgres").await?;
        let dropped = dead_letter::discard(&mut transaction, selection, &self.ids, now).await?;
        if dropped.is_empty() {
            let is_known = dead_letter::store::is_known(&mut transaction, message_id).await?;
            return Err(no_dead_job(message_id, chunk, is_known).into());
        }
        transaction.commit().await.or_fault("drop jobs")?;
        for (job, recipients) in dropped {
            println!("{} {}: {recipients} recipients", job.message_id, job.chunk);
        }
        Ok(())
    }
}

fn no_dead_job(message_id: MessageId, chunk: Option<i32>, is_known: bool) -> String {
    match chunk {
        _ if !is_known => format!("message {message_id} does not exist"),
        Some(chunk) => format!("chunk {chunk} of message {message_id} is not a dead job"),
        None => format!("message {message_id} has no dead jobs"),
    }
}

fn dead_job_json(chunk: &DeadLetter) -> Value {
    json!({
        "messageId": chunk.job.message_id, "chunk": chunk.job.chunk,
        "organizationId": chunk.job.organization_id, "recipients": chunk.recipients,
        "losses": chunk.losses, "deadSince": timestamp(chunk.dead_since), "reason": chunk.reason,
    })
}

fn dead_jobs_table(dead_jobs: Vec<DeadLetter>) -> String {
    let head = [
        "MESSAGE",
        "CHUNK",
        "ORGANIZATION",
        "RECIPIENTS",
        "LOSSES",
        "DEAD SINCE",
        "REASON",
    ];
    let rows = dead_jobs.into_iter().map(|chunk| {
        [
            chunk.job.message_id.to_string(),
            chunk.job.chunk.to_string(),
            chunk.job.organization_id.to_string(),
            chunk.recipients.to_string(),
            chunk.losses.to_string(),
            timestamp(chunk.dead_since),
            chunk.reason,
        ]
    });
    super::table(head, rows)
}

fn timestamp(moment: Timestamp) -> String {
    moment.to_rfc3339_opts(SecondsFormat::Secs, true)
}
