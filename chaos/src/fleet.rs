//! Waypost's programs as processes. They are started, killed, and started again after
//! they end, as a supervisor does it. Dropping the fleet kills all processes.

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
    fn program(self) -> &'static str {
        match self {
            Self::Api => "waypost-api",
            Self::Worker => "waypost-worker",
            Self::Scheduler => "waypost-scheduler",
        }
    }
}

/// All processes.
#[derive(Debug)]
pub(crate) struct Fleet {
    binaries: PathBuf,
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
    stop: Stop,
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
    pub(crate) fn new(binaries: PathBuf) -> Self {
        Self {
            binaries,
            members: Vec::new(),
        }
    }

    /// Adds a process, to be started by [`Fleet::start`].
    pub(crate) fn add(&mut self, role: Role, variables: HashMap<String, String>, logs: &Path) {
        let nth = self.of(role).count() + 1;
        let name = format!("{} {nth}", &role.program()["waypost-".len()..]);
        self.members.push(Member {
            role,
            arguments: if role == Role::Api { &["serve"] } else { &[] },
            variables,
            log: logs.join(format!("{}.log", name.replace(' ', "-"))),
            name,
            state: Mutex::default(),
        });
    }

    /// Starts all of them.
    pub(crate) fn start(&self) {
        for member in &self.members {
            member.start(&self.binaries);
        }
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
                    member.start(&self.binaries);
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
        let all: Vec<&Member> = self.of(Role::Api).collect();
        let member = all[choose(all.len())];
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
        member.start(&self.binaries);
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

    /// How many processes were killed or ended by themselves.
    pub(crate) fn exits(&self) -> usize {
        self.members.iter().map(|one| one.lock().exits).sum()
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
        victim.start(&self.binaries);
    }

    fn of(&self, role: Role) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(move |one| one.role == role)
    }
}

impl Member {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&self, binaries: &Path) {
        let mut state = self.lock();
        state.log_from = std::fs::metadata(&self.log).map_or(0, |metadata| metadata.len() as usize);
        let log = self.open_log();
        let errors = log.try_clone().expect("a file can be shared");
        let child = Command::new(binaries.join(self.role.program()))
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
        Some(status.to_string())
    }

    fn is_leader(&self) -> bool {
        let from = self.lock().log_from;
        let log = std::fs::read(&self.log).unwrap_or_default();
        let log = String::from_utf8_lossy(log.get(from..).unwrap_or_default());
        log.rfind(LOG_LEADING) > log.rfind(LOG_LEAD_LOST)
    }
}
