//! Sender domains across accounts: what our own look-ups in DNS say, beside the provider's
//! verdict. A DNS server of the test answers.

use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{DnsFailure, DnsServer, TestApp, credentials, wait_until};

const DOMAIN: &str = "example.com";
const PATH: &str = "/v1/sender-domains/example.com";
const MAILGUN_DKIM: &str = "mx._domainkey.example.com";

/// Without a scheduler: a domain is looked up only when a test asks for it.
async fn start(dns: &DnsServer) -> TestApp {
    TestApp::builder()
        .without_worker()
        .without_scheduler()
        .setting("WAYPOST_DNS_SERVERS", &dns.setting())
        .start()
        .await
}

/// Publishes what the simulated Mailgun wants of example.com.
fn publish_mailgun(dns: &DnsServer) {
    dns.set(
        "TXT",
        DOMAIN,
        &["v=spf1 include:mailgun.org ~all", "other=1"],
    );
    dns.set("TXT", "mailgun.org", &["v=spf1 ip4:192.0.2.0/24 ~all"]);
    dns.set("TXT", MAILGUN_DKIM, &["v=DKIM1; k=rsa; p=SIMU LATED"]);
    dns.set("CNAME", "email.example.com", &["Mailgun.ORG."]);
}

async fn check(app: &TestApp) -> Value {
    let path = format!("{PATH}/check");
    app.caller().post_empty(&path).await.data(200)
}

/// The found statuses of an account's records, by name and type.
fn statuses(report: &Value, account: &str) -> Vec<(String, String)> {
    let accounts = report["accounts"].as_array().unwrap();
    let mut accounts = accounts.iter();
    let account = accounts.find(|one| one["providerAccountId"] == account);
    let records = account.unwrap()["records"].as_array().unwrap().iter();
    let mut found: Vec<(String, String)> = records
        .map(|record| {
            let text = |field: &str| record[field].as_str().unwrap().to_owned();
            let name = format!("{} {}", text("type"), text("name"));
            (name, text("foundStatus"))
        })
        .collect();
    found.sort();
    found.dedup();
    found
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(name, status): &(&str, &str)| ((*name).to_owned(), (*status).to_owned());
    expected.iter().map(owned).collect()
}

fn codes(report: &Value) -> Vec<&str> {
    let conflicts = report["conflicts"].as_array().unwrap().iter();
    conflicts.map(|one| one["code"].as_str().unwrap()).collect()
}

/// The message of the only conflict with this code.
fn message<'a>(report: &'a Value, code: &str) -> &'a str {
    let conflicts = report["conflicts"].as_array().unwrap();
    let mut found = conflicts.iter().filter(|one| one["code"] == code);
    let message = found
        .next()
        .unwrap_or_else(|| panic!("no {code}: {report}"));
    assert!(found.next().is_none(), "{report}");
    message["message"].as_str().unwrap()
}

#[tokio::test]
async fn each_record_is_compared_with_what_dns_has() {
    let dns = DnsServer::start().await;
    let app = start(&dns).await;
    let mailgun = app.connect(ProviderType::Mailgun).await;
    let sendgrid = app.connect(ProviderType::Sendgrid).await;
    let before = app.get(PATH).await.data(200);
    assert_eq!(
        (&before["status"], &before["checkedAt"]),
        (&json!("unknown"), &Value::Null)
    );
    assert_eq!(before["conflicts"], json!([]));
    publish_mailgun(&dns);
    dns.set("CNAME", "em1.example.com", &["elsewhere.example.net"]);
    dns.set(
        "CNAME",
        "s1._domainkey.example.com",
        &["s1._domainkey.u7.wl.sendgrid.net"],
    );
    let report = check(&app).await;
    let expected = [
        ("CNAME email.example.com", "match"),
        ("TXT example.com", "match"),
        ("TXT mx._domainkey.example.com", "match"),
    ];
    assert_eq!(statuses(&report, &mailgun), pairs(&expected));
    let expected = [
        ("CNAME em1.example.com", "mismatch"),
        ("CNAME s1._domainkey.example.com", "match"),
        ("CNAME s2._domainkey.example.com", "missing"),
    ];
    assert_eq!(statuses(&report, &sendgrid), pairs(&expected));
    assert_eq!(report["status"], "incomplete");
    let dkim = report["dkim"].as_array().unwrap();
    let expected = json!({
        "providerAccountId": mailgun, "selector": "mx", "name": MAILGUN_DKIM, "status": "match",
    });
    assert!(dkim.contains(&expected), "{report}");
    assert_eq!(app.get(PATH).await.data(200), report);
    // The same in the list of an account's domains.
    let path = format!("/v1/providers/{sendgrid}/domains");
    let domains = app.get(&path).await.data(200);
    let mut domains = domains.as_array().unwrap().iter();
    let domain = domains.find(|one| one["domain"] == DOMAIN).unwrap();
    assert_eq!(domain["dnsCheckedAt"], report["checkedAt"]);
    let records = domain["dnsRecords"].as_array().unwrap();
    let record = records.iter().find(|one| one["name"] == "em1.example.com");
    let record = record.unwrap();
    assert_eq!(record["foundStatus"], "mismatch");
    assert_eq!(record["found"], json!(["elsewhere.example.net"]));
    dns.set("CNAME", "em1.example.com", &["u7.wl.sendgrid.net"]);
    dns.set(
        "CNAME",
        "s2._domainkey.example.com",
        &["s2._domainkey.u7.wl.sendgrid.net"],
    );
    assert_eq!(check(&app).await["status"], "complete");
    let list = app.get("/v1/sender-domains").await.data(200);
    let list = list.as_array().unwrap();
    let own = list.iter().find(|one| one["domain"] == DOMAIN).unwrap();
    assert_eq!(own["status"], "complete");
    assert_eq!(own["conflicts"], json!(["DMARC_MISSING"]));
    assert_eq!(own["providerAccountIds"].as_array().unwrap().len(), 2);
    let names: Vec<&str> = list
        .iter()
        .map(|one| one["domain"].as_str().unwrap())
        .collect();
    assert!(names.is_sorted(), "{names:?}");
}

#[tokio::test]
async fn one_spf_record_serves_all_accounts_and_its_look_ups_are_counted() {
    let dns = DnsServer::start().await;
    let app = start(&dns).await;
    app.connect(ProviderType::Mailgun).await;
    let missing = check(&app).await;
    assert_eq!(missing["spf"]["status"], "missing");
    assert_eq!(
        missing["spf"]["recommended"],
        "v=spf1 include:mailgun.org ~all"
    );
    publish_mailgun(&dns);
    dns.set("TXT", DOMAIN, &["v=spf1 ip4:198.51.100.7 -all"]);
    let lacking = check(&app).await;
    assert_eq!(lacking["spf"]["status"], "valid");
    assert_eq!(lacking["spf"]["missing"], json!(["include:mailgun.org"]));
    let recommended = "v=spf1 ip4:198.51.100.7 include:mailgun.org -all";
    assert_eq!(lacking["spf"]["recommended"], recommended);
    assert!(message(&lacking, "SPF_MISSING_INCLUDE").contains(recommended));
    dns.set("TXT", DOMAIN, &[recommended, "v=spf1 mx -all"]);
    let several = check(&app).await;
    assert_eq!(several["spf"]["status"], "multiple");
    let merged = "v=spf1 ip4:198.51.100.7 include:mailgun.org mx -all";
    assert_eq!(several["spf"]["recommended"], merged);
    assert!(message(&several, "SPF_MULTIPLE").contains("2 SPF records"));
    // Found through a record that is included.
    dns.set("TXT", DOMAIN, &["v=spf1 include:_spf.example.com -all"]);
    dns.set(
        "TXT",
        "_spf.example.com",
        &["v=spf1 include:mailgun.org ~all"],
    );
    let nested = check(&app).await;
    assert_eq!(
        (&nested["spf"]["status"], &nested["spf"]["lookups"]),
        (&json!("valid"), &json!(2))
    );
    assert_eq!(nested["spf"]["recommended"], Value::Null);
    dns.set("A", "host.example.com", &["198.51.100.7"]);
    let many = format!(
        "v=spf1 include:mailgun.org{} -all",
        " a:host.example.com".repeat(10)
    );
    dns.set("TXT", DOMAIN, &[&many]);
    let many = check(&app).await;
    assert_eq!(many["spf"]["status"], "tooManyLookups");
    assert_eq!(
        (&many["spf"]["lookups"], &many["spf"]["lookupsMax"]),
        (&json!(11), &json!(10))
    );
    assert!(message(&many, "SPF_TOO_MANY_LOOKUPS").contains("11 look-ups"));
    dns.set(
        "TXT",
        DOMAIN,
        &["v=spf1 include:mailgun.org a:n1.example.net a:n2.example.net a:n3.example.net -all"],
    );
    let void = check(&app).await;
    assert_eq!(void["spf"]["status"], "tooManyVoidLookups");
    assert_eq!(void["spf"]["voidLookups"], 3);
    dns.set("TXT", DOMAIN, &["v=spf1 inclde:mailgun.org -all"]);
    let invalid = check(&app).await;
    assert_eq!(invalid["spf"]["status"], "invalid");
    assert!(message(&invalid, "SPF_INVALID").contains("`inclde:mailgun.org`"));
}

#[tokio::test]
async fn accounts_that_exclude_each_other_are_named() {
    let dns = DnsServer::start().await;
    let app = start(&dns).await;
    let first = app.connect(ProviderType::Mailgun).await;
    let second = app.connect(ProviderType::Mailgun).await;
    for (account, name) in [(&first, "First"), (&second, "Second")] {
        let path = format!("/v1/providers/{account}");
        app.patch(&path, &json!({ "displayName": name }))
            .await
            .data(200);
    }
    // The same records do not exclude each other.
    let shared = check(&app).await;
    assert_eq!(codes(&shared), ["SPF_MISSING_INCLUDE", "DMARC_MISSING"]);
    let of_second = json!([
        { "type": "TXT", "name": MAILGUN_DKIM, "value": "k=rsa; p=OTHER", "priority": null, "purpose": "DKIM", "status": "pending" },
        { "type": "TXT", "name": "email.example.com", "value": "v=spf1 include:a.example ~all", "priority": null, "purpose": "SPF", "status": "pending" },
    ]);
    app.execute(&format!(
        "UPDATE provider_domains SET dns_records = '{of_second}' WHERE provider_account_id = '{second}'"
    ))
    .await;
    // Wanted records need no look-up.
    let report = app.get(PATH).await.data(200);
    let dkim = message(&report, "DKIM_SELECTOR_SHARED");
    assert!(
        dkim.contains("\"First\" and \"Second\"") && dkim.contains(MAILGUN_DKIM),
        "{dkim}"
    );
    assert!(message(&report, "CNAME_WITH_OTHER_RECORDS").contains("email.example.com"));
    // The change has the domain looked up soon.
    let due = "SELECT check_at <= now() FROM sender_domain_checks WHERE domain = 'example.com'";
    assert_eq!(app.value(due).await.as_deref(), Some("true"));
}

#[tokio::test]
async fn the_policy_is_found_and_alignment_is_judged() {
    let dns = DnsServer::start().await;
    let app = start(&dns).await;
    app.connect(ProviderType::Mailgun).await;
    publish_mailgun(&dns);
    assert!(codes(&check(&app).await).contains(&"DMARC_MISSING"));
    dns.set(
        "TXT",
        "_dmarc.example.com",
        &["v=DMARC1; p=quarantine; rua=mailto:a@example.com"],
    );
    let valid = check(&app).await;
    let expected = json!({
        "record": "v=DMARC1; p=quarantine; rua=mailto:a@example.com",
        "policyDomain": DOMAIN, "policy": "quarantine", "status": "valid",
        "alignedSpf": true, "alignedDkim": true,
    });
    assert_eq!(valid["dmarc"], expected);
    assert_eq!(codes(&valid), [""; 0]);
    dns.set(
        "TXT",
        "_dmarc.example.com",
        &["v=DMARC1; p=none", "v=DMARC1; p=reject"],
    );
    assert!(codes(&check(&app).await).contains(&"DMARC_MULTIPLE"));
    dns.set("TXT", "_dmarc.example.com", &["v=DMARC1; p=block"]);
    assert!(codes(&check(&app).await).contains(&"DMARC_INVALID"));
    // An account whose signature and return path are the provider's own.
    dns.set(
        "TXT",
        "_dmarc.example.com",
        &["v=DMARC1; p=none; adkim=s; aspf=s"],
    );
    let foreign = json!([
        { "type": "TXT", "name": "k._domainkey.provider.example", "value": "p=X", "priority": null, "purpose": "DKIM", "status": "verified" },
    ]);
    app.execute(&format!(
        "UPDATE provider_domains SET dns_records = '{foreign}' WHERE domain = '{DOMAIN}'"
    ))
    .await;
    let report = check(&app).await;
    assert_eq!(
        (
            &report["dmarc"]["alignedSpf"],
            &report["dmarc"]["alignedDkim"]
        ),
        (&json!(false), &json!(false))
    );
    assert!(message(&report, "DMARC_UNALIGNED").contains("\"An account\""));
}

#[tokio::test]
async fn what_dns_does_not_say_is_unknown_and_not_missing() {
    let dns = DnsServer::start().await;
    let app = start(&dns).await;
    let account = app.connect(ProviderType::Mailgun).await;
    publish_mailgun(&dns);
    dns.fail(MAILGUN_DKIM, Some(DnsFailure::ServFail));
    dns.fail("email.example.com", Some(DnsFailure::Silence));
    dns.fail("mailgun.org", Some(DnsFailure::ServFail));
    let report = check(&app).await;
    let expected = [
        ("CNAME email.example.com", "unknown"),
        ("TXT example.com", "match"),
        ("TXT mx._domainkey.example.com", "unknown"),
    ];
    assert_eq!(statuses(&report, &account), pairs(&expected));
    assert_eq!(
        (&report["status"], &report["spf"]["status"]),
        (&json!("unknown"), &json!("unknown"))
    );
    // A server that does not answer at all.
    for name in [
        DOMAIN,
        MAILGUN_DKIM,
        "email.example.com",
        "_dmarc.example.com",
        "_dmarc.com",
    ] {
        dns.fail(name, Some(DnsFailure::ServFail));
    }
    let report = check(&app).await;
    let found = statuses(&report, &account);
    assert!(
        found.iter().all(|(_, status)| status == "unknown"),
        "{found:?}"
    );
    assert_eq!(report["dmarc"]["status"], "unknown");
    assert_eq!(codes(&report), [""; 0]);
    // No server is asked at all.
    let app = TestApp::builder()
        .without_worker()
        .without_scheduler()
        .start()
        .await;
    app.connect(ProviderType::Mailgun).await;
    assert_eq!(check(&app).await["status"], "unknown");
}

#[tokio::test]
async fn hostile_answers_are_bounded_and_stored() {
    let dns = DnsServer::start().await;
    let app = start(&dns).await;
    let account = app.connect(ProviderType::Mailgun).await;
    // Longer than an answer over UDP; and what PostgreSQL does not store.
    let long = "x".repeat(10_000);
    dns.set(
        "TXT",
        MAILGUN_DKIM,
        &["k=rsa; p=SIMULATED", &long, "a\0b\n"],
    );
    dns.set(
        "TXT",
        DOMAIN,
        &[
            "v=spf1 include:example.com include:*.example.com ~all",
            &long,
        ],
    );
    dns.set("CNAME", "loop.example.com", &["loop.example.com"]);
    dns.set("CNAME", "email.example.com", &["email.example.com"]);
    let report = check(&app).await;
    assert_eq!(report["spf"]["status"], "invalid");
    let found = statuses(&report, &account);
    assert!(
        found.contains(&(format!("TXT {MAILGUN_DKIM}"), "match".to_owned())),
        "{found:?}"
    );
    let text = report.to_string();
    assert!(
        text.len() < 40_000 && !text.contains("\\u0000"),
        "{} bytes",
        text.len()
    );
    // A record that includes itself, and one with an alias that has no end.
    dns.set(
        "TXT",
        DOMAIN,
        &["v=spf1 include:example.com a:loop.example.com ~all"],
    );
    let report = check(&app).await;
    assert_eq!(report["spf"]["status"], "tooManyLookups");
    let asked = dns.queries().len();
    assert!(asked < 150, "{asked} queries");
    // A wildcard answers for every name.
    for kind in ["CNAME", "MX", "TXT"] {
        for name in [DOMAIN, MAILGUN_DKIM, "email.example.com"] {
            dns.set(kind, name, &[]);
        }
    }
    dns.set("TXT", "*.example.com", &["v=spf1 -all"]);
    dns.set("TXT", "*._domainkey.example.com", &["p=OTHER"]);
    let report = check(&app).await;
    let found = statuses(&report, &account);
    assert!(
        found.contains(&(format!("TXT {MAILGUN_DKIM}"), "mismatch".to_owned())),
        "{found:?}"
    );
    assert!(
        found.contains(&("CNAME email.example.com".to_owned(), "missing".to_owned())),
        "{found:?}"
    );
    assert_eq!(report["dmarc"]["status"], "missing");
}

#[tokio::test]
async fn a_domain_is_that_of_its_organization_and_a_check_is_in_the_audit_log() {
    let dns = DnsServer::start().await;
    let app = start(&dns).await;
    app.connect(ProviderType::Mailgun).await;
    let other = app.tenant("Others").await;
    other.caller.get(PATH).await.expect_error(404, "NOT_FOUND");
    other
        .caller
        .post_empty(&format!("{PATH}/check"))
        .await
        .expect_error(404, "NOT_FOUND");
    assert_eq!(
        other.caller.get("/v1/sender-domains").await.data(200),
        json!([])
    );
    for name in ["gone.example.com", "localhost", "a%20b.example", "%00"] {
        let path = format!("/v1/sender-domains/{name}");
        app.get(&path).await.expect_error(404, "NOT_FOUND");
    }
    // In any case and with a final dot.
    app.get("/v1/sender-domains/Example.COM.").await.data(200);
    check(&app).await;
    let path = "/v1/audit-logs?targetType=sender_domain";
    let entries = app.get(path).await.data(200);
    assert_eq!(entries.as_array().unwrap().len(), 1, "{entries}");
    assert_eq!(entries[0]["action"], "sender_domain.checked");
    assert_eq!(
        entries[0]["metadata"],
        json!({ "domain": DOMAIN, "status": "incomplete" })
    );
}

#[tokio::test]
async fn the_scheduler_looks_up_new_domains_and_forgets_removed_ones() {
    let dns = DnsServer::start().await;
    publish_mailgun(&dns);
    let app = TestApp::builder()
        .without_worker()
        .setting("WAYPOST_DNS_SERVERS", &dns.setting())
        .start()
        .await;
    let account = app
        .connect_with(ProviderType::Mailgun, &credentials(ProviderType::Mailgun))
        .await;
    // The row that makes it due has PostgreSQL's time; the test's clock stood still.
    app.advance(chrono::TimeDelta::minutes(1));
    wait_until("it is looked up", async || {
        app.get(PATH).await.data(200)["status"] == "complete"
    })
    .await;
    // Waypost's own checks are in no audit log.
    let path = "/v1/audit-logs?targetType=sender_domain";
    assert_eq!(app.get(path).await.data(200), json!([]));
    app.delete(&format!("/v1/providers/{account}"))
        .await
        .expect(200);
    app.get(PATH).await.expect_error(404, "NOT_FOUND");
    app.advance(chrono::TimeDelta::hours(7));
    wait_until("the check is removed", async || {
        app.value("SELECT count(*) FROM sender_domain_checks")
            .await
            .as_deref()
            == Some("0")
    })
    .await;
}
