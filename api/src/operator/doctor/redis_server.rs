//! Checks of Redis.

use waypost_core::config::Settings;
use waypost_core::redis::Redis;
use waypost_core::redis::diagnosis::RedisFacts;

use super::report::{Report, Severity};

const NAME: &str = "redis";
/// The oldest version that Waypost works with.
const VERSION_MIN: (u32, u32) = (6, 2);

pub(super) async fn check(settings: &Settings, report: &mut Report) {
    let redis = match Redis::new(&settings.redis_url, &settings.redis_prefix) {
        Ok(redis) => redis,
        Err(fault) => {
            report.found(Severity::Error, NAME, fault.chain(), "correct REDIS_URL");
            return;
        }
    };
    if let Err(error) = redis.check_writes().await {
        let sentence = redis.explain(&error);
        match error.code().and_then(fix_of) {
            Some(fix) => report.found(Severity::Error, NAME, sentence, fix),
            None => report.found_sentence(Severity::Error, NAME, &sentence),
        }
        // A full or read-only Redis still tells its settings.
    } else {
        report.ok(NAME, "takes writes");
    }
    if let Ok(Some(facts)) = redis.facts().await {
        check_facts(&facts, report);
    }
}

/// What to do about a Redis that refuses writes with this code.
fn fix_of(code: &str) -> Option<&'static str> {
    match code {
        "OOM" => Some("give Redis more memory (maxmemory)"),
        "READONLY" => Some("name the primary in REDIS_URL, not a replica"),
        "MISCONF" => Some("free disk space for its snapshots, or switch them off (`save \"\"`)"),
        "NOREPLICAS" => Some("bring its replicas back, or lower min-replicas-to-write"),
        "NOPERM" => Some("allow the user in REDIS_URL to read, write and run scripts"),
        _ => None,
    }
}

fn check_facts(facts: &RedisFacts, report: &mut Report) {
    let version = &facts.version;
    let (major, minor) = VERSION_MIN;
    if facts.is_at_least(major, minor) {
        report.ok("redis-version", version);
    } else {
        let message = format!("Redis {version} is too old");
        let fix = format!("install Redis {major}.{minor} or later");
        report.found(Severity::Error, "redis-version", message, fix);
    }
    let policy = &facts.eviction_policy;
    if policy == "noeviction" {
        report.ok("redis-memory", "evicts nothing");
    } else {
        let message =
            format!("Redis drops keys when its memory is full (maxmemory-policy {policy})");
        let fix = "set `maxmemory-policy noeviction` in redis.conf, and run `CONFIG SET maxmemory-policy noeviction`";
        report.found(Severity::Warning, "redis-memory", message, fix);
    }
}
