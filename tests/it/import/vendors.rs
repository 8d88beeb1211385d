//! What every vendor has, read whole and once.

use super::*;
use waypost_simulator::{ListKind, Listed};
use waypost_tests::Receiver;

/// A template of the vendor with this name.
fn template(source: ImportSource, nth: usize) -> Value {
    let name = format!("template-{nth:04}");
    match source {
        ImportSource::Sendgrid => sendgrid_template(nth, "<p>Hello {{name}}</p>"),
        ImportSource::Postmark => json!({
            "TemplateId": nth + 1, "Name": name, "Alias": format!("alias-{nth}"), "Active": true,
            "TemplateType": "Standard", "LayoutTemplate": null, "AssociatedServerId": 1,
            "Subject": "Hello {{name}}", "HtmlBody": "<p>Hello {{name}}</p>", "TextBody": null,
        }),
        ImportSource::Mailgun => json!({
            "name": name, "description": "", "createdAt": "", "createdBy": "", "id": "x",
            "version": { "tag": "initial", "template": "<p>Hello {{name}}</p>", "engine": "handlebars",
                         "active": true, "headers": { "Subject": "Hello {{name}}" } },
        }),
        ImportSource::Ses => json!({
            "TemplateName": name,
            "TemplateContent": { "Subject": "Hello {{name}}", "Html": "<p>Hello {{name}}</p>", "Text": "Hello {{name}}" },
        }),
        ImportSource::Resend => json!({
            "object": "template", "id": format!("34a080c9-b17d-4187-ad80-{nth:012}"),
            "alias": format!("alias-{nth}"), "name": name, "status": "published", "from": null,
            "reply_to": null, "subject": "Hello {{{name}}}", "html": "<p>Hello {{{name}}}</p>",
            "text": null, "variables": [{ "key": "name", "type": "string", "fallback_value": null }],
        }),
    }
}

/// More than one page of each vendor.
fn size(source: ImportSource) -> usize {
    match source {
        ImportSource::Sendgrid => 201,
        ImportSource::Postmark => 501,
        ImportSource::Mailgun | ImportSource::Ses | ImportSource::Resend => 101,
    }
}

fn listed() -> Vec<Listed> {
    vec![
        Listed::now("bounced@example.org", ListKind::Bounce),
        Listed::now("complained@example.org", ListKind::Complaint),
        Listed::now("left@example.org", ListKind::Unsubscribe),
        Listed::now("no address", ListKind::Bounce),
    ]
}

#[tokio::test]
async fn templates_of_several_pages_are_imported_once() {
    for source in ImportSource::ALL {
        let app = quiet().await;
        let count = size(source);
        set_templates(
            &app,
            source,
            (0..count).map(|nth| template(source, nth)).collect(),
        );
        let before = stored(&app).await;
        let dry = import(&app, source, &["--dry-run", "--only", "templates"]).await;
        assert_eq!(
            actions(&dry, "templates"),
            vec!["imported"; count],
            "{source}"
        );
        assert_eq!(stored(&app).await, before, "{source}");

        let first = import(&app, source, &["--only", "templates"]).await;
        assert_eq!(
            actions(&first, "templates"),
            vec!["imported"; count],
            "{source}"
        );
        let templates = app
            .value("SELECT count(DISTINCT current_version_id) FROM templates")
            .await;
        assert_eq!(templates, Some(count.to_string()), "{source}");
        let after = stored(&app).await;
        let second = import(&app, source, &["--only", "templates"]).await;
        assert_eq!(
            actions(&second, "templates"),
            vec!["unchanged"; count],
            "{source}"
        );
        assert_eq!(second["changedNothing"], true, "{source}");
        assert_eq!(stored(&app).await, after, "{source}");
    }
}

#[tokio::test]
async fn suppressions_keep_their_reasons_and_a_second_run_changes_nothing() {
    for source in ImportSource::ALL {
        let app = quiet().await;
        let (provider, credential) = simulated(source);
        app.simulator()
            .set_suppression_lists(provider, credential, listed());
        let before = stored(&app).await;
        let dry = import(&app, source, &["--dry-run", "--only", "suppressions"]).await;
        let imported = if source == ImportSource::Ses { 2 } else { 3 };
        let expected = json!({ "imported": imported, "unchanged": 0, "unusable": 1 });
        assert_eq!(
            section(&dry, "suppressions")["addresses"],
            expected,
            "{source}"
        );
        assert_eq!(stored(&app).await, before, "{source}");

        let done = import(&app, source, &["--only", "suppressions"]).await;
        assert_eq!(
            section(&done, "suppressions")["addresses"],
            expected,
            "{source}"
        );
        let sources = app
            .value("SELECT string_agg(source::text, ' ' ORDER BY source::text) FROM suppressions")
            .await;
        let expected = match source {
            ImportSource::Ses => "BOUNCE COMPLAINT",
            ImportSource::Sendgrid
            | ImportSource::Postmark
            | ImportSource::Mailgun
            | ImportSource::Resend => "BOUNCE COMPLAINT UNSUBSCRIBE",
        };
        assert_eq!(sources.as_deref(), Some(expected), "{source}");
        let after = stored(&app).await;
        let again = import(&app, source, &["--only", "suppressions"]).await;
        let unchanged = json!({ "imported": 0, "unchanged": imported, "unusable": 1 });
        assert_eq!(
            section(&again, "suppressions")["addresses"],
            unchanged,
            "{source}"
        );
        assert_eq!(stored(&app).await, after, "{source}");
    }
}

#[tokio::test]
async fn ten_thousand_suppressions_are_imported() {
    for source in [ImportSource::Sendgrid, ImportSource::Resend] {
        let app = quiet().await;
        let (provider, credential) = simulated(source);
        let listed =
            (0..10_000).map(|nth| Listed::now(&format!("r{nth}@example.org"), ListKind::Bounce));
        app.simulator()
            .set_suppression_lists(provider, credential, listed.collect());
        let done = import(&app, source, &["--only", "suppressions"]).await;
        let expected = json!({ "imported": 10_000, "unchanged": 0, "unusable": 0 });
        assert_eq!(
            section(&done, "suppressions")["addresses"],
            expected,
            "{source}"
        );
        let count = app.value("SELECT count(*) FROM suppressions").await;
        assert_eq!(count.as_deref(), Some("10000"), "{source}");
    }
}

#[tokio::test]
async fn domains_come_to_the_account_that_is_named() {
    let app = quiet().await;
    let account = app.connect(ProviderType::Sendgrid).await;
    let domains = ["one.example", "two.unverified.example"];
    app.simulator()
        .set_domains(Provider::SendGrid, "SG.good-key", &domains);
    let options = ["--only", "domains", "--account", &account];
    let before = stored(&app).await;
    let dry = import(
        &app,
        ImportSource::Sendgrid,
        &[&options[..], &["--dry-run"]].concat(),
    )
    .await;
    assert_eq!(actions(&dry, "domains"), ["imported", "imported"]);
    assert_eq!(stored(&app).await, before);
    import(&app, ImportSource::Sendgrid, &options).await;
    let names =
        "SELECT string_agg(domain || ' ' || state, ', ' ORDER BY domain) FROM provider_domains";
    assert_eq!(
        app.value(names).await.as_deref(),
        Some("one.example verified, two.unverified.example unverified")
    );
    let after = stored(&app).await;
    let again = import(&app, ImportSource::Sendgrid, &options).await;
    assert_eq!(actions(&again, "domains"), ["unchanged", "unchanged"]);
    assert_eq!(stored(&app).await, after);
}

#[tokio::test]
async fn domains_without_an_account_are_reported_with_what_to_do() {
    for source in ImportSource::ALL {
        let app = quiet().await;
        let (provider, credential) = simulated(source);
        let credential = match source {
            ImportSource::Postmark => "good-account",
            ImportSource::Sendgrid
            | ImportSource::Mailgun
            | ImportSource::Ses
            | ImportSource::Resend => credential,
        };
        app.simulator()
            .set_domains(provider, credential, &["example.com"]);
        let done = import(&app, source, &["--only", "domains"]).await;
        assert_eq!(actions(&done, "domains"), ["left out"], "{source}");
        let notes = section(&done, "domains")["notes"].to_string();
        assert!(notes.contains("/v1/providers"), "{source}: {notes}");
    }
}

#[tokio::test]
async fn webhooks_become_inactive_endpoints() {
    let app = quiet().await;
    let receiver = Receiver::start().await;
    let url = receiver.url();
    let webhook = |id: &str, url: &str, events: Value| json!({ "id": id, "endpoint": url, "events": events, "status": "enabled" });
    let objects = StoredObjects {
        webhooks: vec![
            webhook(
                "one",
                &url,
                json!([
                    "email.bounced",
                    "email.failed",
                    "email.suppressed",
                    "contact.created"
                ]),
            ),
            webhook("two", "http://127.0.0.1:9/nobody", json!(["email.sent"])),
            webhook(
                "three",
                "https://user:password@example.com/",
                json!(["email.sent"]),
            ),
            webhook("four", &format!("{url}/other"), json!(["contact.created"])),
        ],
        ..StoredObjects::default()
    };
    app.simulator()
        .set_stored_objects(Provider::Resend, "re_good", objects);
    let before = stored(&app).await;
    import(
        &app,
        ImportSource::Resend,
        &["--only", "webhooks", "--dry-run"],
    )
    .await;
    assert_eq!(stored(&app).await, before);
    let done = import(&app, ImportSource::Resend, &["--only", "webhooks"]).await;
    assert_eq!(
        actions(&done, "webhooks"),
        ["imported", "left out", "left out", "left out"]
    );
    let text = done.to_string();
    for part in [
        "no event for contact.created",
        "no server answers at its URL",
        "user name or a password",
        "rotate-secret",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let endpoints = app.get("/v1/webhook-endpoints").await.data(200);
    assert_eq!(endpoints.as_array().unwrap().len(), 1);
    assert_eq!(endpoints[0]["url"], url);
    assert_eq!(endpoints[0]["isActive"], false);
    assert_eq!(endpoints[0]["events"], json!(["BOUNCED", "DROPPED"]));
    let after = stored(&app).await;
    let again = import(&app, ImportSource::Resend, &["--only", "webhooks"]).await;
    assert_eq!(actions(&again, "webhooks")[0], "unchanged");
    assert_eq!(again["changedNothing"], true);
    assert_eq!(stored(&app).await, after);
}

#[tokio::test]
async fn webhooks_of_providers_are_read_and_those_of_waypost_left_out() {
    let app = quiet().await;
    let receiver = Receiver::start().await;
    for kind in [
        ProviderType::Sendgrid,
        ProviderType::Postmark,
        ProviderType::Mailgun,
    ] {
        let source = ImportSource::ALL
            .into_iter()
            .find(|source| source.provider_type() == Some(kind))
            .unwrap();
        let path = format!("{}/{}", receiver.url(), source.as_str());
        register(&app, source, &path).await;
        let account = app.connect(kind).await;
        let webhook = format!("/v1/providers/{account}/event-webhook");
        app.caller().post_empty(&webhook).await;
        let done = import(&app, source, &["--only", "webhooks", "--account", &account]).await;
        let objects = section(&done, "webhooks")["objects"].as_array().unwrap();
        let imported = objects.iter().find(|object| object["name"] == path);
        assert_eq!(imported.unwrap()["action"], "imported", "{done}");
        for other in objects.iter().filter(|object| object["name"] != path) {
            assert_eq!(other["action"], "left out", "{done}");
            assert_eq!(other["notes"], json!(["it is Waypost's own"]), "{done}");
        }
    }
    let done = import(&app, ImportSource::Ses, &["--only", "webhooks"]).await;
    let notes = section(&done, "webhooks")["notes"].to_string();
    assert!(notes.contains("SNS"), "{notes}");
}

/// Registers a webhook at the simulated vendor as its customer does.
async fn register(app: &TestApp, source: ImportSource, url: &str) {
    let base = app.simulator().url();
    let client = reqwest::Client::new();
    let request = match source {
        ImportSource::Sendgrid => client
            .post(format!("{base}/v3/user/webhooks/event/settings"))
            .bearer_auth("SG.good-key")
            .json(&json!({ "enabled": true, "url": url, "bounce": true, "open": true })),
        ImportSource::Postmark => client
            .post(format!("{base}/webhooks"))
            .header("X-Postmark-Server-Token", "good-server")
            .header("Accept", "application/json")
            .json(&json!({ "Url": url, "MessageStream": "outbound", "Triggers": { "Bounce": { "Enabled": true, "IncludeContent": false } } })),
        ImportSource::Mailgun => {
            let form = reqwest::multipart::Form::new();
            let form = form.text("id", "permanent_fail").text("url", url.to_owned());
            client
                .post(format!("{base}/v3/domains/example.com/webhooks"))
                .basic_auth("api", Some("good-key"))
                .multipart(form)
        }
        ImportSource::Ses | ImportSource::Resend => unreachable!("they have no such call"),
    };
    let response = request.send().await.unwrap();
    let status = response.status();
    let text = response.text().await.unwrap();
    assert!(status.is_success(), "{source}: {status} {text}");
}
