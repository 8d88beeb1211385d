//! SMTP servers as providers: connecting an account, what arrives, and the effect of each
//! reply on a recipient. Tests of all providers cover the rest.

mod contents;

use chrono::TimeDelta;
use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_simulator::{Captured, Fault, FaultCalls, FaultKind, Provider};
use waypost_tests::{TestApp, credentials, message_to, to_hash, untracked, wait_until};

/// Without `WAYPOST_SMTP_SERVER`, which replaces all servers: accounts use their own.
async fn plain() -> TestApp {
    TestApp::builder()
        .setting("WAYPOST_SMTP_SERVER", "")
        .start()
        .await
}

async fn connect(app: &TestApp, credentials: &Value) -> waypost_tests::Reply {
    let body =
        json!({ "providerType": "SMTP", "displayName": "A relay", "credentials": credentials });
    app.post("/v1/providers", &body).await
}

fn port(app: &TestApp, tls: &str) -> u16 {
    let address = if tls == "implicit" {
        app.simulator().smtps_address()
    } else {
        app.simulator().smtp_address()
    };
    address.unwrap().port()
}

/// Sends to an address and waits for the outcome; returns the message's id.
async fn sent_to(app: &TestApp, address: &str) -> String {
    let id = app.send_to(address).await;
    app.drain().await;
    id
}

#[tokio::test]
async fn a_server_is_reached_in_each_of_the_three_ways_with_a_login_and_without() {
    let app = plain().await;
    for (number, (host, tls, login)) in [
        ("localhost", "starttls", true),
        ("127.0.0.1", "starttls", false),
        ("127.0.0.1", "implicit", true),
        ("localhost", "implicit", false),
        ("127.0.0.1", "none", true),
        ("localhost", "none", false),
    ]
    .into_iter()
    .enumerate()
    {
        let mut given = json!({ "host": host, "port": port(&app, tls), "tls": tls });
        if login {
            given["username"] = json!("some user");
            given["password"] = json!("pässword with spaces");
        }
        let id = app.connect_with(ProviderType::Smtp, &given).await;
        let address = format!("r{number}@example.org");
        let message = sent_to(&app, &address).await;
        assert_eq!(app.status(&message).await, "SENT", "{given}");
        let copy = app.captured_once(&address);
        assert_eq!(copy.provider, Provider::Smtp);
        app.delete(&format!("/v1/providers/{id}")).await.expect(200);
    }
}

#[tokio::test]
async fn encryption_never_falls_back_to_less_than_configured() {
    let app = plain().await;
    for given in [
        json!({ "host": "localhost", "port": port(&app, "none"), "tls": "implicit" }),
        // STARTTLS is the default, and this server's greeting waits for TLS.
        json!({ "host": "localhost", "port": port(&app, "implicit") }),
    ] {
        let impatient = TestApp::builder()
            .without_worker()
            .setting("WAYPOST_SMTP_SERVER", "")
            .setting("WAYPOST_PROVIDER_TIMEOUT", "1s")
            .start()
            .await;
        let reply = connect(&impatient, &given).await;
        reply.expect_error(503, "SERVICE_UNAVAILABLE");
    }
    // A certificate for another name, and one without a trusted issuer.
    let mut other_name = credentials(ProviderType::Smtp);
    other_name["host"] = json!("smtp.elsewhere.example");
    let stood_in = TestApp::builder().without_worker().start().await;
    let reply = connect(&stood_in, &other_name).await;
    reply.expect_error(503, "SERVICE_UNAVAILABLE");
    let distrustful = TestApp::builder()
        .without_worker()
        .setting("WAYPOST_SMTP_CA_FILE", "")
        .start()
        .await;
    let reply = connect(&distrustful, &credentials(ProviderType::Smtp)).await;
    reply.expect_error(503, "SERVICE_UNAVAILABLE");
}

#[tokio::test]
async fn invalid_credentials_are_named_by_their_paths() {
    let app = TestApp::builder().without_worker().start().await;
    for (given, fields) in [
        (json!({}), vec!["host"]),
        (json!({ "host": "a b", "port": 0 }), vec!["port"]),
        (json!({ "host": "a b" }), vec!["host"]),
        (json!({ "host": "smtp.example.com:25" }), vec!["host"]),
        (json!({ "host": "x\r\nQUIT" }), vec!["host"]),
        (json!({ "host": "h", "port": 65_536 }), vec!["port"]),
        (json!({ "host": "h", "port": "25" }), vec!["port"]),
        (json!({ "host": "h", "port": 2.5 }), vec!["port"]),
        (json!({ "host": "h", "tls": "TLS" }), vec!["tls"]),
        (json!({ "host": "h", "username": "u" }), vec!["password"]),
        (json!({ "host": "h", "password": "p" }), vec!["username"]),
        (
            json!({ "host": "h", "username": "u\u{1}", "password": "p\n\np" }),
            vec!["password", "username"],
        ),
    ] {
        let paths = fields.iter().map(|field| format!("credentials.{field}"));
        let paths: Vec<String> = paths.collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        connect(&app, &given).await.expect_issues(400, &paths);
    }
}

#[tokio::test]
async fn an_account_connects_only_to_public_addresses_unless_others_are_allowed() {
    let app = TestApp::builder()
        .without_worker()
        .setting("WAYPOST_SMTP_SERVER", "")
        .setting("WAYPOST_SMTP_ALLOW", "192.0.2.0/24")
        .start()
        .await;
    for host in [
        "127.0.0.1",
        "localhost",
        "::1",
        "::ffff:127.0.0.1",
        "0.0.0.0",
        "10.0.0.1",
        "169.254.169.254",
    ] {
        let given = json!({ "host": host, "port": port(&app, "none"), "tls": "none" });
        let error = connect(&app, &given).await;
        let error = error.expect_error(422, "PROVIDER_INVALID_CREDENTIALS");
        let reason = error["message"].as_str().unwrap();
        assert!(reason.contains("SMTP"), "{host}: {error}");
    }
}

#[tokio::test]
async fn a_server_lists_no_domains_so_every_sender_is_unknown() {
    let app = TestApp::start().await;
    let account = app.connect(ProviderType::Smtp).await;
    let domains = app.get(&format!("/v1/providers/{account}/domains")).await;
    assert_eq!(domains.expect(200), json!({ "data": [] }));
    let receipt = app
        .post("/v1/send", &message_to("a@example.org"))
        .await
        .expect(202);
    assert_eq!(
        (&receipt["providerType"], &receipt["domainVerified"]),
        (&json!("SMTP"), &json!(false))
    );
    app.drain().await;
    // The server's rejection of a sender is a separate error.
    let mut message = message_to("b@example.org");
    message["from"] = json!("news@unverified.example.net");
    let id = app.send(&message).await;
    app.drain().await;
    assert_eq!(app.status(&id).await, "FAILED");
    let recipient = app.recipient(&id).await;
    let error = recipient["lastError"].as_str().unwrap();
    assert!(
        error.starts_with("SMTP 553") && !error.contains("news"),
        "{error}"
    );
}

#[tokio::test]
async fn a_message_arrives_unchanged_with_only_our_id_added() {
    let app = TestApp::start().await;
    let account = app.connect(ProviderType::Smtp).await;
    let message = json!({
        "from": "\"Lovelace, Ada \\\"Countess\\\"\" <ada@example.com>",
        "to": "Bob <bob@example.org>",
        "subject": "Zoë’s “receipt” – 100 % 📬",
        "html": format!("<p>Grüße \\ 📬</p>\n.\n..<p>{}</p>", "long ".repeat(2_000)),
        "text": ".\r\n..two\r\nGrüße\n.\n\tend",
        "replyTo": "Zoë Müller <answers@example.org>",
        "tags": ["secret-tag"],
        "metadata": { "secret": "secret-value" },
        "tracking": untracked(),
    });
    let id = app.send(&message).await;
    app.drain().await;
    let copy = app.captured_once("bob@example.org");
    assert_eq!(Some(copy.subject.as_str()), message["subject"].as_str());
    assert_eq!(copy.html.as_deref(), message["html"].as_str());
    assert_eq!(copy.text.as_deref(), Some(".\n..two\nGrüße\n.\n\tend"));
    assert_eq!(copy.from, "Lovelace, Ada \"Countess\" <ada@example.com>");
    assert_eq!(
        copy.reply_to.as_deref(),
        Some("Zoë Müller <answers@example.org>")
    );
    assert_eq!(copy.visible_recipients, ["bob@example.org"]);
    let names: Vec<&String> = copy.headers.keys().collect();
    assert_eq!(names, ["Message-ID", "Reply-To"]);
    let message_id = format!("<{id}.0@example.com>");
    assert_eq!(copy.headers["Message-ID"], message_id);
    let recipient = app.recipient(&id).await;
    assert_eq!(recipient["providerMessageId"], message_id);
    assert_eq!(recipient["providerAccountId"], account);
    assert_eq!(app.events(&id).await, ["QUEUED", "SENT"]);
}

/// Texts that try to become a header, a recipient or the end of the message.
const CORPUS: [&str; 9] = [
    "Bcc: victim@example.net",
    "=?utf-8?q?a_Bcc:_victim@example.net?=",
    "a, victim@example.net",
    "<victim@example.net>",
    "\" <victim@example.net>, \"",
    "\\",
    "(comment) victim@example.net;",
    ".",
    "Übung =0D=0A. 📬 \u{2028}x",
];

#[tokio::test]
async fn no_subject_or_name_becomes_a_header_or_a_recipient() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Smtp).await;
    let (long, unbroken) = ("ü".repeat(900), "x".repeat(998));
    let further = [long.as_str(), unbroken.as_str()];
    for (number, text) in CORPUS.into_iter().chain(further).enumerate() {
        let address = format!("r{number}@example.org");
        let name: String = text.chars().take(255).collect();
        let quoted = name.replace('\\', "\\\\").replace('"', "\\\"");
        let message = json!({
            "from": format!("\"{quoted}\" <news@example.com>"),
            "to": format!("\"{quoted}\" <{address}>"),
            "replyTo": format!("\"{quoted}\" <news@example.com>"),
            "subject": text,
            "text": format!("{text}\r\n.\r\nQUIT\r\n"),
        });
        let id = app.send(&message).await;
        app.drain().await;
        assert_eq!(app.status(&id).await, "SENT", "{text}");
        let copy = app.captured_once(&address);
        // A mail program decodes an encoded word, whoever wrote it.
        if !text.starts_with("=?") {
            assert_eq!(copy.subject, text);
        }
        assert!(copy.from.ends_with("<news@example.com>"), "{}", copy.from);
        assert_eq!(copy.visible_recipients, [address], "{text}");
        let names: Vec<&String> = copy.headers.keys().collect();
        assert_eq!(names, ["Message-ID", "Reply-To"], "{text}");
    }
    assert!(app.captured("victim@example.net").is_empty());
}

async fn suppressions(app: &TestApp) -> Vec<(String, String)> {
    let rows = app.get("/v1/suppressions?limit=100").await.data(200);
    let rows = rows.as_array().unwrap().iter().map(|row| {
        assert!(row["unsubscribeGroupId"].is_null());
        (
            row["emailHash"].as_str().unwrap().to_owned(),
            row["source"].as_str().unwrap().to_owned(),
        )
    });
    rows.collect()
}

#[tokio::test]
async fn a_mailbox_that_does_not_exist_fails_its_recipient_and_is_suppressed() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Smtp).await;
    let mut message = message_to("");
    message["to"] = json!([
        "a@example.org",
        "hard-bounce+1@example.org",
        "Hard-Bounce+2@example.org"
    ]);
    let id = app.send(&message).await;
    app.drain().await;
    let recipients = app.recipients(&id).await;
    let statuses: Vec<&Value> = recipients.iter().map(|one| &one["status"]).collect();
    assert_eq!(statuses, ["SENT", "FAILED", "FAILED"]);
    let error = recipients[1]["lastError"].as_str().unwrap();
    assert!(error.starts_with("SMTP 550: 5.1.1 <address>:"), "{error}");
    let told = "SELECT string_agg(DISTINCT data->>'bounceType', ',') FROM events WHERE event_type = 'DROPPED'";
    assert_eq!(app.value(told).await.as_deref(), Some("hard"));
    let hash = |address: &str| (to_hash(address), "BOUNCE".to_owned());
    let mut expected = [
        hash("hard-bounce+1@example.org"),
        hash("hard-bounce+2@example.org"),
    ];
    let mut found = suppressions(&app).await;
    expected.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, expected);
    let entries = "SELECT entries FROM suppression_filters";
    assert_eq!(app.value(entries).await.as_deref(), Some("2"));
    // From now on the server is not asked about it.
    let again = app.post("/v1/send", &message).await.expect(202);
    assert_eq!(again["suppressedCount"], 2);
    app.drain().await;
    assert_eq!(app.captured("a@example.org").len(), 2);
}

#[tokio::test]
async fn a_bounce_of_an_address_that_is_suppressed_meanwhile_changes_nothing() {
    let app = TestApp::builder().without_worker().start().await;
    app.connect(ProviderType::Smtp).await;
    // Two messages to the same mailbox at once: one suppression.
    let ids = [
        app.send_to("hard-bounce@example.org").await,
        app.send_to("hard-bounce@example.org").await,
    ];
    app.start_worker();
    app.drain().await;
    for id in &ids {
        assert_eq!(app.status(id).await, "FAILED");
    }
    let expected = (to_hash("hard-bounce@example.org"), "BOUNCE".to_owned());
    assert_eq!(suppressions(&app).await, [expected]);
    let entries = "SELECT entries FROM suppression_filters";
    assert_eq!(app.value(entries).await.as_deref(), Some("1"));
}

#[tokio::test]
async fn a_rejection_for_another_reason_suppresses_no_recipient() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Smtp).await;
    for (address, status, outcome, code) in [
        ("block@example.org", "FAILED", "REJECTED", 550),
        ("refuse@example.org", "FAILED", "REJECTED", 554),
        ("soft-bounce@example.org", "QUEUED", "UNAVAILABLE", 452),
        ("error@example.org", "QUEUED", "UNAVAILABLE", 451),
        ("throttle@example.org", "QUEUED", "THROTTLED", 421),
    ] {
        let id = sent_to(&app, address).await;
        assert_eq!(app.status(&id).await, status, "{address}");
        assert_eq!(app.outcomes(&id).await, [outcome], "{address}");
        let codes = format!("SELECT status_code FROM send_attempts WHERE message_id = '{id}'");
        let found = app.value(&codes).await.unwrap();
        assert_eq!(found, code.to_string(), "{address}");
        let event = if status == "FAILED" {
            "DROPPED"
        } else {
            "DEFERRED"
        };
        assert_eq!(app.events(&id).await, ["QUEUED", event], "{address}");
    }
    assert!(suppressions(&app).await.is_empty());
    app.leave_work();
}

#[tokio::test]
async fn a_connection_closed_between_two_messages_costs_no_attempt() {
    let mut app = TestApp::start().await;
    app.connect(ProviderType::Smtp).await;
    let first = sent_to(&app, "a@example.org").await;
    assert_eq!(app.outcomes(&first).await, ["ACCEPTED"]);
    app.stop_simulator().await;
    app.resume_simulator().await;
    let second = sent_to(&app, "b@example.org").await;
    assert_eq!(app.outcomes(&second).await, ["ACCEPTED"]);
    app.captured_once("b@example.org");
}

#[tokio::test]
async fn a_rejected_recipient_leaves_the_connection_usable() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Smtp).await;
    for number in 0..5 {
        let refused = sent_to(&app, &format!("refuse+{number}@example.org")).await;
        assert_eq!(app.status(&refused).await, "FAILED");
        let address = format!("r{number}@example.org");
        let id = sent_to(&app, &address).await;
        assert_eq!(app.outcomes(&id).await, ["ACCEPTED"]);
        app.captured_once(&address);
    }
}

#[tokio::test]
async fn a_failure_before_the_message_is_transferred_is_retried() {
    for kind in [FaultKind::Reset, FaultKind::Timeout, FaultKind::Error] {
        let app = TestApp::builder()
            .setting("WAYPOST_PROVIDER_TIMEOUT", "1s")
            .start()
            .await;
        app.connect(ProviderType::Smtp).await;
        app.simulator().set_fault(Fault {
            provider: Some(Provider::Smtp),
            kind,
            rate: 1.0,
            latency_ms: 0,
            calls: FaultCalls::All,
        });
        let id = sent_to(&app, "a@example.org").await;
        assert_eq!(app.status(&id).await, "QUEUED", "{kind:?}");
        assert_eq!(app.outcomes(&id).await, ["UNAVAILABLE"], "{kind:?}");
        app.simulator().clear_faults();
        app.advance_and_drain(TimeDelta::minutes(1)).await;
        assert_eq!(app.status(&id).await, "SENT", "{kind:?}");
        app.captured_once("a@example.org");
    }
}

#[tokio::test]
async fn a_message_sent_twice_has_the_same_message_id() {
    let app = TestApp::builder()
        .setting("WAYPOST_PROVIDER_TIMEOUT", "1s")
        .start()
        .await;
    app.connect(ProviderType::Smtp).await;
    let id = sent_to(&app, "timeout-once@example.org").await;
    assert_eq!(app.outcomes(&id).await, ["UNKNOWN"]);
    app.advance_and_drain(TimeDelta::minutes(16)).await;
    let copies: Vec<Captured> = app.captured("timeout-once@example.org");
    assert_eq!(copies.len(), 2);
    assert_eq!(copies[0].provider_message_id, copies[1].provider_message_id);
}

#[tokio::test]
async fn new_credentials_are_used_from_the_next_message_on() {
    let app = TestApp::start().await;
    let account = app.connect(ProviderType::Smtp).await;
    let first = sent_to(&app, "a@example.org").await;
    assert_eq!(app.outcomes(&first).await, ["ACCEPTED"]);
    // An old connection would continue as the old user, who has credit.
    let new = json!({ "host": "smtp.example.com", "username": "nocredit", "password": "p" });
    let change = json!({ "credentials": new });
    app.patch(&format!("/v1/providers/{account}"), &change)
        .await
        .data(200);
    // A worker caches an account for a moment.
    let turned = waypost_tests::wait_within(waypost_tests::WAIT_MAX, async || {
        let id = sent_to(&app, "b@example.org").await;
        app.outcomes(&id).await == ["REJECTED"]
    });
    assert!(turned.await);
    app.leave_work();
}

#[tokio::test]
async fn many_concurrent_messages_share_few_connections_and_all_arrive() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Smtp).await;
    // Longer than all of them take, one after the other on each connection.
    app.simulator().set_fault(Fault::slow_sends(100));
    let to: Vec<String> = (0..60).map(|n| format!("r{n}@example.org")).collect();
    let mut message = message_to("");
    message["to"] = json!(to);
    let ids = [app.send(&message).await, app.send(&message).await];
    app.drain().await;
    // On a busy machine a recipient may wait so long for a connection that it is retried
    // later.
    wait_until("both are sent", async || {
        app.advance_and_drain(TimeDelta::seconds(2)).await;
        app.status(&ids[0]).await == "SENT" && app.status(&ids[1]).await == "SENT"
    })
    .await;
    for address in &to {
        assert_eq!(app.captured(address).len(), 2);
    }
    for id in &ids {
        assert_eq!(
            app.outcomes(id).await,
            ["ACCEPTED"; 60],
            "a wait is no attempt"
        );
    }
    // The API's own check and the worker's, whose limit is 16.
    let connections = app.simulator().smtp_connection_count();
    assert!(connections <= 17, "{connections}");
}
