//! A Redis of one test, which can be stopped, stalled, started, emptied and made to
//! refuse writes.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::{Child, Command};

use crate::environment;
use crate::process::free_port;
use crate::wait::wait_until;

/// A running or stopped server. It persists nothing: a stop empties it.
#[derive(Debug)]
pub struct RedisServer {
    port: u16,
    child: Option<Child>,
    folder: PathBuf,
}

/// Why a Redis that responds refuses writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// It is full, and evicts nothing.
    Full,
    Replica,
    CannotSave,
    /// It has fewer replicas than required.
    TooFewReplicas,
    /// Its ACL forbids writes.
    Forbidden,
    /// It requires a password that Waypost does not have.
    Password,
}

impl Refusal {
    /// All refusals.
    pub const ALL: [Self; 6] = [
        Self::Full,
        Self::Replica,
        Self::CannotSave,
        Self::TooFewReplicas,
        Self::Forbidden,
        Self::Password,
    ];

    /// The prefix of its errors.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Full => "OOM",
            Self::Replica => "READONLY",
            Self::CannotSave => "MISCONF",
            Self::TooFewReplicas => "NOREPLICAS",
            Self::Forbidden => "NOPERM",
            Self::Password => "NOAUTH",
        }
    }
}

/// The password that it requires in [`Refusal::Password`].
const PASSWORD: &str = "another-secret";
const ANSWER_MAX: Duration = Duration::from_secs(10);

impl RedisServer {
    /// Starts one on a free port.
    pub async fn start() -> Self {
        let port = free_port();
        let folder = format!("waypost-redis-{}-{port}", std::process::id());
        let mut server = Self {
            port,
            child: None,
            folder: std::env::temp_dir().join(folder),
        };
        server.resume().await;
        server
    }

    /// Its URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Stops it: connections break and new ones are refused.
    pub async fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().await.expect("a process of ours can be killed");
        }
    }

    /// Starts it again, empty, on the same port.
    pub async fn resume(&mut self) {
        let program = environment::redis_server();
        std::fs::create_dir_all(&self.folder).expect("a folder can be made");
        let child = Command::new(&program)
            .args(["--port", &self.port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no", "--dir"])
            .arg(&self.folder)
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| {
                panic!("{program} cannot be started: {error}; WAYPOST_TEST_REDIS_SERVER names it")
            });
        self.child = Some(child);
        wait_until("Redis answers", async || {
            self.try_command("PING").await.is_ok()
        })
        .await;
    }

    /// Stalls it: connections stay open, new ones are accepted, and nothing gets a
    /// response.
    pub async fn stall(&self) {
        self.signal("-STOP").await;
    }

    /// Resumes it after a stall.
    pub async fn wake(&self) {
        self.signal("-CONT").await;
    }

    async fn signal(&self, signal: &str) {
        let child = self.child.as_ref().expect("Redis runs");
        let id = child.id().expect("Redis has not ended").to_string();
        let sent = Command::new("kill").args([signal, &id]).status().await;
        assert!(
            sent.is_ok_and(|status| status.success()),
            "Redis can be signalled"
        );
    }

    /// Removes every key.
    pub async fn flush(&self) {
        self.try_command("FLUSHALL")
            .await
            .expect("Redis can be emptied");
    }

    /// Removes every script.
    pub async fn forget_scripts(&self) {
        self.try_command("SCRIPT FLUSH")
            .await
            .expect("scripts can be removed");
    }

    /// Makes it refuse writes, and still serve reads.
    ///
    /// # Panics
    /// If it does not do that.
    pub async fn refuse(&self, refusal: Refusal) {
        let commands: &[&str] = match refusal {
            Refusal::Full => &["CONFIG SET maxmemory 1"],
            Refusal::Replica => &["REPLICAOF 127.0.0.1 1"],
            Refusal::CannotSave => {
                std::fs::remove_dir_all(&self.folder).expect("its folder can be removed");
                &["CONFIG SET save 3600\u{a0}1", "BGSAVE"]
            }
            Refusal::TooFewReplicas => &["CONFIG SET min-replicas-to-write 1"],
            Refusal::Forbidden => &["ACL SETUSER default -@write"],
            Refusal::Password => &["CONFIG SET requirepass another-secret"],
        };
        for command in commands {
            let _refused_from_then_on = self.try_command(command).await;
        }
        if refusal == Refusal::Password {
            // Open connections are not asked for the password.
            let url = format!("redis://:{PASSWORD}@127.0.0.1:{}", self.port);
            let _itself = command_at(&url, "CLIENT KILL TYPE normal").await;
        }
        wait_until("Redis refuses writes", async || {
            let written = self.try_command("SET waypost-test 1").await;
            written.is_err_and(|error| error.code() == Some(refusal.code()))
        })
        .await;
    }

    /// Makes it accept writes again.
    ///
    /// # Panics
    /// If it does not do that.
    pub async fn accept_writes(&self, refusal: Refusal) {
        let command = match refusal {
            Refusal::Full => "CONFIG SET maxmemory 0",
            Refusal::Replica => "REPLICAOF NO ONE",
            Refusal::CannotSave => "CONFIG SET save \u{a0}",
            Refusal::TooFewReplicas => "CONFIG SET min-replicas-to-write 0",
            Refusal::Forbidden => "ACL SETUSER default +@all",
            Refusal::Password => "CONFIG SET requirepass \u{a0}",
        };
        let url = match refusal {
            Refusal::Password => format!("redis://:{PASSWORD}@127.0.0.1:{}", self.port),
            Refusal::Full
            | Refusal::Replica
            | Refusal::CannotSave
            | Refusal::TooFewReplicas
            | Refusal::Forbidden => self.url(),
        };
        let relented = command_at(&url, command).await;
        relented.expect("Redis can be told to take writes");
        self.try_command("SET waypost-test 1")
            .await
            .expect("Redis takes writes again");
    }

    async fn try_command(&self, command: &str) -> redis::RedisResult<()> {
        command_at(&self.url(), command).await
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        let _not_there = std::fs::remove_dir_all(&self.folder);
    }
}

/// Connects the harness to a Redis. The client's own time limit for an answer, 500 ms, is
/// too short on a busy machine.
///
/// # Errors
/// If the URL cannot be read, or Redis cannot be reached.
pub async fn redis_connection(url: &str) -> redis::RedisResult<redis::aio::MultiplexedConnection> {
    let limits = redis::AsyncConnectionConfig::new()
        .set_connection_timeout(Some(ANSWER_MAX))
        .set_response_timeout(Some(ANSWER_MAX));
    let client = redis::Client::open(url)?;
    client
        .get_multiplexed_async_connection_with_config(&limits)
        .await
}

/// Runs a command whose words are separated by spaces; a no-break space stands for a
/// space within a word, and alone for an empty word.
async fn command_at(url: &str, command: &str) -> redis::RedisResult<()> {
    let mut connection = redis_connection(url).await?;
    let words: Vec<String> = command
        .split(' ')
        .map(|word| match word {
            "\u{a0}" => String::new(),
            word => word.replace('\u{a0}', " "),
        })
        .collect();
    let mut command = redis::Cmd::new();
    command.arg(words);
    command.query_async(&mut connection).await
}
