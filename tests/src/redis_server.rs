//! A Redis that one test has to itself, to be stopped, stalled, started and
//! emptied.

use std::process::Stdio;

use tokio::process::{Child, Command};

use crate::environment;
use crate::process::free_port;
use crate::wait::wait_until;

/// A running or stopped server. It keeps nothing: stopped is emptied.
#[derive(Debug)]
pub struct RedisServer {
    port: u16,
    child: Option<Child>,
}

impl RedisServer {
    /// Starts one on a free port.
    pub async fn start() -> Self {
        let mut server = Self {
            port: free_port(),
            child: None,
        };
        server.resume().await;
        server
    }

    /// How to connect to it.
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
        let child = Command::new(&program)
            .args(["--port", &self.port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no", "--dir", "/tmp"])
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

    /// Lets it hang: connections stay and new ones are taken, and nothing is
    /// answered.
    pub async fn stall(&self) {
        self.signal("-STOP").await;
    }

    /// Lets it go on after it hung.
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

    async fn try_command(&self, command: &str) -> redis::RedisResult<()> {
        let client = redis::Client::open(self.url())?;
        let mut connection = client.get_multiplexed_async_connection().await?;
        let mut words = command.split(' ');
        let mut command = redis::cmd(words.next().unwrap_or_default());
        command.arg(words.collect::<Vec<_>>());
        command.query_async(&mut connection).await
    }
}
