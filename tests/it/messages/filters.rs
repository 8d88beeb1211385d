//! Filters of the list of messages: alone and together, against the same filters over a
//! model of the messages.

use std::collections::BTreeSet;

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};
use uuid::Uuid;
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{Caller, TestApp, message_to};

pub(super) const PATH: &str = "/v1/messages";
/// More than a filtered list reads from the newest message on.
pub(super) const FILLERS: u64 = 21_000;
/// 2026-01-01, when the first message was accepted.
const START_MS: i64 = 1_767_225_600_000;
const DAY_MS: i64 = 86_400_000;

/// A message of the model.
#[derive(Clone)]
struct Sent {
    id: Uuid,
    at_ms: i64,
    from: String,
    subject: String,
    status: &'static str,
    is_test: bool,
    tags: Vec<String>,
    template: Option<Uuid>,
    /// The account of the acceptance, and the one that sent it.
    accounts: [Uuid; 2],
    /// Addresses and the ids that the provider gave.
    recipients: Vec<(String, String)>,
}

/// Numbers that are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    fn one_of<'a, T>(&mut self, values: &'a [T]) -> &'a T {
        &values[usize::try_from(self.below(values.len() as u64)).unwrap()]
    }
}

const FROMS: [&str; 4] = [
    "news@example.com",
    "News@Example.com",
    "shop@mail.example.com",
    "it's_100%@example.net",
];
const TAGS: [&str; 4] = ["a", "a b", "%", "Ünï,code"];
const STATUSES: [&str; 4] = ["SENT", "DELIVERED", "BOUNCED", "FAILED"];

fn uuid(kind: u128, nth: u64) -> Uuid {
    Uuid::from_u128((kind << 96) | (7 << 76) | (2 << 62) | u128::from(nth))
}

fn id_at(at_ms: i64, nth: u64) -> Uuid {
    let time = u128::try_from(at_ms).unwrap() << 80;
    Uuid::from_u128(time | (7 << 76) | (2 << 62) | u128::from(nth))
}

fn model(numbers: &mut Numbers, count: u64) -> Vec<Sent> {
    (0..count)
        .map(|_| {
            let at_ms = START_MS + i64::try_from(numbers.below(9 * 86_400_000)).unwrap();
            let nth = numbers.below(1 << 60);
            let tags = TAGS.iter().filter(|_| numbers.below(3) == 0);
            let tags = tags.map(|tag| (*tag).to_owned()).collect();
            let account = uuid(0xacc, numbers.below(3));
            let moved = numbers.below(4) == 0;
            let copies = 1 + numbers.below(3);
            let recipients = (0..copies).map(|_| {
                let address = format!("r{}@example.org", numbers.below(12));
                (address, format!("pm-{}", numbers.below(40)))
            });
            let recipients = recipients.collect();
            Sent {
                id: id_at(at_ms, nth),
                at_ms,
                from: (*numbers.one_of(&FROMS)).to_owned(),
                subject: format!("Order {}", numbers.below(20)),
                status: numbers.one_of::<&str>(&STATUSES),
                is_test: numbers.below(3) == 0,
                tags,
                template: (numbers.below(3) > 0).then(|| uuid(0x7e3, numbers.below(3))),
                accounts: [
                    account,
                    if moved {
                        uuid(0xacc, numbers.below(3))
                    } else {
                        account
                    },
                ],
                recipients,
            }
        })
        .collect()
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

async fn insert(app: &TestApp, organization: &str, messages: &[Sent]) {
    let mut rows = Vec::new();
    let mut recipients = Vec::new();
    for one in messages {
        let tags: Vec<String> = one.tags.iter().map(|tag| quoted(tag)).collect();
        let template = one
            .template
            .map_or("NULL".to_owned(), |id| quoted(&id.to_string()));
        rows.push(format!(
            "('{}', '{organization}', '{}', {}, sha256({}), {}, '{}', ARRAY[{}]::text[], {template}, {},
              to_timestamp({} / 1000.0), {})",
            one.id,
            one.accounts[0],
            quoted(&one.from),
            quoted(&one.recipients[0].0),
            quoted(&one.subject),
            one.status,
            tags.join(","),
            one.recipients.len(),
            one.at_ms,
            one.is_test,
        ));
        for (position, (address, provider_id)) in one.recipients.iter().enumerate() {
            recipients.push(format!(
                "('{}', {position}, '{organization}', '', sha256('{address}'), '{}', '{provider_id}', now())",
                one.id, one.status,
            ));
        }
    }
    app.execute(&format!(
        "WITH added AS (
             INSERT INTO recipients (message_id, position, organization_id, address_sealed, address_hash, status,
                                     provider_message_id, next_attempt_at)
             VALUES {}
         )
         INSERT INTO messages (id, organization_id, provider_account_id, from_address, to_hash, subject, status,
                               tags, template_id, recipient_count, created_at, is_test)
         VALUES {}",
        recipients.join(","),
        rows.join(","),
    ))
    .await;
}

/// Another account sends some of the messages, as the worker records it.
async fn fail_over(app: &TestApp, messages: &[Sent]) {
    for one in messages
        .iter()
        .filter(|one| one.accounts[0] != one.accounts[1])
    {
        app.execute(&format!(
            "UPDATE messages SET resolved_account_id = provider_account_id, provider_account_id = '{}' WHERE id = '{}'",
            one.accounts[1], one.id,
        ))
        .await;
    }
}

/// Live messages that match few filters, all over the time of the others and after it.
pub(super) async fn insert_fillers(app: &TestApp) {
    insert_fillers_of(app, "800f", false).await;
}

/// The same for tests.
async fn insert_test_fillers(app: &TestApp) {
    insert_fillers_of(app, "800e", true).await;
}

async fn insert_fillers_of(app: &TestApp, part_of_id: &str, is_test: bool) {
    let organization = app.organization_id();
    app.execute(&format!(
        "INSERT INTO messages (id, organization_id, provider_account_id, from_address, to_hash, subject, status,
                               tags, recipient_count, created_at, is_test)
         SELECT (lpad(to_hex({START_MS} + n * 43200), 12, '0') || '7000{part_of_id}' || lpad(to_hex(n), 12, '0'))::uuid,
                '{organization}', '{}', 'filler@example.com', sha256('filler@example.org'), 'Filler',
                'DELIVERED', '{{filler}}', 1, to_timestamp(({START_MS} + n * 43200) / 1000.0), {is_test}
         FROM generate_series(1, {FILLERS}) n",
        uuid(0xacc, 9),
    ))
    .await;
}

/// A filter: its parameter and value, and whether a message matches. The flag says whether the
/// messages have failed over.
type Filter = (&'static str, String, Box<dyn Fn(&Sent, bool) -> bool>);

/// A filter of one of the eleven kinds.
fn filter(numbers: &mut Numbers, kind: u64) -> Filter {
    if kind < 5 {
        filter_of_content(numbers, kind)
    } else {
        filter_of_delivery(numbers, kind)
    }
}

/// By recipient, sender, tag or template.
fn filter_of_content(numbers: &mut Numbers, kind: u64) -> Filter {
    match kind {
        0 => {
            let address = format!("r{}@example.org", numbers.below(14));
            let given = if numbers.below(2) == 0 {
                address.to_uppercase()
            } else {
                format!(" {address}")
            };
            (
                "recipient",
                given,
                Box::new(move |one, _| one.recipients.iter().any(|(to, _)| *to == address)),
            )
        }
        1 => {
            let from = (*numbers.one_of(&FROMS)).to_lowercase();
            (
                "from",
                from.to_uppercase(),
                Box::new(move |one, _| one.from.to_lowercase() == from),
            )
        }
        2 => {
            let domain = (*numbers.one_of(&[
                "example.com",
                "mail.example.com",
                "example.net",
                "ample.com",
            ]))
            .to_owned();
            let suffix = format!("@{domain}");
            (
                "from",
                domain,
                Box::new(move |one, _| one.from.to_lowercase().ends_with(&suffix)),
            )
        }
        3 => {
            let tag = (*numbers.one_of(&["a", "a b", "%", "Ünï,code", "b", "A"])).to_owned();
            (
                "tag",
                tag.clone(),
                Box::new(move |one, _| one.tags.contains(&tag)),
            )
        }
        _ => {
            let template = uuid(0x7e3, numbers.below(4));
            (
                "templateId",
                template.to_string(),
                Box::new(move |one, _| one.template == Some(template)),
            )
        }
    }
}

/// By account, status, provider's id, time or subject.
fn filter_of_delivery(numbers: &mut Numbers, kind: u64) -> Filter {
    match kind {
        5 => {
            let account = uuid(0xacc, numbers.below(4));
            (
                "providerAccountId",
                account.to_string(),
                Box::new(move |one, is_moved| one.accounts[usize::from(is_moved)] == account),
            )
        }
        6 => {
            let statuses: BTreeSet<&str> = (0..=numbers.below(3))
                .map(|_| *numbers.one_of(&STATUSES))
                .collect();
            let given: Vec<&str> = statuses.iter().copied().collect();
            (
                "status",
                given.join(","),
                Box::new(move |one, _| statuses.contains(one.status)),
            )
        }
        7 => {
            let provider_id = format!("pm-{}", numbers.below(42));
            (
                "providerMessageId",
                provider_id.clone(),
                Box::new(move |one, _| one.recipients.iter().any(|(_, id)| *id == provider_id)),
            )
        }
        8 => {
            let at_ms = START_MS + i64::try_from(numbers.below(9)).unwrap() * DAY_MS + 5_000_001;
            (
                "createdFrom",
                time(at_ms),
                Box::new(move |one, _| one.at_ms >= at_ms),
            )
        }
        9 => {
            let at_ms = START_MS + i64::try_from(numbers.below(9)).unwrap() * DAY_MS + 70_000_000;
            (
                "createdTo",
                time(at_ms),
                Box::new(move |one, _| one.at_ms < at_ms),
            )
        }
        _ => {
            let text = format!("order {}", numbers.below(20));
            (
                "search",
                text.to_uppercase(),
                Box::new(move |one, _| one.subject.to_lowercase().contains(&text)),
            )
        }
    }
}

fn time(at_ms: i64) -> String {
    let at: DateTime<Utc> = DateTime::from_timestamp_millis(at_ms).unwrap();
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

pub(super) fn ids(body: &Value) -> Vec<String> {
    let rows = body["data"].as_array().unwrap().iter();
    rows.map(|row| row["id"].as_str().unwrap().to_owned())
        .collect()
}

/// All ids of a list, by its pages and by its cursors, and its total.
async fn listed(caller: &Caller, query: &[(&str, &str)], limit: &str) -> (Vec<String>, i64) {
    let mut by_page = Vec::new();
    let mut by_cursor = Vec::new();
    let mut cursor: Option<String> = None;
    let mut total = 0;
    for page in 1..=60 {
        let number = page.to_string();
        let mut with_page = query.to_vec();
        with_page.extend([("limit", limit), ("page", number.as_str())]);
        let body = caller.query(PATH, &with_page).await.expect(200);
        by_page.extend(ids(&body));
        total = body["pagination"]["total"].as_i64().unwrap();
        let has_more = !body["pagination"]["nextCursor"].is_null();
        if page == 1 || cursor.is_some() {
            let mut with_cursor = query.to_vec();
            with_cursor.push(("limit", limit));
            with_cursor.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
            let body = caller.query(PATH, &with_cursor).await.expect(200);
            by_cursor.extend(ids(&body));
            assert_eq!(body["pagination"]["page"], page);
            assert_eq!(body["pagination"]["total"], total, "{query:?}");
            let next = body["pagination"]["nextCursor"].as_str();
            assert_eq!(next.is_some(), has_more, "{query:?} page {page}");
            cursor = next.map(str::to_owned);
        }
        if !has_more {
            break;
        }
    }
    assert_eq!(by_page, by_cursor, "{query:?}");
    (by_page, total)
}

async fn compare(app: &TestApp, messages: &[Sent], is_moved: bool, numbers: &mut Numbers) {
    let mut combinations: Vec<Vec<u64>> = (0..=10).map(|kind| vec![kind]).collect();
    for _ in 0..20 {
        let mut kinds: Vec<u64> = (0..=10).filter(|_| numbers.below(4) == 0).collect();
        if kinds.contains(&1) {
            kinds.retain(|kind| *kind != 2);
        }
        combinations.push(kinds);
    }
    for kinds in combinations {
        let filters: Vec<_> = kinds.iter().map(|kind| filter(numbers, *kind)).collect();
        let mut query: Vec<(&str, &str)> = filters
            .iter()
            .map(|(name, value, _)| (*name, value.as_str()))
            .collect();
        // Without the parameter: live messages.
        let is_test = numbers.below(2) == 0;
        if is_test || numbers.below(2) == 0 {
            query.push(("test", if is_test { "true" } else { "false" }));
        }
        // The fillers are not in the model: one of these excludes them.
        if kinds.iter().all(|kind| matches!(kind, 2 | 6 | 8 | 9)) {
            query.push(("search", "order "));
        }
        let mut expected: Vec<&Sent> = messages
            .iter()
            .filter(|one| one.is_test == is_test)
            .filter(|one| filters.iter().all(|(_, _, matches)| matches(one, is_moved)))
            .collect();
        expected.sort_by_key(|one| std::cmp::Reverse(one.id));
        let expected: Vec<String> = expected.iter().map(|one| one.id.to_string()).collect();
        let (found, total) = listed(app.caller(), &query, "50").await;
        assert_eq!(found, expected, "{query:?}, moved: {is_moved}");
        assert_eq!(total, i64::try_from(expected.len()).unwrap(), "{query:?}");
    }
}

pub(super) async fn quiet() -> TestApp {
    TestApp::builder()
        .without_worker()
        .without_scheduler()
        .start()
        .await
}

/// Whether the labels that acceptance and the scheduler write are those of the view.
async fn assert_labelled(app: &TestApp) {
    let sorted = |labels: &str| format!("ARRAY(SELECT unnest({labels}) AS label ORDER BY label)");
    let (found, wanted) = (sorted("s.labels"), sorted("l.labels"));
    let other = format!(
        "SELECT count(*) FROM message_subjects s JOIN message_labels l USING (message_id)
         WHERE {found} <> {wanted} AND s.subject <> 'filler'"
    );
    assert_eq!(app.value(&other).await.as_deref(), Some("0"));
}

#[tokio::test]
async fn all_filters_find_what_a_naive_filter_finds_before_and_after_the_roll_up() {
    let app = quiet().await;
    let other = app.tenant("Other").await;
    let numbers = &mut Numbers(1);
    let mut messages = model(numbers, 400);
    let organization = app.organization_id().to_string();
    insert(&app, &organization, &messages).await;
    insert(
        &app,
        &other.organization_id.to_string(),
        &model(numbers, 100),
    )
    .await;
    // Few messages, then many, none of them in the index.
    compare(&app, &messages, false, numbers).await;
    insert_fillers(&app).await;
    insert_test_fillers(&app).await;
    compare(&app, &messages, false, numbers).await;
    app.fold_messages().await;
    assert_labelled(&app).await;
    compare(&app, &messages, false, numbers).await;
    // Some are indexed, some are not, and accounts change after the index was written.
    let new = model(numbers, 100);
    insert(&app, &organization, &new).await;
    messages.extend(new);
    fail_over(&app, &messages).await;
    compare(&app, &messages, true, numbers).await;
    app.fold_messages().await;
    compare(&app, &messages, true, numbers).await;
    let gone: Vec<Sent> = messages.split_off(450);
    let ids: Vec<String> = gone.iter().map(|one| quoted(&one.id.to_string())).collect();
    app.execute(&format!(
        "SELECT waypost_delete_messages(ARRAY[{}]::uuid[])",
        ids.join(",")
    ))
    .await;
    compare(&app, &messages, true, numbers).await;
}

#[tokio::test]
async fn totals_of_times_and_statuses_are_exact_in_long_lists() {
    let app = quiet().await;
    insert_fillers(&app).await;
    insert_test_fillers(&app).await;
    app.execute("UPDATE messages SET status = 'FAILED' WHERE ('x' || right(id::text, 4))::bit(16)::integer % 3 = 0")
        .await;
    for is_folded in [false, true] {
        if is_folded {
            app.fold_messages().await;
        }
        for (from, to) in [
            (Some(0), Some(3 * DAY_MS)),
            (Some(DAY_MS + 1), None),
            (None, Some(2 * DAY_MS + 3_599_999)),
            (Some(3_600_000), Some(7_200_000)),
            (Some(DAY_MS), Some(DAY_MS)),
            (Some(2 * DAY_MS), Some(DAY_MS)),
            (Some(100 * DAY_MS), None),
        ] {
            for (status, is_test) in [
                (None, false),
                (Some("FAILED"), false),
                (Some("FAILED,DELIVERED,SENT"), false),
                (Some("QUEUED,SENT"), false),
                (None, true),
                (Some("FAILED"), true),
                (Some("FAILED,DELIVERED,SENT"), true),
            ] {
                let bounds = [("createdFrom", from), ("createdTo", to)];
                let bounds = bounds.map(|(name, at)| at.map(|at| (name, time(START_MS + at))));
                let mut query: Vec<(&str, &str)> = bounds
                    .iter()
                    .flatten()
                    .map(|(name, at)| (*name, at.as_str()))
                    .collect();
                query.extend(status.map(|status| ("status", status)));
                query.extend(is_test.then_some(("test", "true")));
                let condition = format!(
                    "FROM messages WHERE created_at >= to_timestamp({} / 1000.0) AND created_at < to_timestamp({} / 1000.0)
                     AND status::text = ANY(string_to_array('{}', ',')) AND is_test = {is_test}",
                    START_MS + from.unwrap_or(-DAY_MS),
                    START_MS + to.unwrap_or(1_000 * DAY_MS),
                    status.unwrap_or("FAILED,DELIVERED"),
                );
                let expected = app
                    .value(&format!("SELECT count(*) {condition}"))
                    .await
                    .unwrap();
                let body = app.caller().query(PATH, &query).await.expect(200);
                assert_eq!(
                    body["pagination"]["total"].to_string(),
                    expected,
                    "{query:?}"
                );
                // The first page, one in the middle and the last.
                let pages = expected.parse::<i64>().unwrap().div_euclid(20) + 1;
                for page in [1, pages / 2 + 1, pages] {
                    let number = page.to_string();
                    let mut query = query.clone();
                    query.push(("page", &number));
                    let body = app.caller().query(PATH, &query).await.expect(200);
                    let skip = (page - 1) * 20;
                    let rows = app
                        .value(&format!("SELECT string_agg(id::text, ' ') FROM (SELECT id {condition} ORDER BY id DESC LIMIT 20 OFFSET {skip}) p"))
                        .await;
                    assert_eq!(ids(&body).join(" "), rows.unwrap_or_default(), "{query:?}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_sent_message_is_found_by_what_was_sent_at_once() {
    let app = quiet().await;
    let account = app.connect(ProviderType::Sendgrid).await;
    let mut message = message_to("ada@example.org");
    message["to"] = json!(["Ada@Example.org", "Bob <bob@example.org>"]);
    message["from"] = json!("The News <News@Example.com>");
    message["tags"] = json!(["receipts"]);
    let id = app.send(&message).await;
    app.send(&message_to("eve@example.org")).await;
    for is_folded in [false, true] {
        if is_folded {
            app.fold_messages().await;
        }
        for (name, value, is_found) in [
            ("recipient", "ADA@example.org", true),
            ("recipient", "bob@EXAMPLE.org", true),
            ("recipient", "carol@example.org", false),
            ("tag", "receipts", true),
            ("tag", "Receipts", false),
        ] {
            let items = app.caller().query(PATH, &[(name, value)]).await.expect(200);
            let expected = if is_found { vec![id.clone()] } else { vec![] };
            assert_eq!(ids(&items), expected, "{name}={value}");
        }
        for (name, value, count) in [
            ("from", "news@example.com", 2),
            ("from", "EXAMPLE.com", 2),
            ("providerAccountId", account.as_str(), 2),
        ] {
            let items = app.caller().query(PATH, &[(name, value)]).await.expect(200);
            assert_eq!(ids(&items).len(), count, "{name}={value}");
        }
    }
    app.leave_work();
}
