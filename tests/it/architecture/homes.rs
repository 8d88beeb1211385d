//! Which files may use which library. The list is short on purpose; a new entry needs an
//! explanation.

/// A library, the names by which code uses it, and the files that may use it.
pub(super) struct Home {
    pub(super) library: &'static str,
    pub(super) names: &'static [&'static str],
    /// Whole paths, or folders with a final slash.
    pub(super) places: &'static [&'static str],
}

pub(super) const HOMES: [Home; 14] = [
    Home {
        library: "poem",
        names: &["poem::", "poem_openapi::"],
        places: &["api/src/"],
    },
    Home {
        library: "sqlx",
        names: &["sqlx::"],
        places: &[
            "core/src/db/",
            // One statement inserts any number of messages with all their rows.
            "core/src/acceptance/insert.rs",
            // The tables of delivery, a file for each operation on them.
            "core/src/delivery/attempt.rs",
            "core/src/delivery/expiry.rs",
            "core/src/delivery/lease.rs",
            "core/src/delivery/outbox.rs",
            "core/src/delivery/outcome.rs",
            "core/src/delivery/reaper.rs",
            "core/src/delivery/schedule.rs",
            "core/src/delivery/waiting.rs",
        ],
    },
    Home {
        library: "apalis",
        names: &["apalis::", "apalis_core::"],
        places: &["core/src/job_queue/", "worker/src/runtime.rs"],
    },
    Home {
        library: "reqwest",
        names: &["reqwest::"],
        places: &["core/src/http/"],
    },
    Home {
        library: "redis",
        names: &["redis::", "deadpool::"],
        places: &[
            "core/src/redis/",
            "core/src/job_queue/",
            "core/src/suppression/bloom_filter/",
            "core/src/limit/shared.rs",
            "core/src/account_limiter/shared.rs",
        ],
    },
    Home {
        library: "argon2",
        names: &["argon2::"],
        places: &["core/src/user/password.rs"],
    },
    Home {
        library: "totp-rs",
        names: &["totp_rs::"],
        places: &["core/src/user/second_factor.rs"],
    },
    Home {
        library: "openidconnect",
        names: &["openidconnect::"],
        places: &["core/src/session/oidc/provider.rs"],
    },
    Home {
        library: "metrics and opentelemetry",
        names: &[
            "metrics_exporter_prometheus::",
            "metrics_process::",
            "opentelemetry::",
            "opentelemetry_otlp::",
            "opentelemetry_sdk::",
        ],
        places: &["core/src/telemetry/"],
    },
    Home {
        library: "governor",
        names: &["governor::"],
        places: &[
            "core/src/limit/local.rs",
            "core/src/account_limiter/local.rs",
        ],
    },
    Home {
        library: "mail-parser",
        names: &["mail_parser::"],
        places: &["core/src/submission/mail/"],
    },
    Home {
        library: "hickory-resolver",
        names: &["hickory_resolver::"],
        places: &["core/src/dns/"],
    },
    Home {
        library: "the environment",
        names: &["std::env", "env::var", "env::args"],
        places: &["core/src/config/mod.rs"],
    },
    Home {
        library: "the machine's clock",
        names: &["Utc::now", "SystemTime::now"],
        places: &["core/src/clock.rs"],
    },
];
