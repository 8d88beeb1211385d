//! Failover: what one account fails to accept goes to the next account of its rule on
//! which the sender's domain is not unverified. The test moves the time, unless processes
//! die.

use chrono::TimeDelta;
use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_simulator::{Fault, FaultCalls, FaultKind, Provider};
use waypost_tests::{TestApp, credentials, message_to, wait_until};

mod account_problems;
mod circuit;
mod gateway;
mod limits;
mod prediction;
mod unknown;

/// An app with two accounts, and a rule whose fallback is the second one.
struct Pair {
    app: TestApp,
    first: String,
    second: String,
    rule: String,
}

const FIRST: Provider = Provider::Mailgun;
const SECOND: Provider = Provider::Postmark;

/// Longer than any wait of [`Pair::with_long_waits`].
const LONG_WAIT: TimeDelta = TimeDelta::minutes(31);

impl Pair {
    async fn start() -> Self {
        Self::with(TestApp::start().await, &json!({})).await
    }

    /// The same with waits that end only if the test moves the time: with the jitter, the
    /// wait of five seconds at most can be over before the test has looked.
    async fn with_long_waits() -> Self {
        let app = TestApp::builder().setting("WAYPOST_RETRY_FIRST", "10min");
        Self::with(app.start().await, &json!({})).await
    }

    /// The same with changes to the rule.
    async fn with(app: TestApp, change: &Value) -> Self {
        let first = app.connect(ProviderType::Mailgun).await;
        app.advance(TimeDelta::milliseconds(10));
        let second = app.connect(ProviderType::Postmark).await;
        let rule = rule(&app, &first, &[&second], change).await;
        Self {
            app,
            first,
            second,
            rule,
        }
    }

    /// The accounts of a message's calls, by their position in the rule.
    async fn accounts_called(&self, id: &str) -> Vec<u8> {
        let attempts = self.app.attempts(id).await;
        let places = attempts.iter().map(|attempt| {
            let account = attempt.account_id.to_string();
            if account == self.first {
                1
            } else {
                assert_eq!(account, self.second);
                2
            }
        });
        places.collect()
    }
}

async fn rule(app: &TestApp, first: &str, fallbacks: &[&str], change: &Value) -> String {
    let mut rule = json!({
        "name": "With a fallback",
        "providerAccountId": first,
        "fallbackProviderAccountIds": fallbacks,
    });
    let change = change.as_object().unwrap().clone();
    rule.as_object_mut().unwrap().extend(change);
    let rule = app.post("/v1/routing-rules", &rule).await.data(201);
    rule["id"].as_str().unwrap().to_owned()
}

fn fault(provider: Provider, kind: FaultKind) -> Fault {
    Fault {
        provider: Some(provider),
        kind,
        rate: 1.0,
        latency_ms: 0,
        calls: FaultCalls::Send,
    }
}

#[tokio::test]
async fn a_rule_that_is_made_later_helps_the_mail_that_waits() {
    let app = TestApp::builder().setting("WAYPOST_RETRY_FIRST", "10min");
    let app = app.start().await;
    let first = app.connect(ProviderType::Mailgun).await;
    app.advance(TimeDelta::milliseconds(10));
    let second = app.connect(ProviderType::Postmark).await;
    app.simulator().set_fault(fault(FIRST, FaultKind::Error));
    let waiting = app.send_to("a@example.org").await;
    app.drain().await;
    let old_rule = rule(&app, &first, &[], &json!({})).await;
    let of_old_rule = app.send_to("b@example.org").await;
    app.drain().await;
    app.delete(&format!("/v1/routing-rules/{old_rule}")).await;
    assert_eq!(app.outcomes(&waiting).await, ["UNAVAILABLE"]);
    assert_eq!(app.outcomes(&of_old_rule).await, ["UNAVAILABLE"]);

    let other_domain = json!({ "senderDomain": "example.net", "priority": 9 });
    rule(&app, &first, &[], &other_domain).await;
    rule(&app, &first, &[&second], &json!({})).await;
    app.advance(LONG_WAIT);
    app.drain().await;
    for address in ["a@example.org", "b@example.org"] {
        assert_eq!(app.captured_once(address).provider, SECOND);
    }
    for id in [waiting, of_old_rule] {
        let outcomes = app.outcomes(&id).await;
        assert_eq!(
            outcomes.last().map(String::as_str),
            Some("ACCEPTED"),
            "{outcomes:?}"
        );
    }
}

#[tokio::test]
async fn a_message_that_one_provider_fails_to_accept_goes_to_the_next_at_once() {
    let pair = Pair::start().await;
    let app = &pair.app;
    app.simulator().set_fault(fault(FIRST, FaultKind::Error));
    let id = app.send_to("a@example.org").await;
    app.drain().await;
    assert_eq!(app.captured_once("a@example.org").provider, SECOND);
    assert_eq!(app.events(&id).await, ["QUEUED", "DEFERRED", "SENT"]);
    assert_eq!(app.outcomes(&id).await, ["UNAVAILABLE", "ACCEPTED"]);
    assert_eq!(pair.accounts_called(&id).await, [1, 2]);
    let recipient = app.recipient(&id).await;
    assert_eq!(recipient["providerAccountId"], json!(pair.second));
    assert_eq!(recipient["attempts"], 2);
    assert_eq!(recipient["lastError"], Value::Null);
    assert_eq!(recipient["status"], "SENT");
    // It counts for the provider that accepted it.
    let breakdown = app
        .get("/v1/metrics/breakdown?groupBy=provider")
        .await
        .data(200);
    assert_eq!(breakdown[0]["name"], "POSTMARK");
    assert_eq!(breakdown[0]["sent"], 1);
    assert_eq!(breakdown.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_throttled_message_goes_to_the_next_account_and_uses_no_attempt() {
    let pair = Pair::start().await;
    let app = &pair.app;
    app.simulator().set_fault(fault(FIRST, FaultKind::Throttle));
    let id = app.send_to("a@example.org").await;
    app.drain().await;
    assert_eq!(app.captured_once("a@example.org").provider, SECOND);
    assert_eq!(app.events(&id).await, ["QUEUED", "DEFERRED", "SENT"]);
    assert_eq!(app.outcomes(&id).await, ["THROTTLED", "ACCEPTED"]);
    assert_eq!(app.recipient(&id).await["attempts"], 1);
}

#[tokio::test]
async fn an_account_with_the_domain_unverified_is_skipped_and_one_with_unknown_domains_is_not() {
    let app = TestApp::start().await;
    let first = app.connect(ProviderType::Mailgun).await;
    let mut other = credentials(ProviderType::Mailgun);
    other["domain"] = json!("other.example");
    let unverified = app.connect_with(ProviderType::Mailgun, &other).await;
    // Its domains are not visible.
    let server = json!({ "serverToken": "good-server" });
    let unknown = app.connect_with(ProviderType::Postmark, &server).await;
    let verified = app.connect(ProviderType::Sendgrid).await;
    let fallbacks = [&*unverified, &*unknown, &*verified];
    rule(&app, &first, &fallbacks, &json!({})).await;
    let asked = json!({ "from": "a@example.com" });
    let resolved = app
        .post("/v1/routing-rules/resolve", &asked)
        .await
        .data(200);
    let expected = [
        (&unverified, false, json!("DOMAIN_NOT_VERIFIED")),
        (&unknown, false, Value::Null),
        (&verified, true, Value::Null),
    ];
    let expected = expected.map(|(id, is_verified, passed_over)| {
        json!({
            "providerAccountId": id,
            "domainVerified": is_verified,
            "passedOver": passed_over,
        })
    });
    assert_eq!(resolved["fallbacks"], json!(expected));
    app.simulator().set_fault(fault(FIRST, FaultKind::Error));
    let id = app.send_to("a@example.org").await;
    app.drain().await;
    assert_eq!(app.captured_once("a@example.org").provider, SECOND);
    let attempts = app.attempts(&id).await;
    let accounts: Vec<String> = attempts.iter().map(|a| a.account_id.to_string()).collect();
    assert_eq!(accounts, [first, unknown]);
}

#[tokio::test]
async fn with_unverified_domains_accepted_every_fallback_counts() {
    let app = TestApp::start().await;
    let settings = json!({ "unverifiedDomains": "accept" });
    app.patch("/v1/settings", &settings).await.data(200);
    let first = app.connect(ProviderType::Mailgun).await;
    let unknown = app.connect(ProviderType::Smtp).await;
    rule(&app, &first, &[&unknown], &json!({})).await;
    app.simulator().set_fault(fault(FIRST, FaultKind::Error));
    app.send_to("a@example.org").await;
    app.drain().await;
    assert_eq!(app.captured_once("a@example.org").provider, Provider::Smtp);
}

#[tokio::test]
async fn after_all_accounts_failed_the_first_is_retried_after_a_wait() {
    let pair = Pair::with_long_waits().await;
    let app = &pair.app;
    app.simulator().set_fault(fault(FIRST, FaultKind::Error));
    app.simulator().set_fault(fault(SECOND, FaultKind::Error));
    let id = app.send_to("a@example.org").await;
    app.drain().await;
    assert_eq!(app.status(&id).await, "QUEUED");
    assert_eq!(
        pair.accounts_called(&id).await,
        [1, 2],
        "each once in a round"
    );
    assert_eq!(app.recipient(&id).await["attempts"], 2);
    app.advance_and_drain(LONG_WAIT).await;
    assert_eq!(pair.accounts_called(&id).await, [1, 2, 1, 2]);
    app.simulator().clear_faults();
    app.advance_and_drain(LONG_WAIT).await;
    assert_eq!(pair.accounts_called(&id).await, [1, 2, 1, 2, 1]);
    assert_eq!(app.captured_once("a@example.org").provider, FIRST);
    assert_eq!(app.status(&id).await, "SENT");
    let events = app.events(&id).await;
    let deferred = events.iter().filter(|event| *event == "DEFERRED").count();
    assert_eq!(deferred, 4, "one for each answer: {events:?}");
}

#[tokio::test]
async fn the_waits_double_with_the_rounds_and_not_with_the_calls() {
    let pair = Pair::with_long_waits().await;
    let app = &pair.app;
    app.simulator().set_fault(fault(FIRST, FaultKind::Error));
    app.simulator().set_fault(fault(SECOND, FaultKind::Error));
    let id = app.send_to("a@example.org").await;
    app.drain().await;
    app.advance_and_drain(LONG_WAIT).await;
    assert_eq!(pair.accounts_called(&id).await.len(), 4);
    let wait = app.value(
        "SELECT extract(epoch FROM next_attempt_at - (SELECT max(finished_at) FROM send_attempts))
         FROM recipients",
    );
    let wait: f64 = wait.await.unwrap().parse().unwrap();
    assert!(
        (0.0..=1_200.0).contains(&wait),
        "after two rounds the bound is 20 minutes: {wait}"
    );
}

#[tokio::test]
async fn the_order_of_the_accounts_stays_after_a_failover() {
    let pair = Pair::with_long_waits().await;
    let app = &pair.app;
    app.simulator().set_fault(fault(FIRST, FaultKind::Error));
    let mut message = message_to("");
    message["to"] = json!(["a@example.org", "error@example.org"]);
    let id = app.send(&message).await;
    app.drain().await;
    let listed = app.get("/v1/messages").await.data(200);
    let account = &listed[0]["providerAccountId"];
    assert_eq!(account, &json!(pair.second), "which took the first copy");
    app.simulator().clear_faults();
    app.advance_and_drain(LONG_WAIT).await;
    let attempts = app.attempts(&id).await;
    let of_second = attempts.iter().filter(|attempt| attempt.position == 1);
    let accounts: Vec<String> = of_second.map(|a| a.account_id.to_string()).collect();
    let (first, second) = (&pair.first, &pair.second);
    assert_eq!(accounts, [first, second, first, second].map(String::clone));
}

#[tokio::test]
async fn an_attempt_uses_the_current_rule() {
    let app = TestApp::builder().without_worker().start().await;
    let pair = Pair::with(app, &json!({})).await;
    let app = &pair.app;
    let path = format!("/v1/routing-rules/{}", pair.rule);
    let third = app.connect(ProviderType::Sendgrid).await;
    let changed = app.send_to("changed@example.org").await;
    let change = json!({ "fallbackProviderAccountIds": [third] });
    app.patch(&path, &change).await.data(200);
    app.simulator().set_fault(fault(FIRST, FaultKind::Error));
    app.start_worker();
    app.drain().await;
    let copy = app.captured_once("changed@example.org");
    assert_eq!(copy.provider, Provider::SendGrid);
    assert_eq!(app.status(&changed).await, "SENT");
}

#[tokio::test]
async fn without_its_rule_a_message_has_no_fallback() {
    let app = TestApp::builder()
        .setting("WAYPOST_RETRY_FIRST", "10min")
        .without_worker()
        .start()
        .await;
    let pair = Pair::with(app, &json!({})).await;
    let app = &pair.app;
    let id = app.send_to("a@example.org").await;
    let path = format!("/v1/routing-rules/{}", pair.rule);
    app.delete(&path).await.expect(200);
    app.simulator().set_fault(fault(FIRST, FaultKind::Error));
    app.start_worker();
    app.drain().await;
    assert_eq!(pair.accounts_called(&id).await, [1]);
    app.simulator().clear_faults();
    app.advance_and_drain(LONG_WAIT).await;
    assert_eq!(pair.accounts_called(&id).await, [1, 1]);
    assert_eq!(app.status(&id).await, "SENT");
}

#[tokio::test]
async fn after_its_account_is_removed_a_message_goes_to_the_fallback_that_moved_up() {
    let app = TestApp::builder().without_worker().start().await;
    let other = app.connect(ProviderType::Sendgrid).await;
    let pair = Pair::with(app, &json!({})).await;
    let app = &pair.app;
    let id = app.send_to("a@example.org").await;
    let path = format!("/v1/providers/{}", pair.first);
    app.delete(&path).await.expect(200);
    app.start_worker();
    app.drain().await;
    let attempts = app.attempts(&id).await;
    assert_eq!(attempts.len(), 1);
    assert_ne!(attempts[0].account_id.to_string(), other);
    assert_eq!(app.captured_once("a@example.org").provider, SECOND);
}

/// An account whose key is valid and may not send.
async fn connect_forbidden(app: &TestApp) -> String {
    let mut forbidden = credentials(ProviderType::Ses);
    forbidden["accessKeyId"] = json!("AKIAnoscope");
    app.connect_with(ProviderType::Ses, &forbidden).await
}

#[tokio::test]
async fn a_rejection_of_the_account_leads_to_the_next_account() {
    let app = TestApp::start().await;
    let forbidden = connect_forbidden(&app).await;
    let second = app.connect(ProviderType::Postmark).await;
    rule(&app, &forbidden, &[&second], &json!({})).await;
    let id = app.send_to("a@example.org").await;
    app.drain().await;
    assert_eq!(app.captured_once("a@example.org").provider, SECOND);
    assert_eq!(app.outcomes(&id).await, ["REJECTED", "ACCEPTED"]);
    assert_eq!(app.events(&id).await, ["QUEUED", "DEFERRED", "SENT"]);
}

#[tokio::test]
async fn an_account_problem_fails_no_message_before_the_horizon() {
    let app = TestApp::start().await;
    let forbidden = connect_forbidden(&app).await;
    let failing = app.connect(ProviderType::Mailgun).await;
    rule(&app, &forbidden, &[], &json!({ "tags": ["alone"] })).await;
    let both = json!({ "tags": ["both"] });
    rule(&app, &failing, &[&forbidden], &both).await;
    app.simulator().set_fault(fault(FIRST, FaultKind::Error));
    let tagged = |to: &str, tag: &str| {
        let mut message = message_to(to);
        message["tags"] = json!([tag]);
        message
    };
    let alone = app.send(&tagged("alone@example.org", "alone")).await;
    let both = app.send(&tagged("both@example.org", "both")).await;
    app.drain().await;
    assert_eq!(app.status(&alone).await, "QUEUED");
    assert_eq!(app.status(&both).await, "QUEUED");
    let outcomes = app.outcomes(&both).await;
    assert_eq!(outcomes[0], "UNAVAILABLE");
    assert!(
        outcomes.len() <= 2,
        "one that is known to be closed is not called: {outcomes:?}"
    );
    app.simulator().clear_faults();
    app.advance_and_drain(TimeDelta::minutes(1)).await;
    assert_eq!(app.status(&both).await, "SENT");
    assert_eq!(app.captured_once("both@example.org").provider, FIRST);
    app.advance_and_drain(TimeDelta::hours(25)).await;
    assert_eq!(app.status(&alone).await, "FAILED");
}

#[tokio::test]
async fn a_rejected_message_goes_to_no_other_account() {
    let pair = Pair::start().await;
    let app = &pair.app;
    let id = app.send_to("refuse@example.org").await;
    app.drain().await;
    assert_eq!(app.status(&id).await, "FAILED");
    assert_eq!(pair.accounts_called(&id).await, [1]);
}

#[tokio::test]
async fn a_redis_emptied_again_and_again_during_failover_loses_nothing() {
    let app = TestApp::builder().private_redis().start().await;
    let pair = Pair::with(app, &json!({})).await;
    let app = &pair.app;
    app.simulator().set_fault(fault(FIRST, FaultKind::Error));
    let address = |nth: u32| format!("r{nth}@example.org");
    let mut ids = Vec::new();
    for nth in 0..30 {
        ids.push(app.send_to(&address(nth)).await);
        if nth % 3 == 0 {
            app.redis.as_ref().unwrap().flush().await;
        }
    }
    wait_until("all are sent", async || {
        app.redis.as_ref().unwrap().flush().await;
        // The relay does not repeat a push within a second.
        app.advance_and_drain(TimeDelta::seconds(2)).await;
        app.outbox().await.is_empty()
    })
    .await;
    for nth in 0..30 {
        assert_eq!(app.captured_once(&address(nth)).provider, SECOND);
    }
    for id in &ids {
        assert_eq!(app.status(id).await, "SENT");
        assert_eq!(app.outcomes(id).await.last().unwrap(), "ACCEPTED");
    }
}
