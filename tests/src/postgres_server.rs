//! A PostgreSQL that one test has to itself, to be stopped without a word, stalled
//! and started again.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};

use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tokio::process::{Child, Command};

use crate::environment;
use crate::process::free_port;
use crate::wait::wait_until;

/// Runs a program of PostgreSQL as the user that `make test` runs its servers as.
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
    /// Makes a cluster and starts it on a free port.
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
        let statement = format!("CREATE DATABASE \"{}\"", server.database);
        sqlx::query(AssertSqlSafe(statement))
            .execute(&mut admin)
            .await
            .expect("a database can be made");
        server
    }

    /// How to connect to its database.
    #[must_use]
    pub fn url(&self) -> String {
        self.url_of(&self.database)
    }

    fn url_of(&self, database: &str) -> String {
        format!("postgres://waypost@127.0.0.1:{}/{database}", self.port)
    }

    /// `pg_ctl stop -m immediate`: connections break, new ones are refused, and the
    /// next start recovers as after a crash.
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
            .args(["-c", "fsync=off"])
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

    /// Lets it hang: connections stay and new ones are taken, and nothing is
    /// answered.
    pub fn stall(&self) {
        if let Some(child) = &self.child {
            // The parent first, which makes no new ones then.
            signal("-STOP", child);
            signal_children("-STOP", child);
        }
    }

    /// Lets the connections that Waypost has to it hang, as where something between the
    /// machines has forgotten them: nothing comes back over them, and new ones are served.
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

    /// Lets it go on after it hung.
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
        // Best effort: what is left lies below the folder for what is temporary.
        let _left_over = std::fs::remove_dir_all(&self.data);
    }
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
