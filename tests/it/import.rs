//! `waypost-api import`: from every vendor, as an operator runs it.

mod conversions;
mod interrupted;
mod templates;
mod vendors;

use serde_json::{Value, json};
use waypost_core::import::ImportSource;
use waypost_core::provider::kind::ProviderType;
use waypost_simulator::{Provider, StoredObjects};
use waypost_tests::{Finished, Program, TestApp, credentials};

/// The simulated vendor of a source, and the credential that its objects belong to.
fn simulated(source: ImportSource) -> (Provider, &'static str) {
    match source {
        ImportSource::Sendgrid => (Provider::SendGrid, "SG.good-key"),
        ImportSource::Postmark => (Provider::Postmark, "good-server"),
        ImportSource::Mailgun => (Provider::Mailgun, "good-key"),
        ImportSource::Ses => (Provider::Ses, "AKIAGOOD"),
        ImportSource::Resend => (Provider::Resend, "re_good"),
    }
}

/// What standard input has.
fn key(source: ImportSource) -> String {
    match source.provider_type() {
        Some(kind) => credentials(kind).to_string(),
        None => "re_good\n".to_owned(),
    }
}

async fn quiet() -> TestApp {
    TestApp::builder().without_worker().start().await
}

fn set_templates(app: &TestApp, source: ImportSource, templates: Vec<Value>) {
    let (provider, credential) = simulated(source);
    let objects = StoredObjects {
        templates,
        ..StoredObjects::default()
    };
    app.simulator()
        .set_stored_objects(provider, credential, objects);
}

/// Runs the command with these options besides.
async fn run(app: &TestApp, source: ImportSource, options: &[&str], input: &str) -> Finished {
    let organization = app.organization_id().to_string();
    let from = ["import", "--from", source.as_str(), "--organization"];
    let arguments = [&from[..], &[organization.as_str()], options].concat();
    Program::Api
        .run_with_input(&arguments, &app.variables, input)
        .await
}

/// The report of a run that is complete.
async fn import(app: &TestApp, source: ImportSource, options: &[&str]) -> Value {
    let options = [options, &["--json"]].concat();
    let finished = run(app, source, &options, &key(source)).await;
    assert!(finished.success, "{source} {options:?}: {finished:?}");
    report(&finished)
}

fn report(finished: &Finished) -> Value {
    serde_json::from_str(&finished.stdout).unwrap_or_else(|error| panic!("{error}: {finished:?}"))
}

/// The section of a kind.
fn section<'a>(report: &'a Value, kind: &str) -> &'a Value {
    let sections = report["sections"].as_array().unwrap();
    let found = sections.iter().find(|section| section["kind"] == kind);
    found.unwrap_or_else(|| panic!("{kind}: {report}"))
}

/// The actions of the objects of a kind, in their order.
fn actions(report: &Value, kind: &str) -> Vec<String> {
    let objects = section(report, kind)["objects"].as_array().unwrap().iter();
    objects
        .map(|object| object["action"].as_str().unwrap().to_owned())
        .collect()
}

/// Everything that an import may write.
async fn stored(app: &TestApp) -> Option<String> {
    let query = "SELECT concat_ws(' ', (SELECT count(*) FROM templates), (SELECT count(*) FROM template_versions),
                    (SELECT count(*) FROM imported_objects), (SELECT count(*) FROM suppressions),
                    (SELECT count(*) FROM webhook_endpoints), (SELECT count(*) FROM provider_domains),
                    (SELECT count(*) FROM audit_logs))";
    app.value(query).await
}

/// A SendGrid template with one active version.
fn sendgrid_template(nth: usize, html: &str) -> Value {
    json!({
        "id": format!("d-{nth:032x}"), "name": format!("Template {nth}"), "generation": "dynamic",
        "updated_at": "2026-01-01 00:00:00",
        "versions": [
            { "id": "old", "active": 0, "name": "old", "subject": "Old", "html_content": "<p>Old</p>",
              "plain_content": "Old", "generate_plain_content": true },
            { "id": "new", "active": 1, "name": "new", "subject": "Hello {{name}}",
              "html_content": html, "plain_content": "", "generate_plain_content": true },
        ],
    })
}

#[tokio::test]
async fn a_key_is_never_an_argument_and_its_problems_are_named() {
    let app = quiet().await;
    for (source, input, part) in [
        (ImportSource::Sendgrid, "", "standard input has no key"),
        (
            ImportSource::Ses,
            "AKIA",
            "credentials must be a JSON object",
        ),
        (ImportSource::Ses, "{}", "credentials.accessKeyId"),
        (
            ImportSource::Postmark,
            "{\"apiKey\": \"x\"}",
            "credentials.serverToken",
        ),
    ] {
        let finished = run(&app, source, &[], input).await;
        assert!(!finished.success, "{finished:?}");
        assert!(finished.stderr.contains(part), "{part}: {finished:?}");
        assert!(!finished.stderr.contains("AKIA"), "{finished:?}");
    }
    let sendgrid = app.connect(ProviderType::Sendgrid).await;
    let finished = run(&app, ImportSource::Ses, &["--account", &sendgrid], "").await;
    assert!(
        finished
            .stderr
            .contains("is of SENDGRID, not of Amazon SES"),
        "{finished:?}"
    );
    let nobody = "0190b5a0-0000-7000-8000-000000000000";
    let finished = run(&app, ImportSource::Ses, &["--account", nobody], "").await;
    assert!(
        finished.stderr.contains("has no provider account"),
        "{finished:?}"
    );
    let finished = run(&app, ImportSource::Ses, &["--organization", nobody], "").await;
    assert!(!finished.success, "{finished:?}");
}
