//! Versions in several languages: which one is current, and which one a message gets.

use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{SENDER, TestApp, untracked};

use super::{add_version, preview, quiet, template};

async fn translated(app: &TestApp, id: &str, locale: &Value) -> Value {
    let text = locale.as_str().unwrap_or("default");
    let content =
        json!({ "htmlContent": format!("<p>{text}</p>"), "locale": locale, "subject": text });
    add_version(app, id, &content).await.data(201)
}

#[tokio::test]
async fn a_send_gets_the_next_less_exact_language() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let id = template(&app).await;
    for locale in [json!(null), json!("de"), json!("DE-at"), json!("zh-Hant")] {
        translated(&app, &id, &locale).await;
    }
    for (number, (locale, shown)) in [
        (json!(null), "default"),
        (json!("de"), "de"),
        (json!("de-AT"), "DE-at"),
        (json!("de-at"), "DE-at"),
        (json!("de-CH"), "de"),
        (json!("de-AT-1901"), "DE-at"),
        (json!("zh-Hant-TW"), "zh-Hant"),
        (json!("zh-Hans"), "default"),
        (json!("fr"), "default"),
    ]
    .into_iter()
    .enumerate()
    {
        let to = format!("r{number}@example.org");
        let message = json!({
            "from": SENDER, "to": to, "templateId": id, "locale": locale, "tracking": untracked(),
        });
        let batch = json!({ "messages": [message] });
        let result = app.post("/v1/emails/batch", &batch).await.expect(200);
        assert_eq!(result["results"][0]["status"], "queued", "{result}");
        app.drain().await;
        let copy = app.captured_once(&to);
        assert_eq!(
            (copy.subject.as_str(), copy.html),
            (shown, Some(format!("<p>{shown}</p>")))
        );
        let previewed = preview(&app, &id, &json!({ "locale": locale }))
            .await
            .expect(200);
        assert_eq!(previewed["subject"], shown);
    }
}

#[tokio::test]
async fn a_version_is_current_for_its_language_alone() {
    let app = quiet().await;
    let id = template(&app).await;
    let path = format!("/v1/templates/{id}");
    let german = translated(&app, &id, &json!("de")).await;
    assert_eq!(german["locale"], "de");
    let shown = app.get(&path).await.data(200);
    assert_eq!(
        (&shown["currentVersionId"], &shown["currentVersion"]),
        (&json!(null), &json!(null))
    );
    let current = |body: &Value| -> Vec<(Value, u64)> {
        let rows = body["currentVersions"].as_array().unwrap().iter();
        rows.map(|row| {
            (
                row["locale"].clone(),
                row["versionNumber"].as_u64().unwrap(),
            )
        })
        .collect()
    };
    assert_eq!(current(&shown), [(json!("de"), 1)]);
    let default = translated(&app, &id, &json!(null)).await;
    let second = translated(&app, &id, &json!("de")).await;
    let list = app.get(&format!("{path}/versions")).await.expect(200);
    assert_eq!(list["currentVersionId"], default["id"]);
    assert_eq!(current(&list), [(json!(null), 2), (json!("de"), 3)]);
    assert_eq!(list["currentVersions"][1]["versionId"], second["id"]);
    let locales: Vec<&Value> = list["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["locale"])
        .collect();
    assert_eq!(locales, [&json!("de"), &json!(null), &json!("de")]);

    let back = format!("{path}/rollback/{}", german["id"].as_str().unwrap());
    let back = app.caller().post_empty(&back).await.data(200);
    assert_eq!(back["versionNumber"], 1);
    assert_eq!(
        current(&app.get(&path).await.data(200)),
        [(json!(null), 2), (json!("de"), 1)]
    );
    assert_eq!(
        app.get(&path).await.data(200)["currentVersionId"],
        default["id"]
    );
    app.delete(&path).await.expect(200);
    assert_eq!(
        app.value("SELECT count(*) FROM template_locales")
            .await
            .as_deref(),
        Some("0")
    );
}

#[tokio::test]
async fn a_template_without_a_fitting_version_is_one_without_a_version() {
    let app = quiet().await;
    app.connect(ProviderType::Sendgrid).await;
    let id = template(&app).await;
    translated(&app, &id, &json!("de")).await;
    for locale in [json!(null), json!("fr"), json!("d-x")] {
        let message =
            json!({ "from": SENDER, "to": "a@example.org", "templateId": id, "locale": locale });
        let reply = app.post("/v1/send", &message).await;
        let shown = preview(&app, &id, &json!({ "locale": locale })).await;
        if locale == "d-x" {
            reply.expect_issues(400, &["locale"]);
            shown.expect_issues(400, &["locale"]);
        } else {
            let error = reply.expect_issues(422, &["templateId"]);
            assert_eq!(error["details"]["reason"], "TEMPLATE_WITHOUT_VERSION");
            shown.expect_error(422, "VALIDATION_ERROR");
        }
    }
    let own = json!({ "from": SENDER, "to": "a@example.org", "subject": "s", "text": "t", "locale": "de" });
    app.post("/v1/send", &own)
        .await
        .expect_issues(400, &["locale"]);
    let version = app
        .get(&format!("/v1/templates/{id}/versions"))
        .await
        .data(200)[0]["id"]
        .clone();
    preview(&app, &id, &json!({ "locale": "de", "versionId": version }))
        .await
        .expect_issues(400, &["locale"]);
    let many: Vec<String> = ('a'..='z')
        .flat_map(|a| ('a'..='d').map(move |b| format!("{a}{b}x")))
        .collect();
    let mut last = None;
    for locale in many.iter().take(100) {
        last = Some(add_version(&app, &id, &json!({ "htmlContent": "x", "locale": locale })).await);
    }
    last.unwrap().expect_issues(400, &["locale"]);
    assert_eq!(
        app.value("SELECT count(*) FROM template_locales")
            .await
            .as_deref(),
        Some("100")
    );
}
