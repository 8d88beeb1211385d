//! What processes share at their edges: the signal to stop, and log lines, where
//! they go and in what form. What those may hold is a rule for whoever writes
//! them: never an address, a subject, a body, a key or a token.
//!
//! What repeats for every request or job while a server is away is told seldom
//! ([`warn_seldom`](crate::warn_seldom)), with the number of times that it was not.
//!
//! Two others write who do not know the rule. Libraries tell at `debug` and `trace`
//! of headers, URLs and frames as they are: whatever the filter says, they are
//! heard from `info` on. And a panic quotes the data that it failed at: of its
//! message only the beginning is told, up to where it may quote.

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

/// What the targets of our own crates begin with.
const OURS: &str = "waypost";

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    /// For collectors: one JSON object a line.
    Json,
}

/// Starts logging to standard error, in colour where that is a terminal. Called once,
/// first thing in a process; a second call does nothing.
pub fn init(filter: &str, format: LogFormat) {
    let filter = EnvFilter::try_new(filter).unwrap_or_else(|_| EnvFilter::new("info"));
    let mut lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    // On a terminal the library asks NO_COLOR.
    if !std::io::stderr().is_terminal() {
        lines.set_ansi(false);
    }
    let registry = tracing_subscriber::registry()
        .with(filter)
        .with(filter_fn(may_be_logged));
    // An error means that a subscriber is set already: tests share one.
    let _already_set = match format {
        LogFormat::Text => registry.with(lines).try_init(),
        LogFormat::Json => registry.with(lines.json()).try_init(),
    };
}

/// Whether a text says what to log in one of the forms that are served: levels, and levels
/// of modules, separated by commas. The library takes any word for a module and is silent
/// about all others.
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

/// Everything of ours, and of libraries what is worth an operator's while.
fn may_be_logged(metadata: &Metadata<'_>) -> bool {
    metadata.target().starts_with(OURS) || *metadata.level() <= Level::INFO
}

/// How often at the most one that repeats is told.
const SELDOM: Duration = Duration::from_secs(10);

/// A log line that repeats: when it was told last, and how often it was not since.
#[derive(Debug, Default)]
pub struct Repeats(Mutex<(Option<Instant>, u64)>);

impl Repeats {
    /// Counts once more. How often the line was not told since it was told last, where it
    /// is to be told now.
    pub fn note(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (told_at, untold) = &mut *state;
        if told_at.is_some_and(|told_at| now.duration_since(told_at) < SELDOM) {
            *untold += 1;
            return None;
        }
        *told_at = Some(now);
        Some(std::mem::take(untold))
    }
}

/// Those of a place in the code, made when it is first come to.
pub type LazyRepeats = LazyLock<Repeats>;

/// Logs a warning, unless this place has logged one in the last ten seconds. The next one
/// says how many it stands for besides itself. For what repeats with every request or job
/// for the same reason: a server is away.
#[macro_export]
macro_rules! warn_seldom {
    ($($said:tt)*) => {{
        static REPEATS: $crate::telemetry::LazyRepeats =
            $crate::telemetry::LazyRepeats::new($crate::telemetry::Repeats::default);
        if let Some(untold) = REPEATS.note(std::time::Instant::now()) {
            tracing::warn!(untold, $($said)*);
        }
    }};
}

/// Makes panics log lines that quote nothing. For processes, once; tests show their
/// own panics whole.
pub fn log_panics() {
    panic::set_hook(Box::new(log_panic));
}

fn log_panic(panic: &PanicHookInfo<'_>) {
    let place = panic.location().map(ToString::to_string);
    let said = panic.payload_as_str().map(unquoted);
    tracing::error!(place, said, "Panicked");
}

/// The beginning of a panic's message, up to where it may quote what it failed at.
#[must_use]
pub fn unquoted(said: &str) -> &str {
    let end = said.find(['"', '\'', '`', ':', '{', '[']);
    said[..end.unwrap_or(said.len())].trim_end()
}

/// Cancels `shutdown` when the process is asked to stop, by SIGTERM or Ctrl-C.
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
    fn what_to_log_is_said_in_levels() {
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

    /// What was logged.
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

    fn logged(what: impl FnOnce()) -> String {
        let lines = Lines::default();
        let writer = lines.clone();
        let layer = tracing_subscriber::fmt::layer().with_writer(move || writer.clone());
        let registry = tracing_subscriber::registry()
            .with(EnvFilter::new("trace"))
            .with(filter_fn(may_be_logged))
            .with(layer);
        tracing::subscriber::with_default(registry, what);
        let lines = lines.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&lines).into_owned()
    }

    #[test]
    fn libraries_are_heard_from_info_on_whatever_the_filter_says() {
        let lines = logged(|| {
            tracing::trace!(target: "waypost_worker::send", "ours");
            tracing::debug!(target: "hyper::proto", "theirs, with an Authorization");
            tracing::info!(target: "library", "theirs, worth knowing");
        });
        assert!(lines.contains("ours") && lines.contains("worth knowing"));
        assert!(!lines.contains("Authorization"), "{lines}");
    }

    #[test]
    fn what_repeats_is_told_every_ten_seconds_with_the_number_of_times_that_it_was_not() {
        let (repeats, begin) = (Repeats::default(), Instant::now());
        let told = |at_ms: u64| repeats.note(begin + Duration::from_millis(at_ms));
        assert_eq!(told(0), Some(0));
        for at_ms in 1..=1_000 {
            assert_eq!(told(at_ms), None);
        }
        assert_eq!(told(9_999), None);
        assert_eq!(told(10_000), Some(1_001));
        assert_eq!(told(60_000), Some(0));
    }

    #[test]
    fn a_place_that_warns_seldom_is_heard_once_and_places_do_not_share_their_counts() {
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
    fn a_panic_quotes_nothing() {
        for (said, told) in [
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
            assert_eq!(unquoted(said), told);
        }
    }

    #[test]
    fn a_panic_is_a_log_line() {
        let before = panic::take_hook();
        log_panics();
        let lines = logged(|| {
            let text = format!("{}@example.org", "adé");
            let fallen = panic::catch_unwind(|| text[..3].len());
            assert!(fallen.is_err());
        });
        panic::set_hook(before);
        assert!(lines.contains("Panicked") && lines.contains("telemetry.rs"));
        assert!(!lines.contains("example.org"), "{lines}");
    }
}
