//! CPU time of processes, as Linux counts it.

use std::fs;
use std::path::Path;

/// `sysconf(_SC_CLK_TCK)`, the same on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// The CPU seconds that a process has used, and those of the children that it has
/// awaited.
pub(crate) fn seconds(process: u32) -> f64 {
    ticks(process).map_or(0.0, |ticks| ticks as f64 / TICKS_PER_SECOND)
}

/// The same of a process together with its living children: of a PostgreSQL.
pub(crate) fn seconds_with_children(process: u32) -> f64 {
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
    let children = children.unwrap_or_default();
    let children = children.split_whitespace().filter_map(|id| id.parse().ok());
    seconds(process) + children.map(seconds).sum::<f64>()
}

/// The first process of a PostgreSQL whose data lie there.
pub(crate) fn postmaster(data: &str) -> Option<u32> {
    let file = fs::read_to_string(Path::new(data).join("postmaster.pid")).ok()?;
    file.lines().next()?.trim().parse().ok()
}

/// utime, stime, cutime and cstime (proc(5), /proc/pid/stat). The name before them
/// may hold anything, and ends with the last parenthesis.
fn ticks(process: u32) -> Option<u64> {
    let line = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, rest) = line.rsplit_once(')')?;
    let fields = rest.split_whitespace().skip(11).take(4);
    Some(fields.filter_map(|field| field.parse::<u64>().ok()).sum())
}
