//! Waypost's programs as processes. They are started, killed, and started again after
//! they end, as a supervisor does it, from the folder of one version or another. Dropping
//! the fleet kills all processes.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::process::{Child, Command};
use tokio::time::Instant;

use crate::output::progress;

/// How often the supervisor checks for ended processes.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// How long after the end of a process its clients may still notice it.
const STOP_NOTICED: Duration = Duration::from_millis(200);
/// The scheduler's log messages when it becomes the leader and when it stops being it.
const LOG_LEADING: &str = "Became the leader";
const LOG_LEAD_LOST: &str = "No longer the leader";

/// The program of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Api,
    Worker,
    Scheduler,
}

impl Role {
    pub(crate) const ALL: [Self; 3] = [Self::Api, Self::Worker, Self::Scheduler];

    /// The name of its program.
    pub(crate) fn program(self) -> &'static str {
        match self {
            Self::Api => "waypost-api",
            Self::Worker => "waypost-worker",
            Self::Scheduler => "waypost-scheduler",
        }
    }
}

/// All processes.
#[derive(Debug, Default)]
pub(crate) struct Fleet {
    members: Vec<Member>,
}

/// One process; it gets a new pid with each start.
#[derive(Debug)]
struct Member {
    role: Role,
    name: String,
    arguments: &'static [&'static str],
    variables: HashMap<String, String>,
    log: PathBuf,
    /// Not started by [`Fleet::start`].
    is_spare: bool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    child: Option<Child>,
    /// Offset of the current process's first log line.
    log_from: usize,
    /// Killed, and not yet to be started again.
    is_down: bool,
    exits: usize,
    /// How often it ended by itself.
    failures: usize,
    stop: Stop,
    /// The folder of the program that was started last.
    binaries: PathBuf,
}

/// A graceful stop.
#[derive(Debug, Default, Clone, Copy)]
enum Stop {
    #[default]
    None,
    UnderWay,
    Ended(Instant),
}

impl Fleet {
    /// Adds a process, to be started by [`Fleet::start`].
    pub(crate) fn add(&mut self, role: Role, variables: HashMap<String, String>, logs: &Path) {
        self.push(role, variables, logs, false);
    }

    /// Adds a process that only [`Fleet::start_one`] starts.
    pub(crate) fn add_spare(
        &mut self,
        role: Role,
        variables: HashMap<String, String>,
        logs: &Path,
    ) {
        self.push(role, variables, logs, true);
    }

    fn push(
        &mut self,
        role: Role,
        variables: HashMap<String, String>,
        logs: &Path,
        is_spare: bool,
    ) {
        let nth = self.of(role).count() + 1;
        let name = format!("{} {nth}", &role.program()["waypost-".len()..]);
        self.members.push(Member {
            role,
            arguments: if role == Role::Api { &["serve"] } else { &[] },
            variables,
            log: logs.join(format!("{}.log", name.replace(' ', "-"))),
            name,
            is_spare,
            state: Mutex::default(),
        });
    }

    /// The number of processes of a role, without spare ones.
    pub(crate) fn count(&self, role: Role) -> usize {
        self.of(role).filter(|one| !one.is_spare).count()
    }

    /// Starts all but the spare ones, from this folder.
    pub(crate) fn start(&self, binaries: &Path) {
        for member in self.members.iter().filter(|one| !one.is_spare) {
            member.start_from(binaries);
        }
    }

    /// Starts one process, which must not run, from this folder.
    pub(crate) fn start_one(&self, role: Role, nth: usize, binaries: &Path) {
        self.member(role, nth).start_from(binaries);
    }

    /// Starts processes that ended by themselves, for as long as it is polled.
    pub(crate) async fn supervise(&self) {
        loop {
            for member in &self.members {
                if let Some(how) = member.ended_by_itself() {
                    progress(format!(
                        "{} ended by itself ({how}), starting it again",
                        member.name
                    ));
                    member.start();
                }
            }
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    }

    /// `kill -9` of the process of this role whose index `choose` returns, given their
    /// number. The process stays down until `meanwhile` ends.
    pub(crate) async fn kill(
        &self,
        role: Role,
        choose: impl FnOnce(usize) -> usize,
        meanwhile: impl Future<Output = ()>,
    ) {
        let all: Vec<&Member> = self.of(role).collect();
        let victim = all[choose(all.len())];
        self.kill_member(victim, meanwhile).await;
    }

    /// Kills the leading scheduler; all schedulers if none of them leads.
    pub(crate) async fn kill_leader(&self, meanwhile: impl Future<Output = ()>) {
        let leader = self.of(Role::Scheduler).find(|one| one.is_leader());
        if let Some(leader) = leader {
            return self.kill_member(leader, meanwhile).await;
        }
        for scheduler in self.of(Role::Scheduler) {
            self.kill_member(scheduler, std::future::ready(())).await;
        }
        meanwhile.await;
    }

    /// Sends SIGTERM to the API whose index `choose` returns, given their number, as a
    /// deployment does, and starts the API again when it has ended.
    pub(crate) async fn stop_api(&self, choose: impl FnOnce(usize) -> usize) {
        let nth = choose(self.of(Role::Api).count());
        let member = self.member(Role::Api, nth);
        if member.lock().is_down {
            return progress(format!("{} is down already", member.name));
        }
        self.stop(Role::Api, nth).await;
        member.start();
    }

    /// Sends SIGTERM to a process and waits for its end.
    pub(crate) async fn stop(&self, role: Role, nth: usize) {
        let member = self.member(role, nth);
        let Some(mut child) = member.take_child() else {
            return progress(format!("{} is down already", member.name));
        };
        let pid = child.id().expect("a child that was not awaited has a pid");
        progress(format!("SIGTERM to {} (pid {pid})", member.name));
        member.lock().stop = Stop::UnderWay;
        let signalled = Command::new("kill").arg(pid.to_string()).status().await;
        assert!(signalled.is_ok_and(|status| status.success()), "kill {pid}");
        child.wait().await.expect("a child process can be awaited");
        member.lock().stop = Stop::Ended(Instant::now());
    }

    /// Whether the graceful stop of an API cut a connection that broke just now.
    pub(crate) fn is_stopping(&self, api: usize) -> bool {
        let member = self.of(Role::Api).nth(api);
        member.is_some_and(|member| match member.lock().stop {
            Stop::None => false,
            Stop::UnderWay => true,
            Stop::Ended(at) => at.elapsed() < STOP_NOTICED,
        })
    }

    /// Whether it is a spare process that does not run.
    pub(crate) fn is_unused(&self, role: Role, nth: usize) -> bool {
        let member = self.of(role).nth(nth);
        member.is_some_and(|one| one.is_spare && !one.is_running())
    }

    /// How many processes were killed or ended by themselves.
    pub(crate) fn exits(&self) -> usize {
        self.members.iter().map(|one| one.lock().exits).sum()
    }

    /// How many processes ended by themselves.
    pub(crate) fn failures(&self) -> usize {
        self.members.iter().map(|one| one.lock().failures).sum()
    }

    /// The number of the scheduler that leads, if one does.
    pub(crate) fn leader(&self) -> Option<usize> {
        let mut schedulers = self.of(Role::Scheduler);
        schedulers.position(|one| one.is_running() && one.is_leader())
    }

    /// The log of a process since its last start.
    pub(crate) fn log(&self, role: Role, nth: usize) -> String {
        self.member(role, nth).log_since_start()
    }

    /// The lines of all logs with this level, each with the name of its process.
    pub(crate) fn lines_of_level(&self, level: &str) -> Vec<String> {
        let of_one = |member: &Member| {
            let log = std::fs::read(&member.log).unwrap_or_default();
            let log = String::from_utf8_lossy(&log).into_owned();
            let lines = log.lines().filter(|line| has_level(line, level));
            let lines = lines.map(|line| format!("{}: {line}", member.name));
            lines.collect::<Vec<_>>()
        };
        self.members.iter().flat_map(of_one).collect()
    }

    fn member(&self, role: Role, nth: usize) -> &Member {
        let member = self.of(role).nth(nth);
        member.expect("the fleet has this process")
    }

    async fn kill_member(&self, victim: &Member, meanwhile: impl Future<Output = ()>) {
        let Some(mut child) = victim.take_child() else {
            return progress(format!("{} is down already", victim.name));
        };
        let is_leader = if victim.is_leader() {
            ", the leader"
        } else {
            ""
        };
        let pid = child.id().unwrap_or_default();
        progress(format!("kill -9 of {} (pid {pid}{is_leader})", victim.name));
        child.kill().await.expect("a child process can be killed");
        meanwhile.await;
        victim.start();
    }

    fn of(&self, role: Role) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(move |one| one.role == role)
    }
}

impl Member {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start_from(&self, binaries: &Path) {
        self.lock().binaries = binaries.to_owned();
        self.start();
    }

    fn start(&self) {
        let mut state = self.lock();
        state.log_from = std::fs::metadata(&self.log).map_or(0, |metadata| metadata.len() as usize);
        let log = self.open_log();
        let errors = log.try_clone().expect("a file can be shared");
        let child = Command::new(state.binaries.join(self.role.program()))
            .args(self.arguments)
            .env_clear()
            .envs(&self.variables)
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            .kill_on_drop(true)
            .spawn();
        state.child = Some(child.expect("a program that was built can be started"));
        state.is_down = false;
    }

    fn open_log(&self) -> File {
        let mut log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.log)
            .expect("a log can be written");
        writeln!(log, "--- {} starts", self.name).expect("a log can be written");
        log
    }

    fn take_child(&self) -> Option<Child> {
        let mut state = self.lock();
        let child = state.child.take();
        state.stop = Stop::None;
        state.is_down = true;
        state.exits += usize::from(child.is_some());
        child
    }

    fn ended_by_itself(&self) -> Option<String> {
        let mut state = self.lock();
        if state.is_down {
            return None;
        }
        let status = state.child.as_mut()?.try_wait().ok()??;
        state.child = None;
        state.exits += 1;
        state.failures += 1;
        Some(status.to_string())
    }

    fn is_running(&self) -> bool {
        self.lock().child.is_some()
    }

    fn is_leader(&self) -> bool {
        let log = self.log_since_start();
        log.rfind(LOG_LEADING) > log.rfind(LOG_LEAD_LOST)
    }

    fn log_since_start(&self) -> String {
        let from = self.lock().log_from;
        let log = std::fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(log.get(from..).unwrap_or_default()).into_owned()
    }
}

/// Whether a line of a log, which begins with the time, has this level.
fn has_level(line: &str, level: &str) -> bool {
    line.split_whitespace().nth(1) == Some(level)
}
