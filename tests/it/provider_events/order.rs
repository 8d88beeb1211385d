//! Twenty thousand events, each posted several times, concurrently and in random
//! order, end in the same state as in chronological order: all statuses, histories and
//! metrics.

use futures_util::stream::{self, StreamExt as _};
use serde_json::{Value, json};
use waypost_core::ids::OrganizationId;
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{Caller, SENDER, TestApp};

use super::{Account, connect, tags};

const MESSAGES: usize = 40;
const RECIPIENTS: usize = 100;
/// Events posted in random order, repetitions included.
const POSTED: usize = 20_000;
const POST_EVENTS: usize = 200;
const POSTS_AT_ONCE: usize = 4;
const HOURS: u64 = 60;

/// The same sequence in every run (SplitMix64).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn shuffle(&mut self, items: &mut [Value]) {
        for last in (1..items.len()).rev() {
            let other = usize::try_from(self.below(last as u64 + 1)).unwrap();
            items.swap(last, other);
        }
    }
}

/// Recipients that were sent a while ago, as the worker leaves them: the ids of message
/// and attempt derive from organization, number and position.
async fn make_copies(
    app: &TestApp,
    organization_id: OrganizationId,
    key: usize,
    account: &Account,
) {
    let account = &account.id;
    let now = app.clock.now();
    let sent = format!(
        "timestamptz '{}' - interval '{} hours'",
        now.to_rfc3339(),
        HOURS + 2
    );
    let prefix = prefix(app);
    let id = |kind: char, number: &str| {
        format!("('{prefix}7{kind}0{key}8' || lpad(to_hex({number}), 15, '0'))::uuid")
    };
    let (message, attempt) = (id('0', "n"), id('a', "n * 1000 + p"));
    let copies = format!(
        "generate_series(1, {MESSAGES}) n CROSS JOIN generate_series(0, {}) p",
        RECIPIENTS - 1
    );
    app.execute(&format!(
        "INSERT INTO messages (id, organization_id, provider_account_id, from_address, to_hash, subject, status,
                               tags, recipient_count, created_at, sent_at)
         SELECT {message}, '{organization_id}', '{account}', '{SENDER}', sha256('x'), 'Message ' || n, 'SENT',
                '{{}}', {RECIPIENTS}, {sent}, {sent}
         FROM generate_series(1, {MESSAGES}) n;
         INSERT INTO recipients (message_id, position, organization_id, address_sealed, address_hash, status,
                                 provider_account_id, provider_message_id, attempts, next_attempt_at, sent_at)
         SELECT {message}, p, '{organization_id}', 'sealed', sha256((n * 1000 + p)::text::bytea), 'SENT',
                '{account}', 'm-' || n || '-' || p, 1, {sent}, {sent}
         FROM {copies};
         INSERT INTO send_attempts (message_id, id, organization_id, position, provider_account_id, started_at,
                                    finished_at, outcome)
         SELECT {message}, {attempt}, '{organization_id}', p, '{account}', {sent}, {sent}, 'ACCEPTED'
         FROM {copies};
         INSERT INTO events (message_id, id, organization_id, position, event_type, occurred_at)
         SELECT {message}, {attempt}, '{organization_id}', p, 'SENT', {sent}
         FROM {copies};
         ANALYZE messages, recipients, send_attempts, events;"
    ))
    .await;
}

/// The timestamp prefix of the ids.
fn prefix(app: &TestApp) -> String {
    format!("{:012x}", app.clock.now().timestamp_millis())
}

/// The events of all recipients of an organization, in chronological order.
fn story(app: &TestApp, key: usize) -> Vec<Value> {
    let (prefix, now) = (prefix(app), app.clock.now().timestamp());
    let mut chance = Chance(7);
    let mut events = Vec::new();
    for number in 1..=MESSAGES {
        for position in 0..RECIPIENTS {
            let uuid = |kind: char, number: usize| {
                let text = format!("{prefix}7{kind}0{key}8{number:015x}");
                text.parse::<uuid::Uuid>().unwrap().to_string()
            };
            let attempt = uuid('a', number * 1_000 + position);
            let place = i32::try_from(position).unwrap();
            let ids = tags(&uuid('0', number), place, &attempt);
            for (nth, word) in happenings(&mut chance).into_iter().enumerate() {
                let after = chance.below(HOURS * 3_600);
                let mut event = ids.clone();
                event.insert("event".to_owned(), json!(word.trim_end_matches('!')));
                event.insert("sg_event_id".to_owned(), json!(format!("{attempt}-{nth}")));
                let at = now - i64::try_from(HOURS * 3_600 - after).unwrap();
                event.insert("timestamp".to_owned(), json!(at));
                if word.ends_with('!') {
                    event.insert("sg_machine_open".to_owned(), json!(true));
                    event.insert("type".to_owned(), json!("blocked"));
                }
                events.push(Value::Object(event));
            }
        }
    }
    events.sort_by_key(|event| event["timestamp"].as_i64());
    events
}

/// The events of one recipient; a mark means by a machine, or only blocked.
fn happenings(chance: &mut Chance) -> Vec<&'static str> {
    let mut words = vec!["processed"];
    let mut perhaps = |one_in: u64, word| {
        if chance.below(one_in) == 0 {
            words.push(word);
        }
    };
    for (one_in, word) in [
        (3, "deferred"),
        (3, "open"),
        (4, "open"),
        (4, "open!"),
        (5, "click"),
        (11, "bounce"),
        (13, "bounce!"),
        (31, "dropped"),
        (41, "spamreport"),
        (43, "unsubscribe"),
        (97, "delivered"),
    ] {
        perhaps(one_in, word);
    }
    if chance.below(10) > 0 {
        words.push("delivered");
    }
    words
}

async fn post_all(app: &TestApp, account: &Account, events: &[Value], at_once: usize) {
    let posts = events.chunks(POST_EVENTS).map(|part| async move {
        account.tell(app, &Value::Array(part.to_vec())).await;
    });
    stream::iter(posts)
        .buffer_unordered(at_once)
        .collect::<Vec<()>>()
        .await;
}

/// Everything that an organization sees of the events, and the stored times.
async fn end(app: &TestApp, organization_id: OrganizationId, caller: &Caller) -> Vec<String> {
    let copies = format!(
        "SELECT string_agg(concat_ws(' ', m.subject, m.status, m.delivered_at, r.position, r.status, r.sent_at,
                                     r.delivered_at, r.opened_at, r.clicked_at, r.implied_event_id IS NULL, h.lines),
                           E'\\n' ORDER BY m.id, r.position)
         FROM messages m
         JOIN recipients r ON r.message_id = m.id
         CROSS JOIN LATERAL (
             SELECT string_agg(e.event_type || ' ' || e.occurred_at || ' ' || coalesce((e.data - 'attemptId')::text, ''), ', '
                               ORDER BY e.occurred_at, e.event_type, e.data) AS lines
             FROM events e
             WHERE e.message_id = m.id AND e.position = r.position) h
         WHERE m.organization_id = '{organization_id}'"
    );
    let suppressed = format!(
        "SELECT string_agg(encode(email_hash, 'hex'), ' ' ORDER BY email_hash)
         FROM suppressions
         WHERE organization_id = '{organization_id}'"
    );
    let mut seen = vec![
        app.value(&copies).await.unwrap(),
        app.value(&suppressed).await.unwrap(),
    ];
    let from = (app.clock.now() - chrono::TimeDelta::days(6)).format("%Y-%m-%dT%H:%M:%SZ");
    for path in [
        format!("/v1/metrics?granularity=hour&from={from}"),
        "/v1/metrics/summary".to_owned(),
        "/v1/metrics/breakdown?groupBy=provider".to_owned(),
        "/v1/metrics/breakdown?groupBy=domain".to_owned(),
    ] {
        seen.push(caller.get(&path).await.data(200).to_string());
    }
    for status in ["SENT", "DELIVERED", "BOUNCED", "FAILED"] {
        let page = caller
            .get(&format!("/v1/messages?limit=1&status={status}"))
            .await;
        seen.push(page.expect(200)["pagination"]["total"].to_string());
    }
    seen
}

/// Asserts that both texts are equal and not empty; shows the first line that differs.
fn agree(expected: &str, found: &str) {
    let difference = expected.lines().zip(found.lines()).find(|(a, b)| a != b);
    assert_eq!(difference, None);
    assert!(!expected.is_empty() && expected.len() == found.len());
}

/// The counts per hour, from the histories and from the metrics.
async fn hours(app: &TestApp, organization_id: OrganizationId) -> [String; 2] {
    let by_history = format!(
        "SELECT string_agg(concat_ws(' ', hour, event_type, count), E'\\n' ORDER BY hour, event_type)
         FROM (SELECT date_trunc('hour', at, 'UTC') AS hour, event_type, count(*)
               FROM (SELECT event_type, min(occurred_at) AS at
                     FROM events
                     WHERE organization_id = '{organization_id}'
                       AND event_type IN ('SENT', 'DELIVERED', 'OPENED', 'CLICKED', 'BOUNCED', 'COMPLAINED',
                                          'UNSUBSCRIBED')
                       AND data -> 'isBot' IS DISTINCT FROM 'true'
                     GROUP BY message_id, position, event_type) moments
               GROUP BY 1, 2) counted"
    );
    let by_count = format!(
        "SELECT string_agg(concat_ws(' ', hour, event_type, count), E'\\n' ORDER BY hour, event_type)
         FROM (SELECT hour, event_type::event_type AS event_type, sum(count) AS count
               FROM (SELECT date_trunc('hour', quarter, 'UTC') AS hour, sent, delivered, opened, clicked, bounced,
                            complained, unsubscribed
                     FROM metric_rollups
                     WHERE organization_id = '{organization_id}' AND filter = 'TOTAL' AND grouped_by = 'TOTAL'
                     UNION ALL
                     SELECT date_trunc('hour', quarter, 'UTC'), sent, delivered, opened, clicked, bounced, complained, unsubscribed
                     FROM metric_deltas
                     WHERE organization_id = '{organization_id}') both_places
               CROSS JOIN LATERAL (
                   VALUES ('SENT', sent), ('DELIVERED', delivered), ('OPENED', opened), ('CLICKED', clicked),
                          ('BOUNCED', bounced), ('COMPLAINED', complained), ('UNSUBSCRIBED', unsubscribed)
               ) AS one (event_type, count)
               GROUP BY 1, 2
               HAVING sum(count) <> 0) counted"
    );
    [
        app.value(&by_history).await.unwrap(),
        app.value(&by_count).await.unwrap(),
    ]
}

#[tokio::test]
async fn twenty_thousand_events_in_random_order_end_as_in_chronological_order() {
    let app = TestApp::builder().without_worker().start().await;
    let other = app.tenant("Other").await;
    let clean = connect(&app, app.caller(), ProviderType::Sendgrid).await;
    let wild = connect(&app, &other.caller, ProviderType::Sendgrid).await;
    make_copies(&app, app.organization_id(), 1, &clean).await;
    make_copies(&app, other.organization_id, 2, &wild).await;
    let events = story(&app, 1);
    assert!((8_000..POSTED).contains(&events.len()), "{}", events.len());
    post_all(&app, &clean, &events, 1).await;

    let mut events = story(&app, 2);
    let mut chance = Chance(11);
    let distinct = events.len() as u64;
    while events.len() < POSTED {
        let again = events[usize::try_from(chance.below(distinct)).unwrap()].clone();
        events.push(again);
    }
    chance.shuffle(&mut events);
    post_all(&app, &wild, &events, POSTS_AT_ONCE).await;

    let expected = end(&app, app.organization_id(), app.caller()).await;
    let found = end(&app, other.organization_id, &other.caller).await;
    for (expected, found) in expected.iter().zip(&found) {
        agree(expected, found);
    }
    for organization_id in [app.organization_id(), other.organization_id] {
        let [by_history, by_count] = hours(&app, organization_id).await;
        agree(&by_history, &by_count);
    }
    // Guards against a run without events.
    let summary = app.get("/v1/metrics/summary").await.data(200);
    let copies = (MESSAGES * RECIPIENTS) as i64;
    assert_eq!(summary["totalSent"], copies);
    for (name, least) in [
        ("totalDelivered", copies * 9 / 10),
        ("totalOpened", copies / 4),
        ("totalClicked", copies / 6),
        ("totalBounced", copies / 10),
        ("totalComplained", copies / 60),
        ("totalUnsubscribed", copies / 60),
    ] {
        assert!(summary[name].as_i64().unwrap() > least, "{name}: {summary}");
    }
}
