//! Logging, and the signal to stop.
//!
//! A log line never contains an address, a subject, a body, a key or a token. A warning that
//! would repeat for every request or job while a server is away is rate-limited
//! ([`warn_seldom`](crate::warn_seldom)).
//!
//! Libraries and panics do not follow that rule. Libraries log headers, URLs and frames at
//! `debug` and `trace`, so they never log below `info`, whatever the filter says. A panic
//! message may quote the data that caused it, so only its beginning is logged, up to the
//! first possible quotation.
//!
//! `instruments` has the metrics of the process, `traces` its traces.

pub mod instruments;
pub mod traces;

use std::io::IsTerminal as _;
use std::panic::{self, PanicHookInfo};
use std::str::FromStr as _;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::{Level, Metadata};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::{LevelFilter, filter_fn};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// The prefix of the log targets of our own crates.
const OWN_TARGETS: &str = "waypost";

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    /// One JSON object per line, for log collectors.
    Json,
}

/// Starts logging to standard error, in colour on a terminal. Call it once, at the start of
/// a process; a second call does nothing.
pub fn init(filter: &str, format: LogFormat) {
    let filter = EnvFilter::try_new(filter).unwrap_or_else(|_| EnvFilter::new("info"));
    let mut lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    // On a terminal the library honours NO_COLOR.
    if !std::io::stderr().is_terminal() {
        lines.set_ansi(false);
    }
    let registry = tracing_subscriber::registry()
        .with(filter)
        .with(filter_fn(may_be_logged));
    // The error means that a subscriber is already set: tests share one.
    let _already_set = match format {
        LogFormat::Text => registry.with(lines).try_init(),
        LogFormat::Json => registry.with(lines.json()).try_init(),
    };
}

/// Whether a text is a log filter: levels and levels per module, separated by commas. The
/// check is stricter than the library, which takes any word for a module and then logs
/// nothing else.
#[must_use]
pub fn is_filter(text: &str) -> bool {
    let is_module = |name: &str| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':');
        !name.is_empty() && name.chars().all(is_part)
    };
    text.split(',').all(|part| {
        let (module, level) = part
            .split_once('=')
            .map_or((None, part), |(module, level)| (Some(module), level));
        !level.is_empty() && LevelFilter::from_str(level).is_ok() && module.is_none_or(is_module)
    })
}

/// The pool of sqlx logs an error for each connection that cannot be used, many times a second
/// while Postgres is a standby. Whoever needs the connection reports it.
const SILENT_TARGET: &str = "sqlx_core::pool::inner";

/// Our own crates log at all levels, libraries at `info` and above.
fn may_be_logged(metadata: &Metadata<'_>) -> bool {
    let target = metadata.target();
    target.starts_with(OWN_TARGETS) || *metadata.level() <= Level::INFO && target != SILENT_TARGET
}

/// Minimum time between two log lines of one [`Repeats`].
const INTERVAL: Duration = Duration::from_secs(10);

/// The state of a rate-limited log line: when it was logged last, and how often it was
/// suppressed since.
#[derive(Debug, Default)]
pub struct Repeats(Mutex<(Option<Instant>, u64)>);

impl Repeats {
    /// Counts an occurrence. If the line is to be logged now, returns how often it was
    /// suppressed since it was logged last.
    pub fn note(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (logged_at, suppressed) = &mut *state;
        if logged_at.is_some_and(|logged_at| now.duration_since(logged_at) < INTERVAL) {
            *suppressed += 1;
            return None;
        }
        *logged_at = Some(now);
        Some(std::mem::take(suppressed))
    }
}

/// The state of one `warn_seldom!` in the code.
pub type LazyRepeats = LazyLock<Repeats>;

/// Logs a warning at most once in ten seconds per place in the code. The field `suppressed`
/// counts the occurrences since the last line. For warnings that repeat with every request
/// or job for the same reason, such as a server that is away.
#[macro_export]
macro_rules! warn_seldom {
    ($($message:tt)*) => {{
        static REPEATS: $crate::telemetry::LazyRepeats =
            $crate::telemetry::LazyRepeats::new($crate::telemetry::Repeats::default);
        if let Some(suppressed) = REPEATS.note(std::time::Instant::now()) {
            tracing::warn!(suppressed, $($message)*);
        }
    }};
}

/// Makes panics log a line without quoted data. Call it once per process. Tests do not call
/// it and print their panics in full.
pub fn log_panics() {
    panic::set_hook(Box::new(log_panic));
}

fn log_panic(panic: &PanicHookInfo<'_>) {
    let location = panic.location().map(ToString::to_string);
    let message = panic.payload_as_str().map(unquoted);
    tracing::error!(location, cause = message, "Panicked");
}

/// The beginning of a panic message, up to the first character that may begin a quotation.
#[must_use]
pub fn unquoted(message: &str) -> &str {
    let end = message.find(['"', '\'', '`', ':', '{', '[']);
    message[..end.unwrap_or(message.len())].trim_end()
}

/// Cancels `shutdown` on SIGTERM or Ctrl-C.
pub async fn cancel_on_signal(shutdown: CancellationToken) {
    let mut terminated = match signal(SignalKind::terminate()) {
        Ok(terminated) => terminated,
        Err(error) => {
            tracing::error!("Cannot listen for SIGTERM: {error}");
            return;
        }
    };
    tokio::select! {
        _ = terminated.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    tracing::info!("Stopping");
    shutdown.cancel();
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex, PoisonError};

    use super::*;

    #[test]
    fn a_filter_consists_of_levels_and_levels_per_module() {
        for text in [
            "info",
            "WARN",
            "off",
            "info,waypost_core=debug",
            "warn,waypost_worker::send=trace",
        ] {
            assert!(is_filter(text), "{text}");
        }
        for text in [
            "",
            "warning",
            "Information",
            "info;waypost_core=debug",
            "waypost_core",
            "info,",
            "waypost_core=debgu",
            "a b=info",
            "info, debug",
        ] {
            assert!(!is_filter(text), "{text}");
        }
    }

    /// The captured log.
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            lines.write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn logged(action: impl FnOnce()) -> String {
        let lines = Lines::default();
        let writer = lines.clone();
        let layer = tracing_subscriber::fmt::layer().with_writer(move || writer.clone());
        let registry = tracing_subscriber::registry()
            .with(EnvFilter::new("trace"))
            .with(filter_fn(may_be_logged))
            .with(layer);
        tracing::subscriber::with_default(registry, action);
        let lines = lines.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&lines).into_owned()
    }

    #[test]
    fn libraries_never_log_below_info() {
        let lines = logged(|| {
            tracing::trace!(target: "waypost_worker::send", "ours");
            tracing::debug!(target: "hyper::proto", "theirs, with an Authorization");
            tracing::info!(target: "library", "theirs, worth knowing");
        });
        assert!(lines.contains("ours") && lines.contains("worth knowing"));
        assert!(!lines.contains("Authorization"), "{lines}");
    }

    #[test]
    fn a_repeated_line_is_logged_every_ten_seconds_with_the_number_of_suppressed_lines() {
        let (repeats, begin) = (Repeats::default(), Instant::now());
        let note = |at_ms: u64| repeats.note(begin + Duration::from_millis(at_ms));
        assert_eq!(note(0), Some(0));
        for at_ms in 1..=1_000 {
            assert_eq!(note(at_ms), None);
        }
        assert_eq!(note(9_999), None);
        assert_eq!(note(10_000), Some(1_001));
        assert_eq!(note(60_000), Some(0));
    }

    #[test]
    fn each_warn_seldom_has_a_limit_of_its_own() {
        let lines = logged(|| {
            for number in 0..1_000 {
                crate::warn_seldom!(number, "one place");
                crate::warn_seldom!(number, "another place");
            }
        });
        assert_eq!(lines.matches("one place").count(), 1, "{lines}");
        assert_eq!(lines.matches("another place").count(), 1, "{lines}");
    }

    #[test]
    fn a_logged_panic_quotes_nothing() {
        for (message, logged) in [
            ("it cannot happen", "it cannot happen"),
            (
                "it cannot happen: Error(\"ada@example.org\")",
                "it cannot happen",
            ),
            (
                "byte index 4 is not a char boundary; it is inside 'é' of `ada@example.org`",
                "byte index 4 is not a char boundary; it is inside",
            ),
            ("[\"ada@example.org\"]", ""),
        ] {
            assert_eq!(unquoted(message), logged);
        }
    }

    #[test]
    fn a_panic_is_a_log_line() {
        let before = panic::take_hook();
        log_panics();
        let lines = logged(|| {
            let text = format!("{}@example.org", "adé");
            let panicked = panic::catch_unwind(|| text[..3].len());
            assert!(panicked.is_err());
        });
        panic::set_hook(before);
        assert!(
            lines.contains("Panicked") && lines.contains(file!()),
            "{lines}"
        );
        assert!(!lines.contains("example.org"), "{lines}");
    }
}
