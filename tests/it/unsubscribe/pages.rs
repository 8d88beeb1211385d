//! The pages that recipients see.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use serde_json::json;
use sha2::{Digest, Sha256};
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{Reply, TestApp};

use super::{
    BROWSER, assert_unsubscribed, follow, follow_at, group, link_of, linked, message_in, path_of,
    sending, undo,
};

/// Checks the properties that every page has.
fn check(reply: &Reply) {
    let page = &reply.text;
    let html = reply.header("content-type").unwrap();
    assert_eq!(html, "text/html; charset=utf-8", "{reply:?}");
    for (name, value) in [
        ("cache-control", "no-store"),
        ("referrer-policy", "no-referrer"),
        ("x-robots-tag", "noindex"),
        ("x-content-type-options", "nosniff"),
    ] {
        assert_eq!(reply.header(name), Some(value), "{reply:?}");
    }
    let language = reply.header("content-language").unwrap();
    let start = format!("<!DOCTYPE html>\n<html lang=\"{language}\">");
    assert!(page.starts_with(&start), "{page}");
    assert_eq!(reply.header("vary"), Some("Accept-Language"), "{reply:?}");
    let title = between(page, "<title>", "</title>");
    assert!(!title.is_empty());
    assert_eq!(between(page, "<h1>", "</h1>"), title);
    for tag in [
        "<main>",
        "</main>",
        "<h1>",
        "<title>",
        "name=\"viewport\"",
        "</html>",
    ] {
        assert_eq!(page.matches(tag).count(), 1, "{tag} in {page}");
    }
    for tag in [
        "<script", "<link", "<img", "<iframe", "http:", "https:", "url(", "@import", "{{",
    ] {
        assert!(!page.contains(tag), "{tag} in {page}");
    }
    // The only style is the one that the policy allows.
    let style = between(page, "<style>", "</style>");
    let hash = STANDARD.encode(Sha256::digest(style));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{hash}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    );
    assert_eq!(
        reply.header("content-security-policy"),
        Some(policy.as_str())
    );
    assert!(!page.contains("style="), "{page}");
}

fn between<'a>(page: &'a str, start: &str, end: &str) -> &'a str {
    let (_, rest) = page.split_once(start).unwrap_or_else(|| panic!("{page}"));
    rest.split_once(end).unwrap_or_else(|| panic!("{page}")).0
}

#[tokio::test]
async fn every_page_is_plain_and_names_sender_and_group() {
    let app = sending().await;
    let news = group(&app, "News & more").await;
    let mut message = message_in(&news, &["ada@example.org"]);
    message["from"] = "Ada Lovelace <news@example.com>".into();
    app.send(&message).await;
    app.drain().await;
    let link = link_of(&app.captured_once("ada@example.org"));
    let done = follow(&app, &link).await;
    assert_unsubscribed(&done);
    let undone = undo(&app, &link).await;
    for page in [&done, &undone] {
        check(page);
        assert!(
            page.text.contains("Ada Lovelace &lt;news@example.com&gt;"),
            "{page:?}"
        );
        assert!(page.text.contains("News &amp; more"), "{page:?}");
        assert_eq!(page.text.matches("<form method=\"post\"").count(), 1);
        assert!(!page.text.contains("ada@example.org"), "{page:?}");
    }
    assert!(done.text.contains(">Undo</button>"), "{done:?}");
    assert!(undone.text.contains(">Unsubscribe</button>"), "{undone:?}");
    check(&follow(&app, &format!("{link}x")).await);
    app.advance(chrono::TimeDelta::days(60));
    check(&follow(&app, &link).await);
}

/// Requests a page as a browser with these languages.
async fn in_languages(app: &TestApp, method: Method, path: &str, languages: &str) -> Reply {
    let call = |request: reqwest::RequestBuilder| {
        request
            .header("user-agent", BROWSER)
            .header("accept-language", languages)
    };
    app.caller().anonymous().call(method, path, call).await
}

#[tokio::test]
async fn a_page_is_in_the_language_that_the_browser_prefers() {
    let app = sending().await;
    let news = group(&app, "News").await;
    let (_, link) = linked(&app, &news, "ada@example.org").await;
    let path = path_of(&link);
    for (languages, tag, title, button) in [
        (
            "de-AT,de;q=0.9,en;q=0.8",
            "de",
            "Sie sind abgemeldet",
            "Rückgängig machen",
        ),
        (
            "ja, fr-CA;q=0.7, de;q=0.3",
            "fr",
            "Votre désabonnement est enregistré",
            "Annuler le désabonnement",
        ),
        ("es-419", "es", "Su suscripción está cancelada", "Deshacer"),
        ("en-GB,de;q=0.5", "en", "You are unsubscribed", "Undo"),
        ("ja,zh;q=0.5", "en", "You are unsubscribed", "Undo"),
        ("de;q=0", "en", "You are unsubscribed", "Undo"),
        (";;,q=,de;q=2", "en", "You are unsubscribed", "Undo"),
    ] {
        let page = in_languages(&app, Method::GET, path, languages).await;
        check(&page);
        assert_eq!(page.status, 200, "{page:?}");
        assert_eq!(page.header("content-language"), Some(tag), "{languages}");
        assert_eq!(between(&page.text, "<h1>", "</h1>"), title, "{languages}");
        assert!(
            page.text.contains(&format!(">{button}</button>")),
            "{page:?}"
        );
    }
}

#[tokio::test]
async fn every_page_is_translated_even_one_that_knows_nothing_of_the_link() {
    let app = sending().await;
    let news = group(&app, "News").await;
    let (_, link) = linked(&app, &news, "ada@example.org").await;
    let path = path_of(&link);
    let undo = format!("{path}/undo");
    let bad = "/v1/unsubscribe/nothing";
    for (method, path, status, title) in [
        (Method::GET, path, 200, "Sie sind abgemeldet"),
        (
            Method::GET,
            undo.as_str(),
            200,
            "Möchten Sie sich wieder anmelden?",
        ),
        (Method::POST, &undo, 200, "Sie sind wieder angemeldet"),
        (Method::POST, path, 200, "Sie sind abgemeldet"),
        (Method::GET, bad, 400, "Dieser Link ist ungültig"),
        (
            Method::GET,
            "/v1/t/c/nothing",
            400,
            "Dieser Link ist ungültig",
        ),
    ] {
        let page = in_languages(&app, method, path, "de").await;
        check(&page);
        assert_eq!(page.status, status, "{page:?}");
        assert_eq!(between(&page.text, "<h1>", "</h1>"), title);
    }
    suppress(&app, "ada@example.org").await;
    let page = in_languages(&app, Method::POST, &undo, "fr").await;
    check(&page);
    assert_eq!(
        between(&page.text, "<h1>", "</h1>"),
        "Vous ne recevrez toujours pas de messages"
    );
    assert!(!page.text.contains("<form"), "{page:?}");
    app.advance(chrono::TimeDelta::days(60));
    let page = in_languages(&app, Method::GET, path, "es").await;
    check(&page);
    assert_eq!(
        (page.status, between(&page.text, "<h1>", "</h1>")),
        (410, "Este enlace ha caducado")
    );
}

async fn suppress(app: &TestApp, email: &str) {
    let body = json!({ "email": email });
    app.post(super::SUPPRESSIONS, &body).await.data(201);
}

#[tokio::test]
async fn a_page_has_the_name_and_the_colour_of_the_organization() {
    let app = sending().await;
    let news = group(&app, "News").await;
    let (_, link) = linked(&app, &news, "ada@example.org").await;
    let neutral = follow(&app, &link).await;
    assert!(
        neutral
            .text
            .contains("<header><p><bdi>Tests</bdi></p></header>"),
        "{neutral:?}"
    );
    assert!(
        neutral.text.contains("--brand:#334155;--on-brand:#ffffff;"),
        "{neutral:?}"
    );
    for (color, on_brand, is_edge) in [
        ("#1A73E8", "#ffffff", true),
        ("#ffe100", "#000000", false),
        ("#ffffff", "#000000", false),
        ("#000000", "#ffffff", true),
    ] {
        let change = json!({ "name": "<b>Müller</b> & Söhne", "brandColor": color });
        app.patch("/v1/settings", &change).await.data(200);
        let page = follow(&app, &link).await;
        check(&page);
        let color = color.to_lowercase();
        let brand = format!("--brand:{color};--on-brand:{on_brand};");
        assert_eq!(
            page.text.matches(&brand).count(),
            2,
            "light and dark: {page:?}"
        );
        let light = between(&page.text, "<style>", "@media");
        let edge = format!("--button-edge:{color};");
        assert_eq!(light.contains(&edge), is_edge, "{light}");
        assert!(
            page.text
                .contains("<bdi>&lt;b&gt;Müller&lt;/b&gt; &amp; Söhne</bdi>"),
            "{page:?}"
        );
    }
    // A link that is not valid does not say whose it is.
    let bad = follow(&app, &format!("{link}x")).await;
    check(&bad);
    for word in [
        "Müller",
        "#000000;--on-brand",
        "News",
        "example",
        "<header>",
    ] {
        assert!(!bad.text.contains(word), "{word}: {bad:?}");
    }
}

#[tokio::test]
async fn the_address_on_a_page_is_masked() {
    let app = sending().await;
    let news = group(&app, "News").await;
    let long = format!("{}@{}.example", "x".repeat(64), "long-label".repeat(5));
    for (address, masked) in [
        ("ada@example.org", "a•••@example.org".to_owned()),
        ("a@example.org", "•••@example.org".to_owned()),
        ("\"john doe\"@example.org", "j•••@example.org".to_owned()),
        ("_ada@example.org", "•••@example.org".to_owned()),
        ("ada@münchen.example", "a•••@münchen.example".to_owned()),
        (&long, format!("x•••@{}.example", "long-label".repeat(5))),
    ] {
        app.send(&message_in(&news, &[address])).await;
        app.drain().await;
        let link = link_of(&app.captured_once(&address.replace("münchen", "xn--mnchen-3ya")));
        let page = follow(&app, &link).await;
        check(&page);
        assert_eq!(
            between(&page.text, "<dd><bdi>", "</bdi></dd>"),
            masked,
            "{page:?}"
        );
        assert!(!page.text.contains(address), "{page:?}");
    }
}

#[tokio::test]
async fn a_preview_is_the_page_of_a_recipient() {
    let app = sending().await;
    let news = group(&app, "News & more").await;
    let change = json!({ "name": "Example Shop", "brandColor": "#1a73e8" });
    app.patch("/v1/settings", &change).await.data(200);
    let path = format!("/v1/unsubscribe-groups/{news}/page-preview");
    let german = app.get(&format!("{path}?language=de")).await.data(200);
    let html = german["html"].as_str().unwrap();
    assert!(
        html.starts_with("<!DOCTYPE html>\n<html lang=\"de\">"),
        "{html}"
    );
    for part in [
        "Sie sind abgemeldet",
        "News &amp; more",
        "Example Shop",
        "a•••@example.com",
        "--brand:#1a73e8",
    ] {
        assert!(html.contains(part), "{part} in {html}");
    }
    let (_, link) = linked(&app, &news, "ada@example.org").await;
    let real = follow(&app, &link).await;
    let english = app.get(&path).await.data(200);
    let english = english["html"].as_str().unwrap();
    assert_eq!(
        between(english, "<style>", "</style>"),
        between(&real.text, "<style>", "</style>")
    );
    assert_eq!(
        between(english, "<h1>", "</h1>"),
        between(&real.text, "<h1>", "</h1>")
    );
    app.get(&format!("{path}?language=it"))
        .await
        .expect_issues(400, &["language"]);
    let stranger = app.tenant("Other").await.caller;
    stranger.get(&path).await.expect_error(404, "NOT_FOUND");
}

#[tokio::test]
async fn a_suppression_names_the_message_that_caused_it() {
    let app = sending().await;
    let news = group(&app, "News").await;
    suppress(&app, "eve@example.org").await;
    let (id, link) = linked(&app, &news, "ada@example.org").await;
    assert_unsubscribed(&follow(&app, &link).await);
    let rows = app.get(super::SUPPRESSIONS).await.data(200);
    let messages = [&rows[0]["messageId"], &rows[1]["messageId"]];
    assert_eq!(messages, [&json!(id), &serde_json::Value::Null]);
}

#[tokio::test]
async fn hostile_names_are_escaped() {
    let app = sending().await;
    let name = "<script>alert(1)</script>\"'`=&{{7}}</main><h1>";
    let evil = group(&app, name).await;
    let mut message = message_in(&evil, &["ada@example.org"]);
    message["from"] =
        r#""<img src=x onerror=alert(1)> {{group}} & 'Co'" <news@example.com>"#.into();
    app.send(&message).await;
    app.drain().await;
    let link = link_of(&app.captured_once("ada@example.org"));
    for page in [follow(&app, &link).await, undo(&app, &link).await] {
        assert_eq!(page.status, 200);
        let text = page.text.as_str();
        assert!(text.contains("&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#x27;&#x60;&#x3D;&amp;{{7}}&lt;/main&gt;&lt;h1&gt;"), "{text}");
        assert!(
            text.contains("&lt;img src&#x3D;x onerror&#x3D;alert(1)&gt;"),
            "{text}"
        );
        assert!(text.contains("{{group}} &amp; &#x27;Co&#x27;"), "{text}");
        for tag in ["<script", "<img", "onerror=alert"] {
            assert!(!text.contains(tag), "{tag} in {text}");
        }
        assert_eq!(text.matches("<h1>").count(), 1, "{text}");
    }
    // The mail does not contain the group's name.
    let copy = app.captured_once("ada@example.org");
    assert!(!copy.html.unwrap().contains("script"));
}

#[tokio::test]
async fn a_get_of_the_undo_url_shows_a_page_and_changes_nothing() {
    let app = sending().await;
    let news = group(&app, "News").await;
    let (_, link) = linked(&app, &news, "ada@example.org").await;
    assert_eq!(super::follow(&app, &link).await.status, 200);
    let anonymous = app.caller().anonymous();
    let page = anonymous.get(&format!("{}/undo", path_of(&link))).await;
    assert_eq!(page.status, 200, "{page:?}");
    assert!(page.text.contains("News"), "{page:?}");
    assert!(page.text.contains("action=\"undo\""), "{page:?}");
    assert_eq!(super::suppressions(&app).await.len(), 1);
    let no_link = anonymous.get("/v1/unsubscribe/nothing/undo").await;
    assert_eq!(no_link.status, 400, "{no_link:?}");
    assert!(no_link.text.starts_with("<!DOCTYPE html>"), "{no_link:?}");
}

#[tokio::test]
async fn other_methods_and_paths_are_refused_with_the_error_format_of_the_api() {
    let app = sending().await;
    let news = group(&app, "News").await;
    let (_, link) = linked(&app, &news, "ada@example.org").await;
    let anonymous = app.caller().anonymous();
    let path = path_of(&link);
    anonymous
        .delete(path)
        .await
        .expect_error(405, "METHOD_NOT_ALLOWED");
    for path in [
        "/v1/unsubscribe",
        "/v1/unsubscribe/",
        &format!("{path}/more"),
    ] {
        let reply = anonymous.get(path).await;
        assert!([400, 404].contains(&reply.status), "{path}: {reply:?}");
    }
    assert_eq!(super::suppressions(&app).await, []);
}

#[tokio::test]
async fn the_api_description_lists_the_pages_as_public() {
    let app = TestApp::builder().without_worker().start().await;
    let document = app.document().await;
    let operations = &document["paths"]["/v1/unsubscribe/{token}"];
    for method in ["get", "head", "post"] {
        let operation = &operations[method];
        assert_eq!(operation["security"], json!([]), "{operation}");
        let answers = operation["responses"].as_object().unwrap();
        let statuses: Vec<&String> = answers.keys().collect();
        assert_eq!(statuses, ["200", "400", "410", "429", "500", "503"]);
        assert!(answers["200"]["content"]["text/html"].is_object());
    }
}

#[tokio::test]
async fn invalid_links_count_against_the_limit_of_anonymous_clients_and_valid_ones_do_not() {
    let app = TestApp::builder()
        .setting("WAYPOST_RATE_LIMIT_ANONYMOUS_PER_MINUTE", "20")
        .start()
        .await;
    app.connect(ProviderType::Sendgrid).await;
    let group = group(&app, "News").await;
    let (_, link) = linked(&app, &group, "ada@example.org").await;
    let anonymous = app.caller().anonymous();
    let mut replies = Vec::new();
    // The limit refills during the test.
    for _ in 0..60 {
        let reply = anonymous.get("/v1/unsubscribe/nonsense").await;
        let status = reply.status;
        replies.push(reply);
        if status != 400 {
            break;
        }
    }
    assert!(replies.len() > 20, "{}", replies.len());
    let last = replies.last().unwrap();
    assert_eq!(last.status, 429, "{last:?}");
    assert!(last.text.contains("<h1>Too many attempts</h1>"), "{last:?}");
    let wait: u64 = last.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    for _ in 0..3 {
        let reply = follow_at(&anonymous, &link).await;
        assert_eq!(reply.status, 200, "{reply:?}");
    }
}
