//! A PostgreSQL of one test, which can be stopped without a checkpoint, stalled and
//! started again.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};

use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tokio::process::{Child, Command};

use crate::environment;
use crate::process::free_port;
use crate::wait::wait_until;

/// Runs a PostgreSQL program as the user under whom `make test` runs its servers.
const AS_SERVICE_USER: &str =
    r#". "$0"; find_postgres; program=$1; shift; as_service_user "$PG_BIN/$program" "$@""#;

/// A running or stopped server with one database.
#[derive(Debug)]
pub struct PostgresServer {
    data: PathBuf,
    port: u16,
    /// The name of its database.
    pub(crate) database: String,
    child: Option<Child>,
}

impl PostgresServer {
    /// Creates a cluster and starts it on a free port.
    pub async fn start() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let nth = NEXT.fetch_add(1, Ordering::Relaxed);
        let database = format!("waypost_it_own_{}_{nth}", std::process::id());
        let data = std::env::temp_dir().join(&database);
        let made = program("initdb")
            .arg("-D")
            .arg(&data)
            .args(["-U", "waypost", "--encoding=UTF8", "--locale=C"])
            .args(["--no-sync", "--auth=trust"])
            .stdout(Stdio::null())
            .status()
            .await;
        assert!(
            made.is_ok_and(|status| status.success()),
            "a cluster can be made"
        );
        let mut server = Self {
            data,
            port: free_port(),
            database,
            child: None,
        };
        server.resume().await;
        let mut admin = PgConnection::connect(&server.url_of("postgres"))
            .await
            .expect("a server that answers can be connected to");
        let create = format!("CREATE DATABASE \"{}\"", server.database);
        let no_sync = "ALTER SYSTEM SET fsync = off".to_owned();
        let reload = "SELECT pg_reload_conf()".to_owned();
        for statement in [no_sync, reload, create] {
            sqlx::query(AssertSqlSafe(statement))
                .execute(&mut admin)
                .await
                .expect("a database can be made");
        }
        server
    }

    /// The URL of its database.
    #[must_use]
    pub fn url(&self) -> String {
        self.url_of(&self.database)
    }

    fn url_of(&self, database: &str) -> String {
        format!("postgres://waypost@127.0.0.1:{}/{database}", self.port)
    }

    /// `pg_ctl stop -m immediate`: connections break, new ones are refused, and the next
    /// start recovers as after a crash.
    pub async fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            signal("-QUIT", &child);
            child.wait().await.expect("a server of ours can be awaited");
        }
    }

    /// Starts it again on the same port.
    pub async fn resume(&mut self) {
        let child = program("postgres")
            .arg("-D")
            .arg(&self.data)
            .args(["-p", &self.port.to_string()])
            .args(["-c", "listen_addresses=127.0.0.1"])
            .args(["-c", "unix_socket_directories="])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a server can be started");
        self.child = Some(child);
        let url = self.url_of("postgres");
        wait_until("PostgreSQL answers", async || {
            PgConnection::connect(&url).await.is_ok()
        })
        .await;
    }

    /// Starts it again as a standby: it serves reads and takes no writes.
    ///
    /// # Panics
    /// If it does not do that.
    pub async fn become_standby(&mut self) {
        self.stop().await;
        std::fs::write(self.data.join("standby.signal"), "").expect("a file can be made");
        self.resume().await;
    }

    /// Stalls it: connections stay open, new ones are accepted, and nothing gets a
    /// response.
    pub fn stall(&self) {
        if let Some(child) = &self.child {
            // First the parent, so that it starts no further processes.
            signal("-STOP", child);
            signal_children("-STOP", child);
        }
    }

    /// Stalls Waypost's open connections, as if a firewall had dropped their state: they
    /// get no response, and new connections work.
    pub async fn stall_connections(&self) {
        let mut admin = PgConnection::connect(&self.url())
            .await
            .expect("a server that answers can be connected to");
        let idle = "SELECT pid FROM pg_stat_activity \
                    WHERE application_name LIKE 'waypost%' AND state = 'idle'";
        let idle: Vec<i32> = sqlx::query_scalar(idle)
            .fetch_all(&mut admin)
            .await
            .expect("a server that answers says who is connected");
        assert!(!idle.is_empty(), "Waypost is connected");
        for process in idle {
            run("kill", &["-STOP", &process.to_string()]);
        }
    }

    /// Resumes it after a stall.
    pub fn wake(&self) {
        if let Some(child) = &self.child {
            signal_children("-CONT", child);
            signal("-CONT", child);
        }
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.wake();
        if let Some(child) = &self.child {
            signal("-QUIT", child);
        }
        // Best effort: the folder is in the directory for temporary files.
        let _left_over = std::fs::remove_dir_all(&self.data);
    }
}

/// A program of PostgreSQL, such as `pg_dump`. It runs as the user under whom `make test` runs its
/// servers, so it may not read and write the caller's files except as its input and output.
#[must_use]
pub fn postgres_program(name: &str) -> Command {
    program(name)
}

fn program(name: &str) -> Command {
    let scripts = environment::root().join("scripts/servers.sh");
    let mut command = Command::new("bash");
    command.args(["-c", AS_SERVICE_USER]).arg(scripts).arg(name);
    command.stdin(Stdio::null());
    command
}

fn signal(signal: &str, child: &Child) {
    let id = child.id().expect("the server has not ended").to_string();
    run("kill", &[signal, &id]);
}

/// Each connection has a process, and each process a session of its own.
fn signal_children(signal: &str, child: &Child) {
    let id = child.id().expect("the server has not ended").to_string();
    run("pkill", &[signal, "-P", &id]);
}

fn run(program: &str, arguments: &[&str]) {
    let done = std::process::Command::new(program).args(arguments).status();
    assert!(
        done.is_ok_and(|status| status.success()),
        "{program} {arguments:?} can be run"
    );
}
