//! Measures webhooks with real processes and real time: how many events are told to
//! one fast receiver, beside a bare loop (`told`), and how long others wait while one
//! organization's endpoint hangs (`hanging`, with the time-out shorter than it hangs;
//! `hanging-patient`, with it longer).
//!
//! ```text
//! cargo build --release -p waypost-worker -p waypost-scheduler -p waypost-tests --example measure_webhooks
//! WAYPOST_TEST_DATABASE_URL=… WAYPOST_TEST_REDIS_URL=… WAYPOST_BIN_DIR=target/release \
//!     target/release/examples/measure_webhooks told
//! ```

mod cpu;
mod customers;
mod hanging;
mod sink;
mod webhooks;

use std::time::Duration;

use waypost_core::config::Settings;
use waypost_core::ids::Ids;
use waypost_tests::TestApp;

use customers::Town;

/// Events to the fast receiver.
const EVENTS: usize = 50_000;
/// Rounds of them.
const ROUNDS: usize = 2;
/// How long others are watched, without the endpoint that hangs and beside it.
const SPAN: Duration = Duration::from_secs(18);

#[tokio::main]
async fn main() {
    let what = std::env::args().nth(1).unwrap_or_default();
    match what.as_str() {
        sink::COMMAND => sink::be_one().await,
        "told" => measure("15s", Told).await,
        "hanging" => measure("15s", Hanging).await,
        "hanging-patient" => measure("25s", Hanging).await,
        _ => eprintln!("say what: told, hanging, hanging-patient"),
    }
}

use What::{Hanging, Told};

#[derive(Debug, Clone, Copy)]
enum What {
    Told,
    Hanging,
}

async fn measure(call_timeout: &str, what: What) {
    let app = TestApp::builder()
        .processes()
        .setting("WAYPOST_WEBHOOK_TIMEOUT", call_timeout)
        .setting("WAYPOST_WORKER_LEASE", "30s")
        .start()
        .await;
    let settings = Settings::from_map(&app.variables).expect("the settings are in order");
    let town = Town {
        pool: &app.pool,
        settings: &settings,
        ids: Ids::new(app.clock.clone()),
        clock: app.clock.clone(),
    };
    let (worker, _scheduler) = (app.spawn_worker(), app.spawn_scheduler());
    for setting in ["fsync", "synchronous_commit", "full_page_writes"] {
        let value = app
            .value(&format!("SELECT current_setting('{setting}')"))
            .await;
        println!("{setting} {}", value.unwrap_or_default());
    }
    match what {
        Told => tell(&app, &town, worker.id()).await,
        Hanging => compare(&town).await,
    }
    app.leave_work();
}

async fn tell(app: &TestApp, town: &Town<'_>, worker: u32) {
    let data = app
        .value("SELECT current_setting('data_directory')")
        .await
        .unwrap_or_default();
    let postmaster = cpu::postmaster(&data).expect("the PostgreSQL is on this machine, and ours");
    for _ in 0..ROUNDS {
        let told = webhooks::webhooks(town, EVENTS, worker, postmaster).await;
        println!(
            "told {:.0}/s, recorded {:.0}/s, floor {:.0}/s, ratio {:.3}; CPU s per 1,000: worker {:.4}, Postgres {:.4}; WAL {:.0} bytes each",
            told.per_second,
            told.recorded_per_second,
            told.floor_per_second,
            told.ratio(),
            told.worker_cpu,
            told.postgres_cpu,
            told.wal_bytes,
        );
    }
}

async fn compare(town: &Town<'_>) {
    let beside = hanging::hanging(town, SPAN).await;
    for (name, waits) in [("alone", &beside.alone), ("beside", &beside.beside_hanging)] {
        println!(
            "{name}: {} events, p50 {:.2} ms, p90 {:.2} ms, p99 {:.2} ms, longest {:.2} ms",
            waits.count(),
            waits.ms(0.5),
            waits.ms(0.9),
            waits.ms(0.99),
            waits.ms(1.0),
        );
    }
    println!(
        "p99 {:.2} times; the endpoint that hangs got {} calls",
        beside.ratio(),
        beside.hanging_calls
    );
}
