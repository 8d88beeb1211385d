//! `waypost-api wait-for-migrations`, with which a deployment holds back the programs of a new
//! version.

use waypost_tests::{Program, TestApp};

#[tokio::test]
async fn waiting_ends_when_another_process_has_migrated() {
    let app = TestApp::builder()
        .without_migrations()
        .processes()
        .start()
        .await;
    let run = |arguments: &'static [&'static str]| Program::Api.run(arguments, &app.variables);

    let too_early = run(&["wait-for-migrations", "--timeout", "5s"]).await;
    assert!(!too_early.success, "{too_early:?}");
    let reason = "gave up after 5s: the database";
    assert!(too_early.stderr.contains(reason), "{too_early:?}");
    assert!(
        too_early.stderr.contains("waypost-api migrate"),
        "{too_early:?}"
    );

    let (waited, migrated) = tokio::join!(run(&["wait-for-migrations"]), run(&["migrate"]));
    assert!(migrated.success, "{migrated:?}");
    assert!(waited.success, "{waited:?}");
    assert_eq!(waited.stdout, "");
    let again = run(&["wait-for-migrations", "--timeout", "30s"]).await;
    assert!(again.success, "{again:?}");
}

#[tokio::test]
async fn waiting_ends_at_once_when_the_database_does_not_exist() {
    let app = TestApp::builder().processes().start().await;
    let mut variables = app.variables.clone();
    let url = variables["DATABASE_URL"].clone();
    variables.insert("DATABASE_URL".to_owned(), format!("{url}_of_nobody"));
    let finished = Program::Api.run(&["wait-for-migrations"], &variables).await;
    assert!(!finished.success, "{finished:?}");
    assert!(finished.stderr.contains("_of_nobody"), "{finished:?}");
}
