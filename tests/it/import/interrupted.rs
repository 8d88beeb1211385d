//! Vendors that fail, and imports that end early.

use super::*;
use waypost_simulator::{Fault, FaultCalls, FaultKind, ListKind, Listed};
use waypost_tests::wait_until;

fn fault(source: ImportSource, kind: FaultKind) -> Fault {
    Fault {
        provider: Some(simulated(source).0),
        kind,
        rate: 1.0,
        latency_ms: 300,
        calls: FaultCalls::All,
    }
}

#[tokio::test]
async fn a_wrong_key_is_named_and_nothing_is_written() {
    for source in ImportSource::ALL {
        let app = quiet().await;
        let wrong = key(source)
            .replace("good", "invalid")
            .replace("AKIAGOOD", "AKIAinvalid");
        let before = stored(&app).await;
        let options = ["--only", "suppressions,templates", "--json"];
        let finished = run(&app, source, &options, &wrong).await;
        assert!(!finished.success, "{source}");
        assert!(
            finished
                .stderr
                .contains("not complete: suppressions, templates"),
            "{finished:?}"
        );
        let problem = section(&report(&finished), "templates")["problem"].to_string();
        assert!(problem.contains("refused: HTTP 40"), "{source}: {problem}");
        assert!(!finished.stderr.contains("invalid-key"), "{finished:?}");
        assert_eq!(stored(&app).await, before, "{source}");
    }
}

#[tokio::test]
async fn a_vendor_that_fails_for_a_while_is_asked_again() {
    for source in ImportSource::ALL {
        let Some(provider_type) = source.provider_type() else {
            continue;
        };
        let app = quiet().await;
        let account = app.connect(provider_type).await;
        for kind in [FaultKind::Throttle, FaultKind::Error, FaultKind::Gateway] {
            app.simulator().set_fault(fault(source, kind));
            let organization = app.organization_id().to_string();
            let arguments = [
                "import",
                "--from",
                source.as_str(),
                "--organization",
                &organization,
                "--account",
                &account,
                "--only",
                "templates",
            ];
            let process = Program::Api.spawn(&arguments, &app.variables);
            wait_until("it says that it tries again", async || {
                process.log().contains("Trying again")
            })
            .await;
            app.simulator().clear_faults();
            wait_until("it reports", async || {
                process.log().contains("templates: 0 imported")
            })
            .await;
            let log = process.log();
            assert!(
                log.contains("templates: 0 imported"),
                "{source} {kind:?}: {log}"
            );
            assert!(!log.contains("NOT COMPLETE"), "{source} {kind:?}: {log}");
        }
    }
}

#[tokio::test]
async fn a_vendor_that_keeps_failing_ends_the_import_with_its_reason() {
    for source in ImportSource::ALL {
        let app = quiet().await;
        app.simulator().set_fault(fault(source, FaultKind::Error));
        let finished = run(
            &app,
            source,
            &["--only", "templates", "--json"],
            &key(source),
        )
        .await;
        assert!(!finished.success, "{source}");
        let problem = section(&report(&finished), "templates")["problem"].to_string();
        assert!(
            problem.contains("gave no usable answer"),
            "{source}: {problem}"
        );
        assert_eq!(
            finished.stderr.matches("Trying again").count(),
            3,
            "{finished:?}"
        );
    }
}

#[tokio::test]
async fn an_answer_that_is_none_is_no_empty_list() {
    for source in ImportSource::ALL {
        let app = quiet().await;
        // The simulator's own page is no list of anybody.
        let mut variables = app.variables.clone();
        let name = format!("WAYPOST_{}_BASE_URL", source.as_str().to_uppercase());
        variables.insert(name, format!("{}/captured/count?", app.simulator().url()));
        let organization = app.organization_id().to_string();
        let arguments = [
            "import",
            "--from",
            source.as_str(),
            "--organization",
            &organization,
            "--only",
            "templates",
            "--json",
        ];
        let finished = Program::Api
            .run_with_input(&arguments, &variables, &key(source))
            .await;
        assert!(!finished.success, "{source}: {finished:?}");
        assert_ne!(
            section(&report(&finished), "templates")["problem"],
            Value::Null
        );
    }
}

#[tokio::test]
async fn an_import_that_is_killed_goes_on_and_makes_nothing_twice() {
    const TEMPLATES: usize = 60;
    let app = quiet().await;
    let source = ImportSource::Sendgrid;
    let account = app.connect(ProviderType::Sendgrid).await;
    let templates = (0..TEMPLATES).map(|nth| sendgrid_template(nth, "<p>Hello {{name}}</p>"));
    set_templates(&app, source, templates.collect());
    let listed =
        (0..3_000).map(|nth| Listed::now(&format!("r{nth}@example.org"), ListKind::Bounce));
    app.simulator()
        .set_suppression_lists(Provider::SendGrid, "SG.good-key", listed.collect());
    let organization = app.organization_id().to_string();
    let arguments = [
        "import",
        "--from",
        "sendgrid",
        "--organization",
        &organization,
        "--account",
        &account,
        "--only",
        "suppressions,templates",
    ];
    for part in [5, 25, 45] {
        let mut process = Program::Api.spawn(&arguments, &app.variables);
        wait_until("some templates are imported", async || {
            let count = app.value("SELECT count(*) FROM templates").await.unwrap();
            count.parse::<usize>().unwrap() > part
        })
        .await;
        process.kill().await;
    }
    let options = ["--account", &account, "--only", "suppressions,templates"];
    let done = import(&app, source, &options).await;
    assert_eq!(
        section(&done, "suppressions")["addresses"]["unchanged"],
        3_000
    );
    let again = import(&app, source, &options).await;
    assert_eq!(again["changedNothing"], true);
    let counts = app
        .value(
            "SELECT concat_ws(' ', count(*), count(DISTINCT name), count(current_version_id),
                    (SELECT count(*) FROM template_versions), (SELECT count(fingerprint) FROM imported_objects))
             FROM templates",
        )
        .await;
    let expected = [TEMPLATES; 5].map(|count| count.to_string()).join(" ");
    assert_eq!(counts, Some(expected));
}

#[tokio::test]
async fn two_imports_at_once_make_one_template_each() {
    let app = quiet().await;
    let source = ImportSource::Sendgrid;
    let templates = (0..20).map(|nth| sendgrid_template(nth, "<p>Hello {{name}}</p>"));
    set_templates(&app, source, templates.collect());
    let only = ["--only", "templates"];
    let _both = tokio::join!(import(&app, source, &only), import(&app, source, &only));
    let counts = app
        .value("SELECT concat_ws(' ', count(*), count(DISTINCT name)) FROM templates")
        .await;
    assert_eq!(counts.as_deref(), Some("20 20"));
}
