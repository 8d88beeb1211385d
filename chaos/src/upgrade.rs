//! An upgrade under load, as `docs/operations.md` describes it: programs of an earlier version
//! serve; programs of this version start too early and wait; the migrations run; then the
//! processes are replaced one after the other, until every combination of old and new APIs,
//! workers and schedulers has served, and has been left in both directions.
//!
//! [`Upgrade`] does that. [`unexpected`] finds afterwards what an upgrade must not cause. What
//! happened to each mail is counted as after any other run.
//!
//! The next step follows when mail was accepted and delivered since the last one, so the pace
//! is that of the load.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use sqlx::{Connection as _, PgConnection};
use tokio::time::Instant;

use crate::faults::Targets;
use crate::fleet::{Fleet, Role};
use crate::load::{Load, LoadResult};
use crate::output::progress;
use crate::setup;
use crate::verification::Verification;

/// The kinds of processes in the order in which all their processes change the version: a walk
/// over all eight combinations and back to the first, then to the last. Each kind is the first,
/// the second and the third to change, and changes back while the schema stays new.
const MOVES: [Role; 11] = [
    Role::Api,
    Role::Worker,
    Role::Api,
    Role::Scheduler,
    Role::Api,
    Role::Worker,
    Role::Api,
    Role::Scheduler,
    Role::Scheduler,
    Role::Worker,
    Role::Api,
];
/// Time limit of each wait.
const WAIT_MAX: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Recipients that must be accepted, and delivered, between two steps.
const FLOW: u64 = 10;
/// The words of a process under a schema that is older than the process.
const NOT_READY: &str = "migrations are missing";
const SAYS: &str = "run `waypost-api migrate`";
/// What clients may be answered during an upgrade instead of success: repeat it.
const REPEAT: [&str; 3] = ["503", "409", "429"];

/// An upgrade of a fleet.
pub(crate) struct Upgrade<'a> {
    pub(crate) targets: &'a Targets,
    pub(crate) load: &'a Load,
    pub(crate) variables: &'a HashMap<String, String>,
    /// Where the spare processes tell whether they are ready, in the order of [`Role::ALL`].
    pub(crate) spares: &'a [String],
    /// Folders of the programs.
    pub(crate) old: &'a Path,
    pub(crate) new: &'a Path,
    pub(crate) database_url: &'a str,
}

impl Upgrade<'_> {
    /// Upgrades. The error says what was not as it must be.
    pub(crate) async fn run(&self) -> Result<(), String> {
        self.wait_for_flow("the old version on its schema").await?;
        self.start_too_early().await?;
        progress("the migrations of the new version run while the old version serves");
        setup::run_command(self.new, self.variables, &["migrate"]).await;
        progress("the migrations have run");
        for (role, url) in Role::ALL.into_iter().zip(self.spares) {
            let what = format!("the new {} is ready after the migrations", role.program());
            self.wait(&what, async || self.readiness(url).await.0 == 200)
                .await?;
        }
        self.wait_for_flow("old processes and new ones on the new schema")
            .await?;
        for role in Role::ALL {
            self.fleet().stop(role, self.fleet().count(role)).await;
        }
        self.replace_all().await
    }

    /// Programs of this version on the schema of the earlier one: they live, say what is
    /// missing, are not ready, and take no work.
    async fn start_too_early(&self) -> Result<(), String> {
        progress("processes of the new version start before the migrations");
        for (role, url) in Role::ALL.into_iter().zip(self.spares) {
            let (nth, name) = (self.fleet().count(role), role.program());
            self.fleet().start_one(role, nth, self.new);
            let what = format!("the new {name} answers before the migrations");
            self.wait(&what, async || self.status(url, "healthz").await == 200)
                .await?;
            let (status, body) = self.readiness(url).await;
            if status != 503 || !body.contains(NOT_READY) {
                return Err(format!("the new {name} answers /readyz by {status} {body}"));
            }
            let what = format!("the new {name} logs what to do");
            self.wait(&what, async || self.fleet().log(role, nth).contains(SAYS))
                .await?;
        }
        let (api, key) = (&self.spares[0], &self.load.tenants[0].key);
        let send = self.load.http.post(format!("{api}/v1/send"));
        let answer = send.bearer_auth(key).body("{}").send().await;
        let status = answer.map_or(0, |answer| answer.status().as_u16());
        if status != 503 {
            return Err(format!("the new API answers a send by {status}"));
        }
        self.wait_for_flow("the old version beside new processes that wait")
            .await?;
        let count = self.fleet().count(Role::Worker);
        let registered = self.workers().await.map_err(|error| error.to_string())?;
        if usize::try_from(registered) != Ok(count) {
            return Err(format!(
                "{registered} workers hold leases before the migrations, not {count}"
            ));
        }
        match self.fleet().leader() {
            Some(nth) if nth >= self.fleet().count(Role::Scheduler) => {
                Err("the new scheduler leads before the migrations".to_owned())
            }
            Some(_) | None => Ok(()),
        }
    }

    async fn replace_all(&self) -> Result<(), String> {
        let mut versions = [self.old; Role::ALL.len()];
        for role in MOVES {
            let place = Role::ALL.iter().position(|one| *one == role);
            let version = &mut versions[place.expect("all roles are listed")];
            *version = if *version == self.old {
                self.new
            } else {
                self.old
            };
            let binaries = *version;
            for nth in self.order(role) {
                self.replace(role, nth, binaries).await?;
            }
        }
        let worker = self.fleet().count(Role::Worker) - 1;
        self.replace(Role::Worker, worker, self.old).await?;
        progress("all processes but one worker have the new version");
        Ok(())
    }

    /// The order in which the processes of a role are replaced: the leading scheduler first, so
    /// that one of each version waits while one of the other leads.
    fn order(&self, role: Role) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.fleet().count(role)).collect();
        if role == Role::Scheduler {
            let leader = self.fleet().leader();
            order.sort_by_key(|nth| Some(*nth) != leader);
        }
        order
    }

    /// Stops a process as a deployment does, and starts it from this folder.
    async fn replace(&self, role: Role, nth: usize, binaries: &Path) -> Result<(), String> {
        let name = format!("{} {} of the {} version", role.program(), nth + 1, {
            if binaries == self.new { "new" } else { "old" }
        });
        self.fleet().stop(role, nth).await;
        if role == Role::Scheduler {
            // It would win the lead back if it started at once.
            self.wait("another scheduler leads", async || {
                self.fleet().leader().is_some()
            })
            .await?;
        }
        self.fleet().start_one(role, nth, binaries);
        match role {
            Role::Api => {
                let url = &self.load.apis[nth];
                let what = format!("{name} is ready");
                self.wait(&what, async || self.readiness(url).await.0 == 200)
                    .await?;
            }
            Role::Worker => {
                self.wait(&format!("{name} has started"), async || {
                    self.fleet().log(role, nth).contains("Worker started")
                })
                .await?;
            }
            Role::Scheduler => {
                let what = format!("{name} has started");
                self.wait(&what, async || {
                    self.fleet()
                        .log(role, nth)
                        .contains("Started the scheduler")
                })
                .await?;
                if self.fleet().leader() == Some(nth) {
                    return Err(format!("{name} leads though another one did"));
                }
            }
        }
        self.wait_for_flow(&name).await
    }

    /// Waits until mail was accepted and delivered from now on.
    async fn wait_for_flow(&self, during: &str) -> Result<(), String> {
        let accepted = || self.load.accepted() as u64;
        let delivered = || self.targets.simulator.captured_count();
        let before = (accepted(), delivered());
        self.wait(&format!("mail flows: {during}"), async || {
            accepted() >= before.0 + FLOW && delivered() >= before.1 + FLOW
        })
        .await?;
        progress(format!("mail flows: {during}"));
        Ok(())
    }

    async fn wait(&self, what: &str, is_so: impl AsyncFn() -> bool) -> Result<(), String> {
        let end = Instant::now() + WAIT_MAX;
        while !is_so().await {
            if Instant::now() > end {
                let late = format!("not within {} s: {what}", WAIT_MAX.as_secs());
                let logged = self.fleet().lines_of_level("ERROR");
                return Err(logged.last().map_or(late.clone(), |line| {
                    format!("{late}; the last error in a log: {line}")
                }));
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }

    async fn readiness(&self, url: &str) -> (u16, String) {
        match self.load.http.get(format!("{url}/readyz")).send().await {
            Ok(answer) => {
                let status = answer.status().as_u16();
                (status, answer.text().await.unwrap_or_default())
            }
            Err(error) => (0, error.to_string()),
        }
    }

    async fn status(&self, url: &str, path: &str) -> u16 {
        let answer = self.load.http.get(format!("{url}/{path}")).send().await;
        answer.map_or(0, |answer| answer.status().as_u16())
    }

    /// Workers that hold a lease.
    async fn workers(&self) -> sqlx::Result<i64> {
        let mut connection = PgConnection::connect(self.database_url).await?;
        let count = sqlx::query_scalar("SELECT count(*) FROM workers")
            .fetch_one(&mut connection)
            .await?;
        connection.close().await?;
        Ok(count)
    }

    fn fleet(&self) -> &Fleet {
        &self.targets.fleet
    }
}

/// What an upgrade must not cause, besides what any run is counted for.
pub(crate) fn unexpected(
    fleet: &Fleet,
    results: &LoadResult,
    verification: &Verification,
) -> Vec<String> {
    let mut all = fleet.lines_of_level("ERROR");
    for (why, count) in &results.repeated {
        let is_status = why.starts_with(|first: char| first.is_ascii_digit());
        if is_status && !REPEAT.iter().any(|status| why.starts_with(status)) {
            all.push(format!("{count} requests were answered by {why}"));
        }
    }
    if verification.explained > 0 {
        let count = verification.explained;
        all.push(format!(
            "{count} mails were sent again though no answer was lost"
        ));
    }
    if fleet.failures() > 0 {
        let count = fleet.failures();
        all.push(format!("{count} processes ended by themselves"));
    }
    all
}
