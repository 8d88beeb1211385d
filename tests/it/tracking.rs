//! Tracking: pixels and links in sent mail, and the recording of opens and clicks.

mod bodies;
mod recording;
mod switches;

use chrono::TimeDelta;
use http::Method;
use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{Caller, Reply, SENDER, TestApp, event_types};

const ADA: &str = "ada@example.org";
const BOB: &str = "bob@example.org";
const TARGET: &str = "https://shop.example/offer?a=1&b=2#now";
/// A body with a link to the target.
const HTML: &str = "<html><body><p>Hello, <a href=\"https://shop.example/offer?a=1&amp;b=2#now\">look</a></p></body></html>";
const BROWSER: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:144.0) Gecko/20100101 Firefox/144.0";
/// The user agent of Apple's proxy.
const MACHINE: &str = "Mozilla/5.0";

async fn sending() -> TestApp {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    app
}

/// A message without tracking options.
fn message(to: &[&str], html: &str) -> Value {
    json!({
        "from": SENDER, "to": to, "subject": "Offer", "html": html,
        "text": "Look: https://shop.example/offer",
    })
}

/// A sent message, with the pixel and link of its first recipient.
struct Sent {
    id: String,
    /// The path of the pixel.
    pixel: String,
    /// The path of the first link.
    link: String,
}

/// Sends to one recipient and advances the clock by a second.
async fn sent_to(app: &TestApp, to: &str) -> Sent {
    let id = app.send(&message(&[to], HTML)).await;
    app.drain().await;
    // Events must be later than the sending.
    app.advance(TimeDelta::seconds(1));
    let html = html_to(app, to);
    Sent {
        id,
        pixel: path(&html, "<img src=\""),
        link: path(&html, "<a href=\""),
    }
}

/// The HTML of the latest mail to an address.
fn html_to(app: &TestApp, to: &str) -> String {
    let copies = app.captured(to);
    copies.last().unwrap().html.clone().unwrap()
}

/// The path of the first Waypost URL after these characters.
fn path(html: &str, before: &str) -> String {
    let mut urls = html
        .split(before)
        .skip(1)
        .filter_map(|rest| rest.split('"').next());
    let url = urls.find(|url| url.contains("/v1/t/"));
    let url = url.unwrap_or_else(|| panic!("nothing is tracked in {html}"));
    url[url.find("/v1/").unwrap()..].to_owned()
}

/// Requests a path with a user agent.
async fn fetch(caller: &Caller, path: &str, user_agent: &str) -> Reply {
    let request = |request: reqwest::RequestBuilder| request.header("user-agent", user_agent);
    caller.anonymous().call(Method::GET, path, request).await
}

/// Requests a path as a person's browser.
async fn read(app: &TestApp, path: &str) -> Reply {
    fetch(app.caller(), path, BROWSER).await
}

async fn head(caller: &Caller, path: &str) -> Reply {
    let caller = caller.anonymous();
    caller.call(Method::HEAD, path, |request| request).await
}

fn assert_pixel(reply: &Reply) {
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(reply.header("content-type"), Some("image/gif"));
    assert!(reply.text.starts_with("GIF89a"), "{reply:?}");
    assert!(reply.header("cache-control").unwrap().contains("no-store"));
}

fn assert_leads_to(reply: &Reply, target: &str) {
    assert_eq!(reply.status, 302, "{reply:?}");
    assert_eq!(reply.header("location"), Some(target));
    assert!(reply.header("cache-control").unwrap().contains("no-store"));
    assert_eq!(reply.header("referrer-policy"), Some("no-referrer"));
}

/// The opens and clicks in the history with their data, in order.
async fn seen(app: &TestApp) -> Vec<(String, Value)> {
    let query = "SELECT coalesce(jsonb_agg(jsonb_build_array(event_type, data) ORDER BY occurred_at, id), '[]')
                 FROM events WHERE event_type IN ('OPENED', 'CLICKED')";
    let rows: Value = serde_json::from_str(&app.value(query).await.unwrap()).unwrap();
    let rows = rows.as_array().unwrap().iter();
    rows.map(|row| (row[0].as_str().unwrap().to_owned(), row[1].clone()))
        .collect()
}

/// Delivered, opened and clicked in the metrics.
async fn totals(app: &TestApp) -> [i64; 3] {
    let summary = app.get("/v1/metrics/summary").await.data(200);
    ["totalDelivered", "totalOpened", "totalClicked"].map(|name| summary[name].as_i64().unwrap())
}

async fn through(kind: ProviderType) {
    let app = TestApp::start().await;
    app.connect(kind).await;
    let id = app.send(&message(&[ADA, BOB], HTML)).await;
    app.drain().await;
    app.advance(TimeDelta::seconds(1));
    let (ada, bob) = (html_to(&app, ADA), html_to(&app, BOB));
    let base = format!("http://{}", app.variables["WAYPOST_LISTEN"]);
    let (link, pixel) = (path(&ada, "<a href=\""), path(&ada, "<img src=\""));
    let expected = format!(
        "<html><body><p>Hello, <a href=\"{base}{link}\">look</a></p><img src=\"{base}{pixel}\" alt=\"\" width=\"1\" height=\"1\" style=\"border:0;width:1px;height:1px\"></body></html>"
    );
    assert_eq!(ada, expected);
    assert!(path(&bob, "<a href=\"") != link && path(&bob, "<img src=\"") != pixel);
    let text = app.captured_once(ADA).text.unwrap();
    assert_eq!(text.trim_end(), "Look: https://shop.example/offer");

    assert_pixel(&read(&app, &pixel).await);
    app.advance(TimeDelta::minutes(1));
    assert_leads_to(&read(&app, &link).await, TARGET);
    app.advance(TimeDelta::minutes(1));
    assert_pixel(&read(&app, &pixel).await);
    let opened = json!({ "isBot": false, "userAgent": BROWSER });
    let clicked = json!({ "isBot": false, "userAgent": BROWSER, "url": TARGET });
    assert_eq!(
        seen(&app).await,
        [
            ("OPENED".to_owned(), opened.clone()),
            ("CLICKED".to_owned(), clicked),
            ("OPENED".to_owned(), opened),
        ]
    );
    // Metrics count each recipient once.
    assert_eq!(totals(&app).await, [1, 1, 1]);
    let recipients = app.recipients(&id).await;
    let status = |of: usize| recipients[of]["status"].as_str().unwrap();
    assert_eq!((status(0), status(1)), ("DELIVERED", "SENT"));
    assert_eq!(
        event_types(&recipients[0]),
        ["QUEUED", "SENT", "DELIVERED", "OPENED", "CLICKED", "OPENED"]
    );
    assert_eq!(app.status(&id).await, "DELIVERED");
    let delivered_at = "SELECT count(delivered_at) FROM messages";
    assert_eq!(app.value(delivered_at).await.as_deref(), Some("1"));
    assert_leads_to(&read(&app, &path(&bob, "<a href=\"")).await, TARGET);
    assert_eq!(totals(&app).await, [2, 1, 2]);
}

#[tokio::test]
async fn opens_and_clicks_of_mail_through_sendgrid_are_recorded() {
    through(ProviderType::Sendgrid).await;
}

#[tokio::test]
async fn opens_and_clicks_of_mail_through_postmark_are_recorded() {
    through(ProviderType::Postmark).await;
}

#[tokio::test]
async fn opens_and_clicks_of_mail_through_mailgun_are_recorded() {
    through(ProviderType::Mailgun).await;
}

#[tokio::test]
async fn opens_and_clicks_of_mail_through_ses_are_recorded() {
    through(ProviderType::Ses).await;
}
