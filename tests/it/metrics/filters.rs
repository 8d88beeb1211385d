//! Filters and groups: whatever is asked for, the counts are those of the messages that match.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use serde_json::{Value, json};
use waypost_core::event::EventType;
use waypost_core::metrics::KEYS_PER_MONTH_MAX;
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{TestApp, message_to};

use super::{BREAKDOWN, SERIES, SUMMARY, fold, quiet, record, sum, total};

const GROUPS: [&str; 6] = [
    "provider",
    "domain",
    "template",
    "account",
    "tag",
    "recipientDomain",
];

/// A message of the world, and whether it was delivered.
struct Sent {
    account: usize,
    template: Option<usize>,
    tags: Vec<&'static str>,
    domain: &'static str,
    recipient_domain: &'static str,
    is_delivered: bool,
}

struct World {
    accounts: Vec<String>,
    templates: Vec<String>,
    sent: Vec<Sent>,
}

impl World {
    /// Messages of all combinations of two accounts, templates, tags and domains.
    async fn build(app: &TestApp) -> Self {
        let settings = json!({ "unverifiedDomains": "accept" });
        app.patch("/v1/settings", &settings).await.data(200);
        let accounts = vec![
            app.connect(ProviderType::Sendgrid).await,
            app.connect(ProviderType::Mailgun).await,
        ];
        let mut templates = Vec::new();
        for name in ["Welcome", "Receipt"] {
            let body = json!({ "name": name });
            let template = app.post("/v1/templates", &body).await.data(201);
            let id = template["id"].as_str().unwrap().to_owned();
            let version = json!({ "htmlContent": "<p>Hello</p>" });
            let path = format!("/v1/templates/{id}/versions");
            app.post(&path, &version).await.data(201);
            templates.push(id);
        }
        let mut world = Self {
            accounts,
            templates,
            sent: Vec::new(),
        };
        for number in 0..48 {
            world.send(app, number).await;
        }
        app.leave_work();
        world
    }

    async fn send(&mut self, app: &TestApp, number: usize) {
        let tags: [&[&str]; 4] = [&[], &["a"], &["b"], &["a", "b"]];
        let sent = Sent {
            account: number % 2,
            template: [None, Some(0), Some(1)][number % 3],
            tags: tags[number / 2 % 4].to_vec(),
            domain: ["example.com", "mail.example"][number / 8 % 2],
            recipient_domain: ["one.example", "two.example"][number / 16 % 2],
            is_delivered: !number.is_multiple_of(5),
        };
        let mut message = message_to(&format!(
            "r{number}@{}",
            sent.recipient_domain.to_uppercase()
        ));
        message["from"] = json!(format!("news@{}", sent.domain));
        message["tags"] = json!(sent.tags);
        message["providerAccountId"] = json!(self.accounts[sent.account]);
        if let Some(template) = sent.template {
            message["templateId"] = json!(self.templates[template]);
        }
        let id = app.send(&message).await;
        // Over three days, so that days and quarters of an hour are read.
        let at = app.clock.now() - TimeDelta::minutes(90 * i64::try_from(number).unwrap());
        record(app, &id, 0, EventType::Sent, at, None).await;
        if sent.is_delivered {
            let later = at + TimeDelta::minutes(7);
            record(app, &id, 0, EventType::Delivered, later, None).await;
        }
        self.sent.push(sent);
    }

    /// The names of the groups that a message counts in.
    fn names(&self, sent: &Sent, group_by: &str) -> Vec<String> {
        let one = |name: &str| vec![name.to_owned()];
        match group_by {
            "provider" => one(["SENDGRID", "MAILGUN"][sent.account]),
            "domain" => one(sent.domain),
            "template" => one(sent
                .template
                .map_or("(none)", |nth| ["Welcome", "Receipt"][nth])),
            "account" => one(&format!("An account ({})", self.accounts[sent.account])),
            "tag" if sent.tags.is_empty() => one("(none)"),
            "tag" => sent.tags.iter().map(|tag| (*tag).to_owned()).collect(),
            "recipientDomain" => one(sent.recipient_domain),
            other => panic!("{other}"),
        }
    }
}

/// The filters of a request, each with whether a message matches.
struct Filter {
    tag: Option<&'static str>,
    account: Option<usize>,
    template: Option<usize>,
}

impl Filter {
    fn all() -> impl Iterator<Item = Self> {
        let tags = [None, Some("a"), Some("unused")];
        tags.into_iter().flat_map(|tag| {
            [None, Some(0), Some(1)]
                .into_iter()
                .flat_map(move |account| {
                    [None, Some(0), Some(1)].map(|template| Self {
                        tag,
                        account,
                        template,
                    })
                })
        })
    }

    fn query<'a>(&'a self, world: &'a World) -> Vec<(&'static str, &'a str)> {
        let account = self.account.map(|nth| world.accounts[nth].as_str());
        let template = self.template.map(|nth| world.templates[nth].as_str());
        let all = [
            ("tag", self.tag),
            ("providerAccountId", account),
            ("templateId", template),
        ];
        let given = all.into_iter();
        given
            .filter_map(|(name, value)| Some((name, value?)))
            .collect()
    }

    fn matches(&self, sent: &Sent) -> bool {
        self.tag.is_none_or(|tag| sent.tags.contains(&tag))
            && self.account.is_none_or(|account| sent.account == account)
            && self
                .template
                .is_none_or(|template| sent.template == Some(template))
    }

    /// Whether a breakdown by `group_by` can be answered.
    fn may_group(&self, group_by: &str) -> bool {
        let mut values = vec![match group_by {
            "provider" | "account" => "providerAccountId",
            "template" => "templateId",
            other => other,
        }];
        let given = [
            ("tag", self.tag.is_some()),
            ("providerAccountId", self.account.is_some()),
            ("templateId", self.template.is_some()),
        ];
        values.extend(
            given
                .iter()
                .filter(|(_, is_given)| *is_given)
                .map(|(name, _)| *name),
        );
        values.sort_unstable();
        values.dedup();
        let is_far =
            group_by == "recipientDomain" && (self.tag.is_some() || self.template.is_some());
        values.len() <= 2 && !is_far
    }
}

async fn check_sums(app: &TestApp, world: &World, filter: &Filter) {
    let query = filter.query(world);
    if query.len() == 3 {
        for path in [SUMMARY, SERIES] {
            let reply = app.caller().query(path, &query).await;
            reply.expect_issues(400, &["templateId"]);
        }
        return;
    }
    let matching = || world.sent.iter().filter(|sent| filter.matches(sent));
    let sent = i64::try_from(matching().count()).unwrap();
    let delivered = matching().filter(|sent| sent.is_delivered).count();
    let delivered = i64::try_from(delivered).unwrap();
    let summary = app.caller().query(SUMMARY, &query).await.data(200);
    assert_eq!(total(&summary, "sent"), sent, "{query:?}");
    assert_eq!(total(&summary, "delivered"), delivered, "{query:?}");
    for granularity in ["hour", "day", "month"] {
        for zone in [None, Some("Asia/Kathmandu")] {
            let mut query = query.clone();
            query.push(("granularity", granularity));
            query.extend(zone.map(|zone| ("timeZone", zone)));
            let series = app.caller().query(SERIES, &query).await.data(200);
            assert_eq!(sum(&series, "sent"), sent, "{query:?}");
            assert_eq!(sum(&series, "delivered"), delivered, "{query:?}");
        }
    }
}

async fn check_groups(app: &TestApp, world: &World, filter: &Filter, group_by: &'static str) {
    let mut query = filter.query(world);
    query.push(("groupBy", group_by));
    let reply = app.caller().query(BREAKDOWN, &query).await;
    if !filter.may_group(group_by) {
        reply.expect_issues(400, &["groupBy"]);
        return;
    }
    let mut expected: BTreeMap<String, (i64, i64)> = BTreeMap::new();
    for sent in world.sent.iter().filter(|sent| filter.matches(sent)) {
        for name in world.names(sent, group_by) {
            let is_filtered_tag = group_by == "tag" && filter.tag.is_some_and(|tag| tag != name);
            if is_filtered_tag {
                continue;
            }
            // With one account in the answer, no other has its name.
            let is_alone = group_by == "account" && filter.account.is_some();
            let name = if is_alone {
                "An account".to_owned()
            } else {
                name
            };
            let counts = expected.entry(name).or_default();
            counts.0 += 1;
            counts.1 += i64::from(sent.is_delivered);
        }
    }
    let groups = reply.data(200);
    let groups = groups.as_array().unwrap().iter();
    let found = groups.map(|group| {
        let count = |name: &str| group[name].as_i64().unwrap();
        let name = group["name"].as_str().unwrap().to_owned();
        assert_eq!(group.get("id").is_some(), group_by == "account", "{group}");
        (name, (count("sent"), count("delivered")))
    });
    assert_eq!(found.collect::<BTreeMap<_, _>>(), expected, "{query:?}");
}

#[tokio::test]
async fn every_filter_and_group_counts_what_matches() {
    let app = quiet().await;
    let world = World::build(&app).await;
    // Not rolled up at all, in part, and whole.
    for limit in [0, 40, 1_000] {
        if limit > 0 {
            fold(&app.pool, limit).await;
        }
        for filter in Filter::all() {
            check_sums(&app, &world, &filter).await;
            for group_by in GROUPS {
                check_groups(&app, &world, &filter, group_by).await;
            }
        }
    }
    assert_eq!(fold(&app.pool, 10).await, 0);
}

#[tokio::test]
async fn unknown_values_of_filters_are_refused_or_count_nothing() {
    let app = quiet().await;
    for path in [SUMMARY, SERIES, BREAKDOWN] {
        let query = [("tag", ""), ("providerAccountId", "x"), ("templateId", "1")];
        let reply = app.caller().query(path, &query).await;
        reply.expect_issues(400, &["providerAccountId", "tag", "templateId"]);
    }
    let id = "01a21adc-fcba-70f5-af20-09b726bb68dc";
    for name in ["providerAccountId", "templateId", "tag"] {
        let summary = app.caller().query(SUMMARY, &[(name, id)]).await.data(200);
        assert_eq!(total(&summary, "sent"), 0);
        let groups = app.caller().query(BREAKDOWN, &[(name, id)]).await.data(200);
        assert_eq!(groups, json!([]));
    }
}

#[tokio::test]
async fn accounts_show_how_fast_they_are() {
    let app = TestApp::builder().without_scheduler().start().await;
    let fast = app.connect(ProviderType::Sendgrid).await;
    app.send_to("a@example.org").await;
    app.drain().await;
    let id = app.value("SELECT id FROM messages").await.unwrap();
    let sent_at = app.clock.now();
    let later = sent_at + TimeDelta::seconds(5);
    record(&app, &id, 0, EventType::Delivered, later, None).await;
    // A scheduled message counts from its time.
    let due = sent_at + TimeDelta::hours(3);
    let mut scheduled = message_to("b@example.org");
    scheduled["scheduledAt"] = json!(super::wire(due));
    let scheduled = app.send(&scheduled).await;
    let at = due + TimeDelta::milliseconds(800);
    record(&app, &scheduled, 0, EventType::Sent, at, None).await;
    app.leave_work();
    let to = super::wire(due + TimeDelta::hours(1));
    for is_folded in [false, true] {
        if is_folded {
            while fold(&app.pool, 1).await > 0 {}
        }
        let ask = async |query: &[(&str, &str)]| {
            let mut all = vec![("groupBy", "account"), ("to", to.as_str())];
            all.extend(query);
            app.caller().query(BREAKDOWN, &all).await.data(200)
        };
        let groups = ask(&[]).await;
        assert_eq!(groups.as_array().unwrap().len(), 1);
        let group = &groups[0];
        assert_eq!(
            (&group["id"], &group["name"]),
            (&json!(fast), &json!("An account"))
        );
        let near = |value: &Value, milliseconds: i64| {
            let told = value.as_i64().unwrap();
            assert!((told - milliseconds).abs() * 10 <= milliseconds, "{groups}");
        };
        for percentile in ["p50", "p95", "p99"] {
            near(&group["sentToDelivered"][percentile], 5_000);
        }
        near(&group["acceptToSent"]["p99"], 800);
        assert_eq!(ask(&[("providerAccountId", &fast)]).await, groups);
        // They are not told apart by tag.
        let by_tag = ask(&[("tag", "none")]).await;
        assert_eq!(by_tag, json!([]));
    }
}

#[tokio::test]
async fn a_month_has_a_bounded_number_of_tags_and_recipient_domains() {
    let app = quiet().await;
    app.connect(ProviderType::Sendgrid).await;
    let id = app.send_to("a@example.org").await;
    app.leave_work();
    let more = 30;
    let count = KEYS_PER_MONTH_MAX + more;
    app.execute(&format!(
        "INSERT INTO metric_deltas (organization_id, quarter, account, domain, template, tags, recipient_domain,
                                    sent, delivered, opened, clicked, bounced, complained, unsubscribed)
         SELECT m.organization_id, waypost_quarter(m.created_at), m.provider_account_id::text, 'example.com', '',
                ARRAY['t' || nth, 'common'], 'd' || nth || '.example', 1, 0, 0, 0, 0, 0, 0
         FROM messages m, generate_series(1, {count}) nth
         WHERE m.id = '{id}'"
    ))
    .await;
    while fold(&app.pool, 100).await > 0 {}
    let group = async |group_by: &str| {
        let query = [("groupBy", group_by)];
        let groups = app.caller().query(BREAKDOWN, &query).await.data(200);
        let groups = groups.as_array().unwrap().clone();
        let other = groups
            .iter()
            .find(|group| group["name"] == "(other)")
            .cloned();
        (
            groups.len(),
            sum(&Value::from(groups), "sent"),
            other.unwrap()["sent"].clone(),
        )
    };
    let own = usize::try_from(KEYS_PER_MONTH_MAX).unwrap();
    let domains = group("recipientDomain").await;
    assert_eq!(domains, (own + 1, count, json!(more)));
    // `common` is one of them, and counts with every message.
    let tags = group("tag").await;
    assert_eq!(tags, (own + 1, 2 * count, json!(more + 1)));
    let common = app
        .caller()
        .query(SUMMARY, &[("tag", "common")])
        .await
        .data(200);
    assert_eq!(total(&common, "sent"), count);
}
