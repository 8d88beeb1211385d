//! The PostgreSQL and the Redis of the run. `scripts/chaos.sh` starts them and stops them
//! at the end; this module crashes, stops and restarts them with the same shell functions
//! (`scripts/servers.sh`).

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::sync::{Mutex, Semaphore};

/// Scripts that run concurrently: one for each server.
const SCRIPTS_MAX: u32 = 2;
const REDIS_ANSWER_MAX: Duration = Duration::from_secs(30);
static SCRIPTS: Semaphore = Semaphore::const_new(SCRIPTS_MAX as usize);

/// Both servers.
#[derive(Debug)]
pub(crate) struct Servers {
    /// The state directory of the scripts.
    state: PathBuf,
    redis_url: String,
    /// Held while the server is down, so that two faults do not stop the same server.
    postgres: Mutex<()>,
    redis: Mutex<()>,
}

impl Servers {
    pub(crate) fn new(state: PathBuf, redis_url: String) -> Self {
        Self {
            state,
            redis_url,
            postgres: Mutex::new(()),
            redis: Mutex::new(()),
        }
    }

    /// Stops PostgreSQL without a checkpoint (`pg_ctl stop -m immediate`) and starts it
    /// again with crash recovery.
    pub(crate) async fn crash_postgres(&self) {
        let _guard = self.postgres.lock().await;
        self.run("crash-postgres").await;
        self.run("start-postgres").await;
    }

    /// Kills Redis, waits for `meanwhile` to end, and starts it again, empty.
    pub(crate) async fn stop_redis(&self, meanwhile: impl Future<Output = ()>) {
        let _guard = self.redis.lock().await;
        self.run("kill-redis").await;
        meanwhile.await;
        self.run("start-redis").await;
    }

    /// Removes every key.
    pub(crate) async fn flush_redis(&self) {
        let _guard = self.redis.lock().await;
        let flush = async {
            let mut connection = self.redis().await?;
            redis::cmd("FLUSHALL")
                .query_async::<()>(&mut connection)
                .await
        };
        flush.await.expect("a running Redis can be emptied");
    }

    /// Makes Redis refuse every write until `meanwhile` ends.
    pub(crate) async fn fill_redis(&self, meanwhile: impl Future<Output = ()>) {
        let _guard = self.redis.lock().await;
        self.set_memory("1").await;
        meanwhile.await;
        self.set_memory("0").await;
    }

    /// Sets Redis' memory limit in bytes; 0 is no limit. With the default policy, which
    /// is no eviction, Redis refuses writes beyond the limit.
    async fn set_memory(&self, bytes_max: &str) {
        let set = async {
            let mut connection = self.redis().await?;
            redis::cmd("CONFIG")
                .arg(&["SET", "maxmemory", bytes_max])
                .query_async::<()>(&mut connection)
                .await
        };
        set.await.expect("a running Redis can be configured");
    }

    /// A connection to Redis. The client's own time limit for an answer, 500 ms, is too
    /// short on a busy machine.
    async fn redis(&self) -> redis::RedisResult<redis::aio::MultiplexedConnection> {
        let limits = redis::AsyncConnectionConfig::new()
            .set_connection_timeout(Some(REDIS_ANSWER_MAX))
            .set_response_timeout(Some(REDIS_ANSWER_MAX));
        let client = redis::Client::open(self.redis_url.as_str())?;
        client
            .get_multiplexed_async_connection_with_config(&limits)
            .await
    }

    /// Makes a server of `make test-servers` fail over.
    pub(crate) async fn fail_over(&self, action: String) {
        self.run_script("scripts/failover-servers.sh", action).await;
    }

    async fn run(&self, action: &str) {
        let action = action.to_owned();
        self.run_script("scripts/chaos-servers.sh", action).await;
    }

    async fn run_script(&self, script: &'static str, action: String) {
        let state = self.state.clone();
        let ended = tokio::spawn(run_script(state, script, action)).await;
        ended.expect("a script does not panic");
    }
}

/// Waits for running scripts. An interrupted script could leave a server behind that no
/// script stops.
pub(crate) async fn wait_for_scripts() {
    let all = SCRIPTS.acquire_many(SCRIPTS_MAX).await;
    all.expect("the semaphore is never closed").forget();
}

async fn run_script(state: PathBuf, script: &'static str, action: String) {
    let permit = SCRIPTS.acquire().await;
    let ended = Command::new("bash")
        .arg(waypost_tests::root().join(script))
        .arg(&action)
        .env("STATE", state)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        // An interrupt of the run signals its whole process group.
        .process_group(0)
        .status()
        .await;
    drop(permit);
    let ended = ended.expect("bash can be started");
    assert!(ended.success(), "{action}: {ended}");
}
