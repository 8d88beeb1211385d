//! The PostgreSQL and the Redis of the run. `scripts/chaos.sh` made and started them and
//! stops them at the end; here they are crashed, stopped and started again, by the same
//! functions (`scripts/servers.sh`).

use std::path::PathBuf;
use std::process::Stdio;

use tokio::process::Command;
use tokio::sync::{Mutex, Semaphore};

/// Scripts that run at the same time: one for each server.
const SCRIPTS_MAX: u32 = 2;
static SCRIPTS: Semaphore = Semaphore::const_new(SCRIPTS_MAX as usize);

/// Both servers.
#[derive(Debug)]
pub(crate) struct Servers {
    /// The state directory of the scripts.
    state: PathBuf,
    redis_url: String,
    /// Held by whoever has a server down: two that crash the same one at once would
    /// find it gone.
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

    /// Ends PostgreSQL without a farewell (`pg_ctl stop -m immediate`) and starts it
    /// again, which has it recover from its log.
    pub(crate) async fn crash_postgres(&self) {
        let _alone = self.postgres.lock().await;
        self.run("crash-postgres").await;
        self.run("start-postgres").await;
    }

    /// Kills Redis, waits for `meanwhile` to end, and starts it again with nothing in it.
    pub(crate) async fn stop_redis(&self, meanwhile: impl Future<Output = ()>) {
        let _alone = self.redis.lock().await;
        self.run("kill-redis").await;
        meanwhile.await;
        self.run("start-redis").await;
    }

    /// Removes every key.
    pub(crate) async fn flush_redis(&self) {
        let _alone = self.redis.lock().await;
        let flush = async {
            let client = redis::Client::open(self.redis_url.as_str())?;
            let mut connection = client.get_multiplexed_async_connection().await?;
            redis::cmd("FLUSHALL")
                .query_async::<()>(&mut connection)
                .await
        };
        flush.await.expect("a Redis that runs can be emptied");
    }

    /// Lets Redis refuse every write until `meanwhile` ends.
    pub(crate) async fn fill_redis(&self, meanwhile: impl Future<Output = ()>) {
        let _alone = self.redis.lock().await;
        self.set_memory("1").await;
        meanwhile.await;
        self.set_memory("0").await;
    }

    /// The most that Redis may hold, in bytes; 0 is no bound. Without an eviction policy,
    /// which is the default, it refuses writes beyond it.
    async fn set_memory(&self, bytes_max: &str) {
        let set = async {
            let client = redis::Client::open(self.redis_url.as_str())?;
            let mut connection = client.get_multiplexed_async_connection().await?;
            redis::cmd("CONFIG")
                .arg(&["SET", "maxmemory", bytes_max])
                .query_async::<()>(&mut connection)
                .await
        };
        set.await.expect("a Redis that runs can be configured");
    }

    async fn run(&self, action: &'static str) {
        let state = self.state.clone();
        let ended = tokio::spawn(run_script(state, action)).await;
        ended.expect("a script ends as it should");
    }
}

/// Waits for the scripts that are under way. One that was cut short could leave a server
/// of which nobody knows.
pub(crate) async fn wait_for_scripts() {
    let all = SCRIPTS.acquire_many(SCRIPTS_MAX).await;
    all.expect("the semaphore is never closed").forget();
}

async fn run_script(state: PathBuf, action: &'static str) {
    let permit = SCRIPTS.acquire().await;
    let script = waypost_tests::root().join("scripts/chaos-servers.sh");
    let ended = Command::new("bash")
        .arg(script)
        .arg(action)
        .env("STATE", state)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        // Whoever interrupts the run signals its process group.
        .process_group(0)
        .status()
        .await;
    drop(permit);
    let ended = ended.expect("bash can be started");
    assert!(ended.success(), "{action}: {ended}");
}
