//! Rules for the mailbox providers of recipients. A DNS server of the test has their MX records.

use std::time::Duration;

use chrono::TimeDelta;
use serde_json::{Value, json};
use waypost_tests::{DnsFailure, DnsServer, TestApp, message_to, wait_within};

use super::{PATH, create, path_of, two_accounts, with};

/// Longer than a process remembers that a domain is not known.
const SOON: Duration = Duration::from_secs(20);

async fn start(servers: &str) -> TestApp {
    TestApp::builder()
        .without_worker()
        .setting("WAYPOST_DNS_SERVERS", servers)
        .start()
        .await
}

/// Whether the account of the rule takes a message to these recipients.
async fn matches(app: &TestApp, account: &str, to: &[&str]) -> bool {
    let mut message = message_to("a@example.org");
    message["to"] = json!(to);
    let receipt = app.post("/v1/send", &message).await.expect(202);
    app.leave_work();
    receipt["providerId"] == account
}

async fn provider(app: &TestApp, domain: &str) -> Option<String> {
    let query = format!(
        "SELECT coalesce(provider, 'unknown') FROM mailbox_provider_domains WHERE domain = '{domain}'"
    );
    app.value(&query).await
}

#[tokio::test]
async fn the_providers_own_domains_match_at_once_and_all_recipients_must() {
    let app = start("none").await;
    let (_first, second) = two_accounts(&app).await;
    let google = json!({ "recipientMailboxProviders": ["google", "yahoo", "google"] });
    let rule = create(&app, &with(&second, &google)).await;
    assert_eq!(
        rule["recipientMailboxProviders"],
        json!(["google", "yahoo"])
    );
    assert!(matches(&app, &second, &["a@gmail.com", "b@AOL.com"]).await);
    assert!(!matches(&app, &second, &["a@gmail.com", "b@hotmail.com"]).await);
    // Nobody says where this domain has its mail.
    assert!(!matches(&app, &second, &["a@example.org"]).await);
    let path = path_of(&rule);
    let others = json!({ "recipientMailboxProviders": ["other"] });
    let changed = app.patch(&path, &others).await.data(200);
    assert_eq!(changed["recipientMailboxProviders"], json!(["other"]));
    assert!(!matches(&app, &second, &["a@example.org"]).await);
    let all = json!({ "recipientMailboxProviders": [] });
    app.patch(&path, &all).await.expect(200);
    assert!(matches(&app, &second, &["a@example.org"]).await);
    let wrong = json!({ "recipientMailboxProviders": ["aol"] });
    let refused = app.patch(&path, &wrong).await;
    refused.expect_issues(400, &["recipientMailboxProviders.0"]);
}

#[tokio::test]
async fn a_domain_is_looked_up_after_the_first_message_to_it() {
    let dns = DnsServer::start().await;
    dns.set(
        "MX",
        "hosted.example",
        &["1 aspmx.l.google.com", "5 mx.example.net"],
    );
    let app = start(&dns.setting()).await;
    let (_first, second) = two_accounts(&app).await;
    let google = json!({ "recipientMailboxProviders": ["google"] });
    create(&app, &with(&second, &google)).await;
    assert!(!matches(&app, &second, &["a@hosted.example"]).await);
    let reached = wait_within(SOON, async || {
        matches(&app, &second, &["a@hosted.example"]).await
    })
    .await;
    assert!(reached, "the domain is known");
    assert_eq!(dns.queries().len(), 1);
}

#[tokio::test]
async fn resolve_asks_dns_itself_and_names_the_condition() {
    let dns = DnsServer::start().await;
    let app = start(&dns.setting()).await;
    let (_first, second) = two_accounts(&app).await;
    let microsoft = json!({ "recipientMailboxProviders": ["microsoft"] });
    create(&app, &with(&second, &microsoft)).await;
    let resolve = async |domain: &str| -> Value {
        let message = json!({ "from": "news@example.com", "to": [format!("a@{domain}")] });
        let path = format!("{PATH}/resolve");
        let found = app.post(&path, &message).await.data(200);
        let reason = &found["passedOver"][0]["reason"];
        match reason.is_null() {
            true => found["account"]["id"].clone(),
            false => reason.clone(),
        }
    };
    let tenant = "tenant.mail.protection.outlook.com";
    dns.set("MX", "hosted.example", &[&format!("0 {tenant}")]);
    dns.fail("away.example", Some(DnsFailure::ServFail));
    assert_eq!(resolve("hosted.example").await, json!(second));
    assert!(matches(&app, &second, &["a@hosted.example"]).await);
    let reason = json!("RECIPIENT_MAILBOX_PROVIDER");
    assert_eq!(resolve("none.example").await, reason);
    assert_eq!(resolve("away.example").await, reason);
    let stored = provider(&app, "none.example").await;
    assert_eq!(stored.as_deref(), Some("other"));
    let stored = provider(&app, "away.example").await;
    assert_eq!(stored.as_deref(), Some("unknown"));
}

#[tokio::test]
async fn an_answer_is_renewed_weekly_kept_while_dns_fails_and_dropped_unless_wanted() {
    let dns = DnsServer::start().await;
    let app = start(&dns.setting()).await;
    let (_first, second) = two_accounts(&app).await;
    let google = json!({ "recipientMailboxProviders": ["google"] });
    create(&app, &with(&second, &google)).await;
    dns.set("MX", "hosted.example", &["1 smtp.google.com"]);
    matches(&app, &second, &["a@hosted.example"]).await;
    let is = async |wanted: Option<&str>| {
        let reached = wait_within(SOON, async || {
            provider(&app, "hosted.example").await.as_deref() == wanted
        })
        .await;
        assert!(reached, "the domain is looked up");
    };
    is(Some("google")).await;
    let asked = dns.queries().len();
    dns.fail("hosted.example", Some(DnsFailure::ServFail));
    app.advance(TimeDelta::days(7) + TimeDelta::seconds(1));
    let reached = wait_within(SOON, async || {
        let failures = "SELECT failures::text FROM mailbox_provider_domains WHERE failures > 0";
        app.value(failures).await.is_some()
    })
    .await;
    assert!(reached, "DNS is asked again");
    assert!(dns.queries().len() > asked);
    is(Some("google")).await;
    dns.fail("hosted.example", None);
    dns.set("MX", "hosted.example", &["1 mx.example.net"]);
    app.advance(TimeDelta::minutes(2));
    is(Some("other")).await;
    app.advance(TimeDelta::days(31));
    is(None).await;
}
