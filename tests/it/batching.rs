//! Provider batches: many recipients in one call, each with its own message, ids, links
//! and outcome. The simulator shows what arrived, and in how many calls.

mod failing;

use std::collections::{BTreeSet, HashMap};

use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_simulator::{Captured, Fault, Provider};
use waypost_tests::{SENDER, TestApp, event_types, message_to, to_hash, wait_until};

/// The types that accept several separate messages in one call.
const BATCHING: [ProviderType; 3] = [
    ProviderType::Sendgrid,
    ProviderType::Postmark,
    ProviderType::Mailgun,
];

fn addresses(count: usize) -> Vec<String> {
    (0..count)
        .map(|nth| format!("r{nth}@example.org"))
        .collect()
}

/// A small message to these recipients, in this order.
fn message_to_all(to: &[String]) -> Value {
    let mut message = message_to("");
    message["to"] = json!(to);
    message
}

/// Send calls that the provider of this type received.
fn calls(app: &TestApp, kind: ProviderType) -> u64 {
    let provider = Provider::parse(kind.as_str()).unwrap();
    app.simulator().send_call_count(provider)
}

/// How many recipients of the app's messages have this status.
async fn count(app: &TestApp, status: &str) -> i64 {
    number(
        app,
        &format!("SELECT count(*) FROM recipients WHERE status = '{status}'"),
    )
    .await
}

async fn number(app: &TestApp, query: &str) -> i64 {
    app.value(query).await.unwrap().parse().unwrap()
}

/// The number of attempts by outcome.
async fn count_outcomes(app: &TestApp, id: &str) -> HashMap<String, usize> {
    let mut outcomes = HashMap::new();
    for outcome in app.outcomes(id).await {
        *outcomes.entry(outcome).or_default() += 1;
    }
    outcomes
}

fn of(counts: &[(&str, usize)]) -> HashMap<String, usize> {
    let counts = counts.iter();
    counts
        .map(|(outcome, count)| ((*outcome).to_owned(), *count))
        .collect()
}

#[tokio::test]
async fn two_hundred_and_fifty_recipients_get_one_message_each_with_their_own_ids_by_three_calls() {
    for kind in BATCHING {
        let app = TestApp::start().await;
        app.connect(kind).await;
        let to = addresses(250);
        let id = app.send(&message_to_all(&to)).await;
        app.drain().await;
        assert_eq!(calls(&app, kind), 3, "{kind}");
        assert_eq!(app.simulator().captured_count(), 250, "{kind}");
        assert_eq!(app.status(&id).await, "SENT", "{kind}");
        assert_eq!(
            count_outcomes(&app, &id).await,
            of(&[("ACCEPTED", 250)]),
            "{kind}"
        );
        let mut attempts = BTreeSet::new();
        for (position, address) in to.iter().enumerate() {
            let copy = app.captured_once(address);
            assert_eq!(copy.visible_recipients, [address.as_str()], "{kind}");
            assert_eq!(
                (copy.html.as_deref(), copy.text.as_deref()),
                (Some("<p>Hello</p>"), Some("Hello")),
                "{kind}"
            );
            assert_eq!(copy.metadata["waypost_message"], id, "{kind}");
            let recipient = copy.metadata["waypost_recipient"].parse();
            assert_eq!(recipient, Ok(position), "{kind}");
            let recorded = format!(
                "SELECT r.provider_message_id FROM send_attempts a JOIN recipients r USING (message_id, position)
                 WHERE a.id = '{}' AND a.message_id = '{id}' AND a.position = {position}",
                copy.metadata["waypost_attempt"]
            );
            let ours = app.value(&recorded).await;
            let theirs = copy.provider_message_id.trim_matches(['<', '>']);
            assert_eq!(ours.as_deref(), Some(theirs), "{kind}");
            attempts.insert(copy.metadata["waypost_attempt"].clone());
        }
        assert_eq!(attempts.len(), 250, "{kind}");
    }
}

#[tokio::test]
async fn an_event_of_a_recipient_in_a_batch_changes_only_that_recipient() {
    for kind in BATCHING {
        let app = TestApp::start().await;
        let account = app.connect(kind).await;
        let path = format!("/v1/providers/{account}/event-webhook");
        let registered = app.caller().post_empty(&path).await.data(200);
        assert_eq!(registered["registered"], true, "{kind}");
        let stories = ["plain", "hard-bounce", "open", "block"];
        let to: Vec<String> = (0..40)
            .map(|nth| format!("{}@r{nth}.example.org", stories[nth % 4]))
            .collect();
        let id = app.send(&message_to_all(&to)).await;
        app.drain().await;
        wait_until("the simulator has sent all events", async || {
            app.simulator().callbacks().waiting == 0
        })
        .await;
        assert_eq!(calls(&app, kind), 1, "{kind}");
        let recipients = app.recipients(&id).await;
        assert_eq!(recipients.len(), 40);
        for (recipient, address) in recipients.iter().zip(&to) {
            assert_eq!(recipient["toHash"], to_hash(address), "{kind}");
            let mut events = event_types(recipient);
            // The provider has another clock: a reported event may come before SENT.
            events.sort_unstable();
            let expected = match address.split_once('@').unwrap().0 {
                "open" => &["DELIVERED", "OPENED", "QUEUED", "SENT"][..],
                "hard-bounce" | "block" => &["BOUNCED", "QUEUED", "SENT"],
                _ => &["DELIVERED", "QUEUED", "SENT"],
            };
            assert_eq!(events, expected, "{kind}: {address}");
        }
        let lost = "SELECT coalesce(sum(unmatched + unreadable), 0) FROM unrecorded_event_counts";
        assert_eq!(number(&app, lost).await, 0, "{kind}");
        let suppressed = number(&app, "SELECT count(*) FROM suppressions").await;
        assert_eq!(suppressed, 10, "{kind}: those without a mailbox");
    }
}

/// The tracking URLs in a text, without the part before the token.
fn tokens<'a>(text: &'a str, path: &str) -> Vec<&'a str> {
    let parts = text.split(path).skip(1);
    let end = |part: &str| part.find(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c)));
    parts
        .map(|part| &part[..end(part).unwrap_or(part.len())])
        .collect()
}

/// Fetches a link like the recipient's mail program.
async fn fetch(app: &TestApp, path: &str) {
    let reply = app.caller().anonymous().get(path).await;
    assert!(reply.status < 400, "{path}: {}", reply.status);
}

#[tokio::test]
async fn each_recipient_has_its_own_tracked_and_unsubscribe_links() {
    for kind in BATCHING {
        let app = TestApp::start().await;
        app.connect(kind).await;
        let group = app
            .post("/v1/unsubscribe-groups", &json!({ "name": "News" }))
            .await
            .data(201);
        let to = addresses(30);
        let message = json!({
            "from": SENDER, "to": to, "subject": "Grüße & Co", "unsubscribeGroupId": group["id"],
            "html": "<html><body>Ä <a href=\"https://shop.example/?a=1&amp;b=2\">1</a> <a href='https://shop.example/2'>2</a></body></html>",
            "text": "-wp0- 📬 Off: {{unsubscribeUrl}}",
        });
        let id = app.send(&message).await;
        app.drain().await;
        assert_eq!(calls(&app, kind), 1, "{kind}");
        let copies: Vec<Captured> = to.iter().map(|to| app.captured_once(to)).collect();
        let mut own = BTreeSet::new();
        let mut shapes = BTreeSet::new();
        for copy in &copies {
            let (html, text) = (copy.html.as_deref().unwrap(), copy.text.as_deref().unwrap());
            let (clicks, opens) = (tokens(html, "/v1/t/c/"), tokens(html, "/v1/t/o/"));
            let header = &copy.headers["List-Unsubscribe"];
            let link = header.trim_matches(['<', '>']);
            assert_eq!((clicks.len(), opens.len()), (2, 1), "{kind}: {html}");
            assert!(html.contains(link), "{kind}: {html}");
            assert_eq!(text, format!("-wp0- 📬 Off: {link}"), "{kind}");
            assert_eq!(
                copy.headers["List-Unsubscribe-Post"], "List-Unsubscribe=One-Click",
                "{kind}"
            );
            assert_eq!(copy.subject, "Grüße & Co", "{kind}");
            let shape = clicks
                .iter()
                .chain(&opens)
                .fold(html.to_owned(), |shape, token| {
                    shape.replacen(token, "TOKEN", 1)
                });
            shapes.insert(shape.replace(link, "LINK"));
            own.extend(clicks.into_iter().chain(opens).map(str::to_owned));
            own.insert(link.to_owned());
        }
        assert_eq!(own.len(), 30 * 4, "{kind}: nobody has another's");
        assert_eq!(shapes.len(), 1, "{kind}: {shapes:?}");
        let html = copies[7].html.as_deref().unwrap();
        fetch(&app, &format!("/v1/t/o/{}", tokens(html, "/v1/t/o/")[0])).await;
        let link = copies[9].headers["List-Unsubscribe"].trim_matches(['<', '>']);
        let page = &link[link.find("/v1/").unwrap()..];
        let caller = app.caller().anonymous();
        let form = Some("application/x-www-form-urlencoded");
        let left = caller
            .post_raw(page, form, "List-Unsubscribe=One-Click")
            .await;
        assert_eq!(left.status, 200, "{kind}");
        for (event_type, position) in [("OPENED", 7), ("UNSUBSCRIBED", 9)] {
            let query = format!(
                "SELECT string_agg(position::text, ' ') FROM events WHERE message_id = '{id}' AND event_type = '{event_type}'"
            );
            wait_until("what a reader did is recorded", async || {
                app.value(&query).await == Some(position.to_string())
            })
            .await;
        }
    }
}

#[tokio::test]
async fn a_text_with_a_provider_variable_arrives_unchanged() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Mailgun).await;
    let to = addresses(10);
    let mut message = message_to_all(&to);
    message["text"] = json!("100 %recipient.waypost_blank_0% %recipient%");
    app.send(&message).await;
    app.drain().await;
    assert_eq!(calls(&app, ProviderType::Mailgun), 10, "each went alone");
    for address in &to {
        let text = app.captured_once(address).text;
        assert_eq!(text.as_deref(), message["text"].as_str());
    }
}

#[tokio::test]
async fn a_recipient_suppressed_after_acceptance_is_left_out_of_the_batch() {
    for kind in BATCHING {
        let app = TestApp::builder().without_worker().start().await;
        app.connect(kind).await;
        let to = addresses(20);
        let id = app.send(&message_to_all(&to)).await;
        for nth in [0, 7, 19] {
            let body = json!({ "email": to[nth] });
            app.post("/v1/suppressions", &body).await.data(201);
        }
        app.start_worker();
        app.drain().await;
        assert_eq!(calls(&app, kind), 1, "{kind}");
        assert_eq!(
            count_outcomes(&app, &id).await,
            of(&[("ACCEPTED", 17)]),
            "{kind}"
        );
        for (nth, recipient) in app.recipients(&id).await.iter().enumerate() {
            let is_suppressed = [0, 7, 19].contains(&nth);
            let status = if is_suppressed { "FAILED" } else { "SENT" };
            assert_eq!(recipient["status"], status, "{kind}: {nth}");
            assert_eq!(app.captured(&to[nth]).len(), usize::from(!is_suppressed));
        }
    }
}

#[tokio::test]
async fn a_recipient_suppressed_while_a_batch_is_sent_one_by_one_is_left_out() {
    let builder = TestApp::builder().setting("WAYPOST_WORKER_CONCURRENCY", "1");
    let app = builder.start().await;
    app.connect(ProviderType::Mailgun).await;
    app.simulator().set_fault(Fault::slow_sends(100));
    let to = addresses(60);
    let mut message = message_to_all(&to);
    message["text"] = json!("100 %recipient.waypost_blank_0%");
    let id = app.send(&message).await;
    wait_until("the first has gone alone", async || {
        calls(&app, ProviderType::Mailgun) > 0
    })
    .await;
    let body = json!({ "email": to[59] });
    app.post("/v1/suppressions", &body).await.data(201);
    app.drain().await;
    assert!(app.captured(&to[59]).is_empty());
    let recipients = app.recipients(&id).await;
    assert_eq!(recipients[59]["status"], "FAILED");
    assert_eq!(count(&app, "SENT").await, 59);
    assert_eq!(count_outcomes(&app, &id).await, of(&[("ACCEPTED", 59)]));
}

#[tokio::test]
async fn few_recipients_large_bodies_and_other_providers_are_sent_one_by_one() {
    let big = "x".repeat(150_000);
    for (kind, recipients, text) in [
        (ProviderType::Postmark, 7, "Hello"),
        (ProviderType::Postmark, 10, &big),
        (ProviderType::Ses, 10, "Hello"),
    ] {
        let app = TestApp::start().await;
        app.connect(kind).await;
        let to = addresses(recipients);
        let mut message = message_to_all(&to);
        message["text"] = json!(text);
        app.send(&message).await;
        app.drain().await;
        assert_eq!(calls(&app, kind), recipients as u64, "{kind}");
        for address in &to {
            app.captured_once(address);
        }
    }
}

#[tokio::test]
async fn larger_bodies_are_split_into_several_calls() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Postmark).await;
    let to = addresses(100);
    let mut message = message_to_all(&to);
    message["text"] = json!("x".repeat(45_000));
    app.send(&message).await;
    app.drain().await;
    assert_eq!(app.simulator().captured_count(), 100);
    let calls = calls(&app, ProviderType::Postmark);
    assert_eq!(calls, 5, "21 copies of 48 KB make a MiB, and 16 are left");
}

#[tokio::test]
async fn a_batch_is_one_call_of_its_accounts_rate() {
    let app = TestApp::start().await;
    let account = app.connect(ProviderType::Sendgrid).await;
    let limit = json!({ "maxRatePerSecond": 1 });
    app.patch(&format!("/v1/providers/{account}"), &limit)
        .await
        .data(200);
    let id = app.send(&message_to_all(&addresses(100))).await;
    app.drain().await;
    assert_eq!(calls(&app, ProviderType::Sendgrid), 1);
    assert_eq!(app.status(&id).await, "SENT");
}

#[tokio::test]
async fn a_recipient_that_cannot_be_matched_by_address_gets_its_own_call() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Mailgun).await;
    let odd = [
        "ada+news@example.org",
        "a&b@example.org",
        "o'neill@example.org",
        "Ada@example.org",
        "a/b=c@example.org",
    ];
    let mut to = addresses(20);
    for (nth, address) in odd.iter().enumerate() {
        to.insert(nth * 3, (*address).to_owned());
    }
    let id = app.send(&message_to_all(&to)).await;
    app.drain().await;
    assert_eq!(app.status(&id).await, "SENT");
    let odd_calls = u64::try_from(odd.len()).unwrap();
    assert_eq!(calls(&app, ProviderType::Mailgun), 1 + odd_calls);
    let recipients = app.recipients(&id).await;
    for (position, (address, recipient)) in to.iter().zip(&recipients).enumerate() {
        let copy = app.captured_once(address);
        assert_eq!(copy.metadata["waypost_recipient"], position.to_string());
        assert_eq!(copy.metadata["waypost_message"], id, "{address}");
        assert_eq!(recipient["attempts"], 1, "{address}");
    }
}
