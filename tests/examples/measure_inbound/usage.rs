//! The processor time of processes, from `/proc`.

use std::fs;

use sqlx::{PgPool, query_scalar};

/// `sysconf(_SC_CLK_TCK)` of Linux, on every architecture that it runs on today.
const TICKS_PER_SECOND: f64 = 100.0;

/// A process and its children, those that have ended too.
pub(crate) struct Processes {
    parent: u32,
}

impl Processes {
    /// Those of a process.
    pub(crate) fn of(parent: u32) -> Self {
        Self { parent }
    }

    /// Those of the Postgres server on this machine.
    pub(crate) async fn of_postgres(pool: &PgPool) -> Self {
        let file = "SELECT current_setting('data_directory') || '/postmaster.pid'";
        let file: String = query_scalar(file)
            .fetch_one(pool)
            .await
            .expect("Postgres knows where its data lies");
        let text = fs::read_to_string(file).expect("Postgres runs on this machine");
        let parent = text.lines().next().and_then(|line| line.parse().ok());
        Self::of(parent.expect("the file begins with the process's id"))
    }

    /// What they have used so far, in seconds.
    pub(crate) fn seconds(&self) -> f64 {
        let entries = fs::read_dir("/proc").expect("this is Linux");
        let ids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        let ticks: u64 = ids.filter_map(|id| self.ticks(id)).sum();
        ticks as f64 / TICKS_PER_SECOND
    }

    /// What one process used, where it is one of them.
    fn ticks(&self, id: u32) -> Option<u64> {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        // After the name, which may hold anything: state, parent, …
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |nth: usize| fields.get(nth)?.parse::<u64>().ok();
        let own = number(11)? + number(12)?;
        match id == self.parent {
            true => Some(own + number(13)? + number(14)?),
            false => (number(1)? == u64::from(self.parent)).then_some(own),
        }
    }
}
