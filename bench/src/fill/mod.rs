//! Fills a database with finished messages, as fast as PostgreSQL accepts them. Rows 9,
//! 12 and 16 measure with millions of messages, rows 10 and 11 with millions of
//! suppressions.
//!
//! `history` generates messages, `tables` turns a message into rows, `copy` writes the
//! rows, `indexes` drops the indexes before and creates them again after. Two connections
//! work in parallel, one table each. Triggers do not fire; this module counts instead
//! while it generates the rows, and rolls the counts up with the service's own statement.
//! The sections compare what they measure with sums over the rows themselves.
//!
//! A message always has its row, its recipient and its subject. One in `events_every`
//! also has events and an attempt. None has a body, as if the retention of bodies were
//! shorter than that of messages.

pub(crate) mod copy;
pub(crate) mod history;
mod indexes;
mod tables;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use sha2::{Digest as _, Sha256};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Row as _};
use tokio::task::JoinSet;
use uuid::Uuid;
use waypost_core::clock::Timestamp;
use waypost_core::db::organization_shard::OrganizationShard;

use copy::Target;
use history::{DAY_MS, History, Owner};
use tables::Table;

/// Length of the history.
const DAYS: i64 = 30;
/// The newest message is this much older than the fill.
const NEWEST_AGE_MS: i64 = 60 * 60 * 1_000;
/// Tables that are filled in parallel.
const CONNECTIONS: usize = 2;
/// Deltas that one statement rolls up.
const ROLLUP_BATCH: i64 = 50_000;
/// Deltas that stay, as between two roll-ups.
const DELTAS_LEFT: i64 = 1_000;
/// Settings of each connection that fills.
const SESSION: &str = "SET maintenance_work_mem = '1GB'; SET max_parallel_maintenance_workers = 0;
    SET statement_timeout = 0; SET lock_timeout = 0; SET session_replication_role = replica";

/// How much to fill in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    pub(crate) messages: u64,
    /// One message in this many has events and attempts.
    pub(crate) events_every: u64,
}

/// Fills an empty, migrated database with the history of these organizations. There must
/// be at least three: the first gets a fifth of all messages, the second half of them.
pub(crate) async fn fill(
    url: &str,
    organizations: &[Uuid],
    size: Size,
    now: Timestamp,
) -> sqlx::Result<History> {
    let mut connection = connect(url).await?;
    let history = History {
        owners: owners(&mut connection, organizations).await?,
        messages: size.messages,
        events_every: size.events_every,
        first_ms: now.timestamp_millis() - DAYS * DAY_MS,
        span_ms: DAYS * DAY_MS - NEWEST_AGE_MS,
    };
    sqlx::query("SELECT waypost_create_partitions($1, 3)")
        .bind(now - chrono::TimeDelta::days(DAYS))
        .execute(&mut connection)
        .await?;
    let began = Instant::now();
    fill_tables(url, &history).await?;
    fill_subjects(&mut connection).await?;
    let counting = Instant::now();
    count(&mut connection, &history).await?;
    print_elapsed("counters and roll-ups", counting);
    sqlx::raw_sql("CHECKPOINT").execute(&mut connection).await?;
    let what = format!("{} messages filled in, total", size.messages);
    print_elapsed(&what, began);
    connection.close().await?;
    Ok(history)
}

/// Gives an organization this many suppressions, of [`suppressed_address`], and removes
/// all others.
pub(crate) async fn fill_suppressions(
    url: &str,
    organization: Uuid,
    count: u64,
    now: Timestamp,
) -> sqlx::Result<()> {
    let began = Instant::now();
    let mut connection = connect(url).await?;
    let dropped = indexes::drop_all(&mut connection, "suppressions").await?;
    let target = Target {
        table: "suppressions",
        columns: "id, organization_id, email_hash, source, created_at",
    };
    let first_ms = now.timestamp_millis() - DAYS * DAY_MS;
    copy::copy(&mut connection, target, 0..count, |rows, number| {
        let at_ms = first_ms + i64::try_from(number >> 8).unwrap_or_default();
        rows.row(5);
        rows.uuid(history::uuid_v7(at_ms, history::split_mix(number)));
        rows.uuid(organization);
        rows.bytes(&Sha256::digest(suppressed_address(number)));
        rows.text("IMPORT");
        rows.time(at_ms);
    })
    .await?;
    print_elapsed("suppressions: rows", began);
    for index in dropped {
        let began = Instant::now();
        indexes::create(&mut connection, &index).await?;
        print_elapsed(&format!("suppressions: {}", index.name), began);
    }
    sqlx::raw_sql("DELETE FROM suppression_filters")
        .execute(&mut connection)
        .await?;
    sqlx::query("INSERT INTO suppression_filters (organization_id, entries) VALUES ($1, $2)")
        .bind(organization)
        .bind(i64::try_from(count).unwrap_or(i64::MAX))
        .execute(&mut connection)
        .await?;
    sqlx::raw_sql("ANALYZE suppressions")
        .execute(&mut connection)
        .await?;
    sqlx::raw_sql("CHECKPOINT").execute(&mut connection).await?;
    print_elapsed(&format!("{count} suppressions filled in, total"), began);
    connection.close().await
}

/// The suppressed address with this number.
pub(crate) fn suppressed_address(number: u64) -> String {
    format!("gone-{number}@example.com")
}

async fn connect(url: &str) -> sqlx::Result<PgConnection> {
    let mut connection = PgConnection::connect(url).await?;
    sqlx::raw_sql(SESSION).execute(&mut connection).await?;
    Ok(connection)
}

/// The organizations with accounts, domains and templates. Only the types of the accounts
/// are stored, as if the accounts themselves had been deleted.
async fn owners(connection: &mut PgConnection, ids: &[Uuid]) -> sqlx::Result<Vec<Owner>> {
    const TYPES: [&str; 4] = ["SENDGRID", "POSTMARK", "MAILGUN", "SES"];
    let mut owners = Vec::new();
    for (nth_owner, id) in ids.iter().enumerate() {
        // The organization of the metrics queries has something to break down.
        let (accounts, domains, templates) = match nth_owner {
            0 => (4, 5, 12),
            1 => (2, 2, 5),
            _ => (1, 1, 3),
        };
        let own = |kind: u64, nth: usize| {
            let random = history::split_mix(((nth_owner as u64) << 16) | (kind << 8) | nth as u64);
            Uuid::from_u128((u128::from(random) << 64) | u128::from(history::split_mix(random)))
        };
        let owner = Owner {
            id: *id,
            accounts: (0..accounts).map(|nth| (own(1, nth), TYPES[nth])).collect(),
            domains: (0..domains)
                .map(|nth| format!("mail{nth}.of{nth_owner}.example"))
                .collect(),
            templates: (0..templates).map(|nth| own(2, nth)).collect(),
        };
        for (account, kind) in &owner.accounts {
            sqlx::query(
                "INSERT INTO provider_account_types (provider_account_id, provider_type)
                 VALUES ($1, $2::provider_type)
                 ON CONFLICT DO NOTHING",
            )
            .bind(account)
            .bind(kind)
            .execute(&mut *connection)
            .await?;
        }
        owners.push(owner);
    }
    Ok(owners)
}

/// Fills the tables, [`CONNECTIONS`] of them in parallel.
async fn fill_tables(url: &str, history: &History) -> sqlx::Result<()> {
    let waiting = Arc::new(Mutex::new(VecDeque::from(Table::ALL)));
    let mut work = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let (waiting, history, url) = (Arc::clone(&waiting), history.clone(), url.to_owned());
        work.spawn(async move {
            let mut connection = connect(&url).await?;
            while let Some(table) = next(&waiting) {
                fill_table(&mut connection, &history, table).await?;
            }
            connection.close().await
        });
    }
    work.join_all().await.into_iter().collect()
}

fn next(waiting: &Mutex<VecDeque<Table>>) -> Option<Table> {
    waiting
        .lock()
        .expect("no task panics while it holds the lock")
        .pop_front()
}

async fn fill_table(
    connection: &mut PgConnection,
    history: &History,
    table: Table,
) -> sqlx::Result<()> {
    let name = table.name();
    let began = Instant::now();
    let dropped = indexes::drop_all(connection, name).await?;
    let mut copied = 0;
    for partition in partitions(connection, name).await? {
        let numbers = history.first_from(partition.from_ms)..history.first_from(partition.to_ms);
        if numbers.is_empty() {
            continue;
        }
        let occupied = format!("SELECT EXISTS (SELECT FROM {})", partition.name);
        let occupied: bool = sqlx::query_scalar(AssertSqlSafe(occupied))
            .fetch_one(&mut *connection)
            .await?;
        assert!(
            !occupied,
            "{} is not empty, and would be truncated",
            partition.name
        );
        let target = Target {
            table: &partition.name,
            columns: table.columns(),
        };
        copied += copy::copy(connection, target, numbers, |rows, number| {
            table.write(rows, history, &history.message(number));
        })
        .await?;
    }
    print_elapsed(&format!("{name}: {copied} rows"), began);
    for index in dropped {
        let began = Instant::now();
        indexes::create(connection, &index).await?;
        print_elapsed(&format!("{name}: {}", index.name), began);
    }
    let analyze = format!("ANALYZE {name}");
    sqlx::raw_sql(AssertSqlSafe(analyze))
        .execute(&mut *connection)
        .await?;
    Ok(())
}

/// Fills the index of subjects and labels from the messages, as the service does.
async fn fill_subjects(connection: &mut PgConnection) -> sqlx::Result<()> {
    let began = Instant::now();
    let dropped = indexes::drop_all(connection, "message_subjects").await?;
    sqlx::raw_sql(
        "SET jit = off; SET max_parallel_workers_per_gather = 0;
         INSERT INTO message_subjects (organization_id, message_id, subject, labels)
         SELECT m.organization_id, m.id, lower(m.subject), l.labels
         FROM messages m
         CROSS JOIN LATERAL (SELECT labels FROM message_labels WHERE message_id = m.id LIMIT 1) l",
    )
    .execute(&mut *connection)
    .await?;
    print_elapsed("message_subjects: rows", began);
    for index in dropped {
        let began = Instant::now();
        indexes::create(connection, &index).await?;
        print_elapsed(&format!("message_subjects: {}", index.name), began);
    }
    sqlx::raw_sql("ANALYZE message_subjects")
        .execute(connection)
        .await?;
    Ok(())
}

/// A partition, and the range of its messages' times.
struct Partition {
    name: String,
    from_ms: i64,
    to_ms: i64,
}

async fn partitions(connection: &mut PgConnection, table: &str) -> sqlx::Result<Vec<Partition>> {
    let rows = sqlx::query(
        "SELECT c.relname AS name, b.bounds[1]::uuid AS low, b.bounds[2]::uuid AS high
         FROM pg_inherits i
         JOIN pg_class c ON c.oid = i.inhrelid
         CROSS JOIN LATERAL (
             SELECT regexp_match(pg_get_expr(c.relpartbound, c.oid), 'FROM \\(''(.*)''\\) TO \\(''(.*)''\\)') AS bounds
         ) b
         WHERE i.inhparent = $1::regclass AND b.bounds IS NOT NULL
         ORDER BY low",
    )
    .bind(table)
    .fetch_all(connection)
    .await?;
    let time = |id: Uuid| i64::try_from(id.as_u128() >> 80).unwrap_or_default();
    let partitions = rows.iter().map(|row| Partition {
        name: row.get("name"),
        from_ms: time(row.get("low")),
        to_ms: time(row.get("high")),
    });
    Ok(partitions.collect())
}

/// Quarter of an hour, organization, provider account, domain, template, tag, and the counter
/// that is counted.
type DeltaKey = (i64, usize, usize, usize, Option<usize>, &'static str, usize);

/// Inserts the counts that the service's triggers would have inserted.
async fn count(connection: &mut PgConnection, history: &History) -> sqlx::Result<()> {
    let mut by_hour: HashMap<(usize, &str, i64), i64> = HashMap::new();
    let mut deltas: BTreeMap<DeltaKey, i64> = BTreeMap::new();
    for number in 0..history.messages {
        let message = history.message(number);
        let hour = history::hour(message.accepted_ms);
        *by_hour
            .entry((message.owner, message.status.name(), hour))
            .or_default() += 1;
        for (name, at) in message.events() {
            let Some(column) = counter_column(name) else {
                continue;
            };
            let key = (
                history::quarter(at),
                message.owner,
                message.account,
                message.domain,
                message.template,
                message.tag(),
                column,
            );
            *deltas.entry(key).or_default() += 1;
        }
    }
    insert_counts(connection, history, &by_hour).await?;
    insert_deltas(connection, history, &deltas).await?;
    loop {
        let left: i64 = sqlx::query_scalar("SELECT count(*) FROM metric_deltas")
            .fetch_one(&mut *connection)
            .await?;
        let surplus = (left - DELTAS_LEFT).min(ROLLUP_BATCH);
        if surplus <= 0 {
            break;
        }
        let folded =
            waypost_core::metrics::store::roll_up(connection, OrganizationShard::WHOLE, surplus)
                .await;
        folded.expect("what was counted can be folded");
    }
    for table in [
        "metric_deltas",
        "metric_rollups",
        "metric_days",
        "metric_keys",
        "message_counts",
        "message_hours",
    ] {
        let vacuum = AssertSqlSafe(format!("VACUUM ANALYZE {table}"));
        sqlx::raw_sql(vacuum).execute(&mut *connection).await?;
    }
    Ok(())
}

/// Inserts the counts that the scheduler would have rolled up.
async fn insert_counts(
    connection: &mut PgConnection,
    history: &History,
    by_hour: &HashMap<(usize, &str, i64), i64>,
) -> sqlx::Result<()> {
    let organizations = by_hour
        .keys()
        .map(|(owner, _, _)| history.owners[*owner].id);
    let statuses = by_hour.keys().map(|(_, status, _)| (*status).to_owned());
    let hours = by_hour.keys().map(|(_, _, hour)| {
        Timestamp::from_timestamp_millis(*hour).expect("an hour of this history")
    });
    sqlx::query(
        "INSERT INTO message_hours (organization_id, status, hour, count)
         SELECT * FROM UNNEST($1::uuid[], $2::message_status[], $3::timestamptz[], $4::bigint[])",
    )
    .bind(organizations.collect::<Vec<_>>())
    .bind(statuses.collect::<Vec<_>>())
    .bind(hours.collect::<Vec<_>>())
    .bind(by_hour.values().copied().collect::<Vec<_>>())
    .execute(&mut *connection)
    .await?;
    sqlx::query(
        "INSERT INTO message_counts (organization_id, status, count)
         SELECT organization_id, status, sum(count) FROM message_hours GROUP BY organization_id, status",
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// The index of the counter column of an event, if the event is counted.
fn counter_column(event: &str) -> Option<usize> {
    [
        "SENT",
        "DELIVERED",
        "OPENED",
        "CLICKED",
        "BOUNCED",
        "COMPLAINED",
    ]
    .iter()
    .position(|counted| *counted == event)
}

async fn insert_deltas(
    connection: &mut PgConnection,
    history: &History,
    deltas: &BTreeMap<DeltaKey, i64>,
) -> sqlx::Result<()> {
    let target = Target {
        table: "metric_deltas",
        columns: "quarter, organization_id, account, domain, template, tags, recipient_domain, sent_in, delivered_in,
                  sent, delivered, opened, clicked, bounced, complained, unsubscribed",
    };
    let mut deltas = deltas.iter();
    let count = deltas.len() as u64;
    copy::copy(connection, target, 0..count, |rows, _| {
        let ((quarter, owner, account, domain, template, tag, counted), number) =
            deltas.next().expect("as many as were counted");
        let owner = &history.owners[*owner];
        rows.row(16);
        rows.time(*quarter);
        rows.uuid(owner.id);
        rows.text(&owner.accounts[*account].0.to_string());
        rows.text(&owner.domains[*domain]);
        match template {
            Some(template) => rows.text(&owner.templates[*template].to_string()),
            None => rows.text(""),
        }
        rows.text_array(tag);
        rows.text(history::RECIPIENT_DOMAIN);
        for (column, took) in [history::SENT_IN, history::DELIVERED_IN].iter().enumerate() {
            if column == *counted {
                rows.smallint(*took);
            } else {
                rows.null();
            }
        }
        for column in 0..7 {
            rows.bigint(if column == *counted { *number } else { 0 });
        }
    })
    .await?;
    Ok(())
}

fn print_elapsed(what: &str, since: Instant) {
    println!(
        "             {:6.1} s  {what}",
        since.elapsed().as_secs_f64()
    );
}
