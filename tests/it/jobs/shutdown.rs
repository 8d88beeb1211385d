//! The shutdown of a worker whose jobs cannot end.

use waypost_core::provider::kind::ProviderType;
use waypost_tests::{TestApp, wait_until};

use super::number;

#[tokio::test]
async fn unfinished_jobs_are_released_at_shutdown_without_a_loss() {
    let app = TestApp::builder()
        .processes()
        .private_redis()
        .setting("WAYPOST_PROVIDER_TIMEOUT", "1s")
        .setting("WAYPOST_WORKER_SHUTDOWN", "2s")
        .setting("WAYPOST_WORKER_LEASE", "60s")
        .start()
        .await;
    let _api = app.spawn_api().await;
    app.connect(ProviderType::Sendgrid).await;
    for nth in 0..5 {
        app.send_to(&format!("r{nth}@example.org")).await;
    }
    // Each job blocks before its call.
    let obstacle = app.block_attempts().await;
    let mut stopping = app.spawn_worker();
    wait_until("all are leased", async || {
        number(
            &app,
            "SELECT count(*) FROM outbox WHERE leased_by IS NOT NULL",
        )
        .await
            == 5
    })
    .await;
    let status = stopping.terminate().await;
    assert!(status.success(), "{status}");
    assert_eq!(
        number(
            &app,
            "SELECT count(*) FROM outbox WHERE leased_by IS NOT NULL"
        )
        .await,
        0
    );
    assert_eq!(number(&app, "SELECT count(*) FROM workers").await, 0);
    assert_eq!(number(&app, "SELECT max(losses) FROM outbox").await, 0);
    let queued = "SELECT count(*) FROM recipients WHERE status = 'QUEUED'";
    assert_eq!(number(&app, queued).await, 5);
    // Its last statement ends with the worker.
    app.execute(
        "SELECT pg_terminate_backend(pid)
         FROM pg_stat_activity
         WHERE datname = current_database() AND wait_event = 'advisory'",
    )
    .await;
    obstacle.rollback().await.unwrap();
    let _others = (app.spawn_worker(), app.spawn_scheduler());
    wait_until("all is sent", async || app.outbox().await.is_empty()).await;
    for nth in 0..5 {
        app.captured_once(&format!("r{nth}@example.org"));
    }
    assert_eq!(number(&app, "SELECT count(*) FROM send_attempts").await, 5);
}
