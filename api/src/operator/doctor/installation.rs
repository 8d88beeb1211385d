//! Checks of what is stored and what runs: keys, accounts, providers, scheduler, workers, mail
//! and webhooks.

use std::time::Duration;

use waypost_core::clock::Clock;
use waypost_core::config::{ExaminedSettings, Settings};
use waypost_core::db::{OrFault, PgConnection, PgPool};
use waypost_core::delivery::{dead_letter, lease};
use waypost_core::diagnosis::{self, FailingEndpoint};
use waypost_core::fault::Fault;
use waypost_core::provider::ProviderHosts;
use waypost_core::provider::transport::{Transport, TransportSettings};
use waypost_core::provider_account::pause;
use waypost_core::reencrypt;
use waypost_core::task_log;

use super::postgres_server::CurrentDatabase;
use super::report::{Report, Severity};
use crate::operator::output::timestamp;
use crate::operator::tasks::short;

/// How long a job may be due before it is reported.
const DUE_MAX: Duration = Duration::from_secs(300);
/// The most dead jobs that are counted.
const DEAD_JOBS_MAX: i64 = 1_000;
/// The most findings of one kind that are listed; the rest is counted.
const LISTED_MAX: usize = 20;

pub(super) async fn check(
    examined: &ExaminedSettings,
    settings: &Settings,
    database: &CurrentDatabase,
    report: &mut Report,
) {
    let has_keys = examined.is_right("WAYPOST_ENCRYPTION_KEYS");
    if has_keys {
        check_keys(settings, &database.pool, report).await;
    }
    let mut connection = match database.pool.acquire().await.or_fault("reach Postgres") {
        Ok(connection) => connection,
        Err(fault) => return report.failed("postgres", &fault),
    };
    // Before the first start nothing runs, and nothing is wrong with that.
    let severity = match database.is_running {
        true => Severity::Error,
        false => Severity::Warning,
    };
    let connection = &mut *connection;
    if has_keys && let Err(fault) = check_providers(settings, connection, report).await {
        report.failed("providers", &fault);
    }
    for (name, checked) in [
        ("accounts", check_accounts(connection, report).await),
        (
            "scheduler",
            check_scheduler(connection, severity, report).await,
        ),
        ("workers", check_workers(connection, severity, report).await),
        ("queue", check_queue(connection, severity, report).await),
        ("dead-jobs", check_dead_jobs(connection, report).await),
        ("webhooks", check_webhooks(connection, report).await),
    ] {
        if let Err(fault) = checked {
            report.failed(name, &fault);
        }
    }
}

async fn check_keys(settings: &Settings, pool: &PgPool, report: &mut Report) {
    const NAME: &str = "encryption-keys";
    match reencrypt::check(pool, &settings.sealer).await {
        Ok(unopened) if unopened.count() == 0 => report.ok(NAME, "open everything that is stored"),
        Ok(unopened) => report.found(
            Severity::Error,
            NAME,
            unopened.to_string(),
            "give this process the keys of the others, in the same order; a key that was removed must stay until `waypost-api rotate-keys` has run",
        ),
        Err(fault) => report.failed(NAME, &fault),
    }
}

/// Only their owners can repair them.
async fn check_accounts(connection: &mut PgConnection, report: &mut Report) -> Result<(), Fault> {
    const NAME: &str = "accounts";
    let paused = pause::store::list_paused(connection).await?;
    let failing = diagnosis::store::list_failing_accounts(connection).await?;
    if paused.is_empty() && failing.is_empty() {
        report.ok(NAME, "no provider refuses an account, and calls succeed");
    }
    for account in failing.iter().take(LISTED_MAX) {
        let (id, kind) = (account.id, account.provider_type);
        let answer = account.last_answer.as_deref().unwrap_or("no answer");
        let since = timestamp(account.failing_since);
        report.found(
            Severity::Warning,
            NAME,
            format!("calls to {kind} for provider account {id} fail since {since} ({answer})"),
            "its mail waits or goes through fallbacks; once the provider answers again, `POST /v1/providers/:id/validate` makes the waiting mail due at once",
        );
    }
    report_rest(report, NAME, failing.len());
    for (id, paused) in paused.iter().take(LISTED_MAX) {
        report.found(
            Severity::Warning,
            NAME,
            format!(
                "provider account {id} cannot send since {}: {}",
                timestamp(paused.since),
                paused.reason
            ),
            "its owner corrects it at the provider, then checks it (`POST /v1/providers/:id/validate`)",
        );
    }
    report_rest(report, NAME, paused.len());
    Ok(())
}

async fn check_providers(
    settings: &Settings,
    connection: &mut PgConnection,
    report: &mut Report,
) -> Result<(), Fault> {
    const NAME: &str = "providers";
    // A fault of the certificates is reported already.
    let Ok(transport) = Transport::new(&TransportSettings {
        smtp: settings.smtp.clone(),
        ..TransportSettings::default()
    }) else {
        return Ok(());
    };
    let hosts = ProviderHosts::from(settings.provider_base_urls.clone());
    let clock = Clock::system();
    let unreachable =
        diagnosis::list_unreachable(connection, &settings.sealer, &transport, &hosts, &clock)
            .await?;
    if unreachable.is_empty() {
        report.ok(NAME, "every provider of an account answers");
    }
    for provider in &unreachable {
        let (kind, host) = (provider.provider_type, &provider.host);
        let reason = provider.reason.trim_end_matches('.');
        report.found(
            Severity::Error,
            NAME,
            format!("{kind} at {host} cannot be reached from here ({reason})"),
            "check DNS, the firewall and the way out; Waypost uses no proxy",
        );
    }
    Ok(())
}

async fn check_scheduler(
    connection: &mut PgConnection,
    severity: Severity,
    report: &mut Report,
) -> Result<(), Fault> {
    const NAME: &str = "scheduler";
    let fix = "start waypost-scheduler, or see its log";
    let tasks = task_log::store::list(connection).await?;
    let late = tasks.iter().filter(|task| task.is_late());
    let late: Vec<String> = late
        .map(|task| match &task.last_error {
            Some(error) => format!("{} ({error})", task.name),
            None => task.name.clone(),
        })
        .collect();
    if tasks.is_empty() {
        report.found(severity, NAME, "no scheduler has run yet", fix);
    } else if late.len() == tasks.len() {
        report.found(severity, NAME, "no scheduler runs", fix);
    } else if late.is_empty() {
        report.ok(NAME, "runs its tasks in time");
    } else {
        let message = format!("late tasks: {}", late.join(", "));
        report.found(severity, NAME, message, "see the log of waypost-scheduler");
    }
    Ok(())
}

async fn check_workers(
    connection: &mut PgConnection,
    severity: Severity,
    report: &mut Report,
) -> Result<(), Fault> {
    const NAME: &str = "workers";
    let workers = lease::list_workers(connection).await?;
    let alive = workers.iter().filter(|worker| !worker.is_dead).count();
    match alive {
        0 => report.found(
            severity,
            NAME,
            "no worker runs, or all hang",
            "start waypost-worker; if it does not start, its log says why; if it runs, kill it first",
        ),
        1 => report.ok(NAME, "1 runs"),
        _ => report.ok(NAME, format!("{alive} run")),
    }
    Ok(())
}

async fn check_queue(
    connection: &mut PgConnection,
    severity: Severity,
    report: &mut Report,
) -> Result<(), Fault> {
    const NAME: &str = "queue";
    let backlog = diagnosis::store::find_backlog(connection).await?;
    let (jobs, oldest) = (backlog.jobs, short(backlog.oldest));
    if backlog.oldest <= DUE_MAX {
        let waiting = backlog.waiting;
        let message = format!("{jobs} jobs are due, and {waiting} wait for another try");
        report.ok(NAME, message);
        return Ok(());
    }
    report.found(
        severity,
        NAME,
        format!("{jobs} jobs are due and no worker has them, the oldest for {oldest}"),
        "start more workers, and see their log for what delays them",
    );
    Ok(())
}

async fn check_dead_jobs(connection: &mut PgConnection, report: &mut Report) -> Result<(), Fault> {
    const NAME: &str = "dead-jobs";
    let dead = dead_letter::store::list(connection, DEAD_JOBS_MAX).await?;
    let Some(first) = dead.first() else {
        report.ok(NAME, "there are none");
        return Ok(());
    };
    report.found(
        Severity::Error,
        NAME,
        format!(
            "{} jobs are dead, so their mail is not sent; the first because {}",
            dead.len(),
            first.reason
        ),
        "`waypost-api jobs list` lists them; remove the cause, then `jobs retry` or `jobs drop` them",
    );
    Ok(())
}

/// Only their owners can repair them.
async fn check_webhooks(connection: &mut PgConnection, report: &mut Report) -> Result<(), Fault> {
    const NAME: &str = "webhooks";
    let failing = diagnosis::store::list_failing_endpoints(connection).await?;
    if failing.is_empty() {
        report.ok(NAME, "no endpoint fails");
    }
    for endpoint in failing.iter().take(LISTED_MAX) {
        let FailingEndpoint { id, url, .. } = endpoint;
        let at = address(url);
        let since = timestamp(endpoint.failing_since);
        let error = endpoint.last_error.as_deref().unwrap_or("no answer");
        let state = match endpoint.is_active {
            true => "fails",
            false => "was switched off because it failed",
        };
        report.found(
            Severity::Warning,
            NAME,
            format!("webhook endpoint {id} at {at} {state} since {since} ({error})"),
            match endpoint.is_active {
                true => "its owner repairs the receiver",
                false => {
                    "its owner repairs the receiver, then switches the endpoint on (`isActive: true`)"
                }
            },
        );
    }
    report_rest(report, NAME, failing.len());
    Ok(())
}

/// The host of a URL, and its port if it names one. The rest may be secret.
fn address(url: &str) -> String {
    let url = url::Url::parse(url).ok();
    let parts = url
        .as_ref()
        .map(|url| (url.host_str().unwrap_or_default(), url.port()));
    match parts.unwrap_or_default() {
        (host, Some(port)) => format!("{host}:{port}"),
        (host, None) => host.to_owned(),
    }
}

fn report_rest(report: &mut Report, name: &'static str, found: usize) {
    if let Some(rest) = found.checked_sub(LISTED_MAX).filter(|rest| *rest > 0) {
        let fix = "see the dashboard of each organization";
        report.found(Severity::Warning, name, format!("and {rest} more"), fix);
    }
}
