//! Events of domains whose DNS records are gone, by our own look-ups.

use chrono::TimeDelta;
use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{DnsFailure, DnsServer, Receiver, TestApp, wait_until};

use super::{fields, first, said, subscribe};

const PATH: &str = "/v1/sender-domains/example.com";
const DKIM: &str = "mx._domainkey.example.com";

async fn becomes(app: &TestApp, status: &str) {
    wait_until("the domain is looked up", async || {
        app.get(PATH).await.data(200)["status"] == status
    })
    .await;
}

/// Moves time until the next check was made.
async fn next_check(app: &TestApp, after: TimeDelta) {
    let checked = async || app.get(PATH).await.data(200)["checkedAt"].clone();
    let before = checked().await;
    app.advance(after);
    wait_until("the domain is looked up", async || {
        checked().await != before
    })
    .await;
}

#[tokio::test]
async fn a_domain_breaks_when_two_checks_miss_a_record_that_was_there() {
    let dns = DnsServer::start().await;
    dns.set("TXT", "example.com", &["v=spf1 include:mailgun.org ~all"]);
    dns.set("TXT", "mailgun.org", &["v=spf1 ip4:192.0.2.0/24 ~all"]);
    dns.set("TXT", DKIM, &["k=rsa; p=SIMULATED"]);
    let app = TestApp::builder()
        .setting("WAYPOST_DNS_SERVERS", &dns.setting())
        .start()
        .await;
    let receiver = Receiver::start().await;
    subscribe(&app, &receiver, &["DOMAIN_VERIFIED", "DOMAIN_BROKEN"]).await;
    let account = app.connect(ProviderType::Mailgun).await;
    // The row that makes it due has PostgreSQL's time; the test's clock stood still.
    app.advance(TimeDelta::minutes(1));
    becomes(&app, "complete").await;
    // A server that fails breaks nothing, however long.
    dns.fail(DKIM, Some(DnsFailure::ServFail));
    for _ in 0..3 {
        next_check(&app, TimeDelta::hours(7)).await;
    }
    assert_eq!(app.get(PATH).await.data(200)["brokenSince"], Value::Null);
    dns.fail(DKIM, None);
    next_check(&app, TimeDelta::hours(1)).await;
    becomes(&app, "complete").await;
    dns.set("TXT", DKIM, &[]);
    next_check(&app, TimeDelta::hours(7)).await;
    assert_eq!(app.get(PATH).await.data(200)["status"], "incomplete");
    app.drain().await;
    assert_eq!(receiver.count(), 0, "one check does not decide");
    next_check(&app, TimeDelta::minutes(11)).await;
    becomes(&app, "broken").await;
    app.drain().await;
    wait_until("it is announced", async || receiver.count() == 1).await;
    let domains = format!("/v1/providers/{account}/domains");
    let domain = app.get(&domains).await.data(200)[0].clone();
    let mut expected = json!({
        "domainId": domain["id"],
        "domain": "example.com",
        "providerAccountId": account,
        "state": "verified",
        "source": "dns",
        "records": [{ "type": "TXT", "name": DKIM, "purpose": "DKIM", "foundStatus": "missing" }],
    });
    let broken = first(&receiver, "DOMAIN_BROKEN");
    assert_eq!(said(&broken), expected);
    let example = waypost_tests::webhook_example("DOMAIN_BROKEN");
    assert_eq!(fields(&broken), fields(&example));
    // It is said once, and mail is sent all the same.
    next_check(&app, TimeDelta::hours(2)).await;
    app.send_to("ada@example.org").await;
    dns.set("TXT", DKIM, &["k=rsa; p=SIMULATED"]);
    next_check(&app, TimeDelta::hours(2)).await;
    becomes(&app, "complete").await;
    app.drain().await;
    wait_until("it is announced", async || receiver.count() == 2).await;
    expected["records"] = json!([]);
    assert_eq!(said(&first(&receiver, "DOMAIN_VERIFIED")), expected);
    assert_eq!(domain["isVerified"], true);
}
