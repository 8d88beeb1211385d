//! `waypost-api jobs` and `waypost-api workers`. Dead jobs are stored in Postgres.

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use waypost_core::db::{self, OrFault, diagnosis};
use waypost_core::delivery::dead_letter::{self, DeadLetter, DeadLetterSelection};
use waypost_core::delivery::job::{SendJob, send_queue};
use waypost_core::delivery::lease::{self, ListedWorker};
use waypost_core::fault::Fault;
use waypost_core::ids::MessageId;
use waypost_core::job_queue::Queue;
use waypost_core::redis::Redis;

use super::CommandError;
use super::output::{OutputFormat, table, timestamp};
use super::tools::CommandTools;

/// The most dead jobs that are printed.
const DEAD_JOBS_MAX: i64 = 1_000;

#[derive(Debug, Subcommand)]
pub(super) enum JobsCommand {
    /// List the dead jobs.
    List,
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
    /// After a restore: hold all queued mail as dead jobs, because it may have been sent after
    /// the backup. Stop all programs first. Mail scheduled for later is not held.
    HoldRestored,
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
    tools: CommandTools,
    queue: Queue<SendJob>,
    redis: Redis,
    format: OutputFormat,
}

pub(super) async fn run(command: JobsCommand, format: OutputFormat) -> Result<(), CommandError> {
    let tools = JobTools::new(format).await?;
    match command {
        JobsCommand::List => tools.list().await,
        JobsCommand::Retry {
            message_id, chunk, ..
        } => {
            let selection = message_id.map_or(DeadLetterSelection::All, |message_id| {
                DeadLetterSelection::Of { message_id, chunk }
            });
            tools.retry(selection).await
        }
        JobsCommand::Drop(arguments) => tools.drop(arguments).await,
        JobsCommand::HoldRestored => tools.hold_restored().await,
    }
}

pub(super) async fn print_workers(format: OutputFormat) -> Result<(), CommandError> {
    let tools = CommandTools::new("workers").await?;
    let mut connection = tools.pool.acquire().await.or_fault("reach Postgres")?;
    let workers = lease::list_workers(&mut connection).await?;
    let head = ["WORKER", "STATE", "STARTED", "LEASED UNTIL", "CHUNKS"];
    let rows = workers.iter().map(|worker| {
        let state = if worker.is_dead { "dead" } else { "alive" };
        [
            worker.name.clone(),
            state.to_owned(),
            timestamp(worker.started_at),
            timestamp(worker.leased_until),
            worker.chunks.to_string(),
        ]
    });
    let to_json = |worker: &ListedWorker| {
        json!({
            "name": worker.name, "startedAt": timestamp(worker.started_at),
            "leasedUntil": timestamp(worker.leased_until), "isDead": worker.is_dead,
            "chunks": worker.chunks,
        })
    };
    format.print(
        || table(head, rows),
        || workers.iter().map(to_json).collect(),
    );
    Ok(())
}

impl JobTools {
    async fn new(format: OutputFormat) -> Result<Self, CommandError> {
        let tools = CommandTools::new("jobs").await?;
        let settings = &tools.settings;
        let redis = Redis::new(&settings.redis_url, &settings.redis_prefix)?;
        Ok(Self {
            queue: send_queue(&redis, tools.clock.clone()),
            redis,
            tools,
            format,
        })
    }

    async fn list(&self) -> Result<(), CommandError> {
        let mut connection = self.tools.pool.acquire().await.or_fault("reach Postgres")?;
        let dead_jobs = dead_letter::store::list(&mut connection, DEAD_JOBS_MAX).await?;
        self.format.print(
            || dead_jobs_table(&dead_jobs),
            || json!({ "deadJobs": dead_jobs.iter().map(dead_job_json).collect::<Value>() }),
        );
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
        let CommandTools {
            pool,
            settings,
            clock,
            ids,
            ..
        } = &self.tools;
        let mut transaction = db::begin(pool, "reach Postgres").await?;
        let settings = &settings.sending;
        let jobs =
            dead_letter::retry(&mut transaction, selection, settings, ids, clock.now()).await?;
        if let DeadLetterSelection::Of { message_id, chunk } = selection
            && jobs.is_empty()
        {
            let is_known = dead_letter::store::is_known(&mut transaction, message_id).await?;
            return Err(no_dead_job(message_id, chunk, is_known).into());
        }
        transaction.commit().await.or_fault("retry jobs")?;
        self.print_jobs(&jobs);
        if let Err(fault) = self.queue.push(&jobs).await {
            let cause = self.cause(&fault).await;
            eprintln!(
                "could not push the jobs to Redis; the scheduler or a worker will find them in Postgres: {cause}"
            );
        }
        Ok(())
    }

    async fn drop(&self, arguments: DropArguments) -> Result<(), CommandError> {
        let CommandTools {
            pool, clock, ids, ..
        } = &self.tools;
        let chunk = arguments.chunk;
        let mut dropped = Vec::new();
        for message_id in arguments.message_ids {
            let selection = DeadLetterSelection::Of { message_id, chunk };
            let mut transaction = db::begin(pool, "reach Postgres").await?;
            let found = dead_letter::discard(&mut transaction, selection, ids, clock.now()).await?;
            if found.is_empty() {
                let is_known = dead_letter::store::is_known(&mut transaction, message_id).await?;
                return Err(no_dead_job(message_id, chunk, is_known).into());
            }
            transaction.commit().await.or_fault("drop jobs")?;
            if self.format == OutputFormat::Text {
                for (job, recipients) in &found {
                    println!("{} {}: {recipients} recipients", job.message_id, job.chunk);
                }
            }
            dropped.extend(found);
        }
        let to_json = |(job, recipients): &(SendJob, usize)| {
            let mut shown = job_json(job);
            shown["recipients"] = json!(recipients);
            shown
        };
        let to_json = || json!({ "jobs": dropped.iter().map(to_json).collect::<Value>() });
        self.format.print(String::new, to_json);
        Ok(())
    }

    /// Leases of running workers would be taken away, so none may run.
    async fn hold_restored(&self) -> Result<(), CommandError> {
        let CommandTools {
            pool, clock, ids, ..
        } = &self.tools;
        let doing = "hold the queued mail";
        let mut transaction = db::begin(pool, doing).await?;
        let running = diagnosis::facts(&mut transaction).await?.processes;
        if running > 0 {
            return Err(format!(
                "{running} processes of Waypost use this database: stop all APIs, workers and schedulers first"
            )
            .into());
        }
        let jobs = dead_letter::hold_restored(&mut transaction, ids, clock.now()).await?;
        transaction.commit().await.or_fault(doing)?;
        self.print_jobs(&jobs);
        eprintln!(
            "{} jobs are held. Start the programs; then `waypost-api jobs list` shows the jobs, `jobs retry` sends them, and `jobs drop` fails their recipients",
            jobs.len()
        );
        Ok(())
    }

    fn print_jobs(&self, jobs: &[SendJob]) {
        let line = |job: &SendJob| format!("{} {}\n", job.message_id, job.chunk);
        self.format.print(
            || jobs.iter().map(line).collect(),
            || json!({ "jobs": jobs.iter().map(job_json).collect::<Value>() }),
        );
    }
}

fn job_json(job: &SendJob) -> Value {
    json!({ "messageId": job.message_id, "chunk": job.chunk, "organizationId": job.organization_id })
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

fn dead_jobs_table(dead_jobs: &[DeadLetter]) -> String {
    let head = [
        "MESSAGE",
        "CHUNK",
        "ORGANIZATION",
        "RECIPIENTS",
        "LOSSES",
        "DEAD SINCE",
        "REASON",
    ];
    let rows = dead_jobs.iter().map(|chunk| {
        [
            chunk.job.message_id.to_string(),
            chunk.job.chunk.to_string(),
            chunk.job.organization_id.to_string(),
            chunk.recipients.to_string(),
            chunk.losses.to_string(),
            timestamp(chunk.dead_since),
            chunk.reason.clone(),
        ]
    });
    table(head, rows)
}
