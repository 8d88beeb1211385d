//! Waypost's programs as processes, which tests kill, terminate, or run to their end.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, Command};

use crate::environment;
use crate::wait::WAIT_MAX;

/// Lines of a process's log that are printed if its test fails.
const LOG_LINES_SHOWN: usize = 40;

/// Starts a program with a low limit of open files, as service managers do.
const AS_A_SERVICE: &str = r#"ulimit -S -n 256 && exec "$0" "$@""#;

/// A program of Waypost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// The API, and the operator's commands.
    Api,
    Worker,
    Scheduler,
    /// SMTP submission.
    Smtp,
}

/// A running process. Dropping it kills it.
#[derive(Debug)]
pub struct Process {
    program: Program,
    child: Child,
    log: PathBuf,
}

/// The result of a program that ran to its end.
#[derive(Debug)]
pub struct Finished {
    /// Whether it exited with status 0.
    pub success: bool,
    pub stdout: String,
    pub stderr: String,
}

impl Program {
    fn name(self) -> &'static str {
        match self {
            Self::Api => "waypost-api",
            Self::Worker => "waypost-worker",
            Self::Scheduler => "waypost-scheduler",
            Self::Smtp => "waypost-smtp",
        }
    }

    fn command(self, variables: &HashMap<String, String>) -> Command {
        let path = environment::binaries().join(self.name());
        assert!(
            path.exists(),
            "{} is missing: `cargo build --bins` makes it",
            path.display()
        );
        let mut command = Command::new("sh");
        command
            .args(["-c", AS_A_SERVICE])
            .arg(path)
            .env_clear()
            .envs(environment::inherited())
            .envs(variables)
            .kill_on_drop(true);
        command
    }

    /// Runs it to its end.
    ///
    /// # Panics
    /// If it cannot be started or does not end in time.
    pub async fn run(self, arguments: &[&str], variables: &HashMap<String, String>) -> Finished {
        let mut command = self.command(variables);
        let running = command.args(arguments).stdin(Stdio::null()).output();
        let output = tokio::time::timeout(WAIT_MAX, running).await;
        let output =
            output.unwrap_or_else(|_| panic!("{} {arguments:?} does not end", self.name()));
        let output = output.expect("a program that is there can be started");
        Finished {
            success: output.status.success(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Runs it to its end with this text on standard input.
    ///
    /// # Panics
    /// If it cannot be started or does not end in time.
    pub async fn run_with_input(
        self,
        arguments: &[&str],
        variables: &HashMap<String, String>,
        input: &str,
    ) -> Finished {
        let mut command = self.command(variables);
        command
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .expect("a program that is there can be started");
        let mut stdin = child.stdin.take().expect("standard input is a pipe");
        // A program that does not read it may have ended.
        let _ = stdin.write_all(input.as_bytes()).await;
        drop(stdin);
        let running = child.wait_with_output();
        // It may read thousands of objects.
        let output = tokio::time::timeout(WAIT_MAX * 6, running).await;
        let output =
            output.unwrap_or_else(|_| panic!("{} {arguments:?} does not end", self.name()));
        let output = output.expect("a program that is there can be started");
        Finished {
            success: output.status.success(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Starts it.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn spawn(self, arguments: &[&str], variables: &HashMap<String, String>) -> Process {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let nth = NEXT.fetch_add(1, Ordering::Relaxed);
        let log = std::env::temp_dir().join(format!("waypost-it-{}-{nth}.log", std::process::id()));
        let file = std::fs::File::create(&log).expect("a log can be written");
        let errors = file.try_clone().expect("a file can be shared");
        let mut command = self.command(variables);
        command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(errors);
        let child = command
            .spawn()
            .expect("a program that is there can be started");
        Process {
            program: self,
            child,
            log,
        }
    }
}

impl Process {
    /// `kill -9`.
    pub async fn kill(&mut self) {
        self.child
            .kill()
            .await
            .expect("a process of ours can be killed");
    }

    /// SIGTERM; waits for the end.
    ///
    /// # Panics
    /// If it does not stop in time.
    pub async fn terminate(&mut self) -> ExitStatus {
        let id = self.id().to_string();
        let asked = Command::new("kill").args(["-TERM", &id]).status().await;
        assert!(
            asked.is_ok_and(|status| status.success()),
            "the process can be signalled"
        );
        let ended = tokio::time::timeout(WAIT_MAX, self.child.wait()).await;
        ended
            .expect("a process that is told to stop stops in time")
            .expect("a process of ours can be awaited")
    }

    /// Stalls it with SIGSTOP.
    pub fn stall(&self) {
        self.signal("-STOP");
    }

    /// Resumes it after a stall.
    pub fn wake(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let id = self.id().to_string();
        let sent = std::process::Command::new("kill")
            .args([signal, &id])
            .status();
        assert!(
            sent.is_ok_and(|status| status.success()),
            "the process can be signalled"
        );
    }

    /// Whether it has ended, for whatever reason.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Its process id.
    ///
    /// # Panics
    /// If it has ended.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id().expect("the process still runs")
    }

    /// Its resident memory, in bytes.
    ///
    /// # Panics
    /// If it has ended.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.status_bytes("VmRSS:")
    }

    /// The most resident memory that it has had, in bytes.
    ///
    /// # Panics
    /// If it has ended.
    #[must_use]
    pub fn memory_peak_bytes(&self) -> u64 {
        self.status_bytes("VmHWM:")
    }

    fn status_bytes(&self, name: &str) -> u64 {
        let id = self.id();
        let status = std::fs::read_to_string(format!("/proc/{id}/status"));
        let status = status.expect("the system tells of its processes");
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok());
        kibibytes.map_or(0, |kibibytes: u64| kibibytes << 10)
    }

    /// Its soft and hard limits of open files.
    ///
    /// # Panics
    /// If it has ended.
    #[must_use]
    pub fn open_files_max(&self) -> (u64, u64) {
        let id = self.id();
        let limits = std::fs::read_to_string(format!("/proc/{id}/limits"));
        let limits = limits.expect("the system tells of its processes");
        let line = limits
            .lines()
            .find_map(|line| line.strip_prefix("Max open files"));
        let mut numbers = line.into_iter().flat_map(str::split_whitespace);
        let mut next = || numbers.next().and_then(|number| number.parse().ok());
        next()
            .zip(next())
            .expect("open files have limits on this system")
    }

    /// Its log so far.
    #[must_use]
    pub fn log(&self) -> String {
        let bytes = std::fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<&str> = log.lines().rev().take(LOG_LINES_SHOWN).collect();
            eprintln!("--- the end of the log of {}", self.program.name());
            lines.iter().rev().for_each(|line| eprintln!("{line}"));
        }
        let _already_gone = std::fs::remove_file(&self.log);
    }
}

/// A port that is probably free.
///
/// # Panics
/// If the loopback interface has none.
#[must_use]
pub fn free_port() -> u16 {
    let listener =
        std::net::TcpListener::bind("127.0.0.1:0").expect("the loopback interface has free ports");
    listener
        .local_addr()
        .expect("a listener has an address")
        .port()
}
