//! CPU seconds and memory of processes, as Linux reports them.

use std::collections::HashMap;
use std::fs;
use std::time::Duration;

/// Clock ticks per second: 100 on every Linux (`USER_HZ`).
const TICKS: f64 = 100.0;
/// Interval of the samples from which a memory peak is taken.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(250);

/// CPU seconds that a process has used, including its children: those that ended and were
/// awaited, and those that still run. NaN if the process is gone.
#[must_use]
pub(crate) fn cpu_seconds(process: u32) -> f64 {
    let all_stats = all_stats();
    let Some(own) = all_stats.get(&process).map(|stat| stat.own + stat.awaited) else {
        return f64::NAN;
    };
    let children = all_stats.values().filter(|stat| stat.parent == process);
    let ticks: u64 = own + children.map(|stat| stat.own).sum::<u64>();
    ticks as f64 / TICKS
}

/// CPU seconds that this process has used, without its children.
#[must_use]
pub(crate) fn own_cpu_seconds() -> f64 {
    let own = stat(std::process::id()).map(|stat| stat.own as f64 / TICKS);
    own.unwrap_or(f64::NAN)
}

/// The memory of a process in MiB, shared pages counted in proportion (PSS). NaN if the
/// system does not report it.
#[must_use]
pub(crate) fn pss_mib(process: u32) -> f64 {
    let text = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
    let kibibytes = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok());
    kibibytes.unwrap_or(f64::NAN) / 1_024.0
}

/// The result of the work, and the highest [`pss_mib`] of a process during it, sampled
/// every quarter of a second.
pub(crate) async fn peak_mib<T>(process: u32, work: impl Future<Output = T>) -> (T, f64) {
    let mut work = std::pin::pin!(work);
    let mut samples = tokio::time::interval(SAMPLE_INTERVAL);
    let mut peak = f64::NAN;
    loop {
        tokio::select! {
            done = &mut work => return (done, peak.max(pss_mib(process))),
            _ = samples.tick() => peak = peak.max(pss_mib(process)),
        }
    }
}

struct Stat {
    parent: u32,
    own: u64,
    awaited: u64,
}

fn all_stats() -> HashMap<u32, Stat> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let create_organizations = entries.filter_map(|entry| {
        let id: u32 = entry.file_name().to_str()?.parse().ok()?;
        Some((id, stat(id)?))
    });
    create_organizations.collect()
}

/// `proc(5)`: after the name in parentheses come the state, the parent, and, as fields
/// 14 to 17, the ticks in user and in kernel mode, own and of awaited children.
fn stat(id: u32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    Some(Stat {
        parent: fields.get(1)?.parse().ok()?,
        own: number(11)? + number(12)?,
        awaited: number(13)? + number(14)?,
    })
}
