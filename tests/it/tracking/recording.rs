//! The recording of opens and clicks: by people and bots, repeated requests, invalid tokens,
//! and an unavailable Postgres.

use std::time::{Duration, Instant};

use chrono::TimeDelta;
use futures_util::future::join_all;
use http::Method;
use serde_json::{Value, json};
use waypost_core::config::Settings;
use waypost_core::event::{self, EventType, NewEvent};
use waypost_core::ids::{Ids, MessageId, OrganizationId};
use waypost_core::provider::kind::ProviderType;
use waypost_core::tracking::TrackedRecipient;
use waypost_core::tracking::token::TrackingTokens;
use waypost_tests::{LossyProxy, TestApp, wait_until};

use super::{
    ADA, BOB, BROWSER, HTML, MACHINE, TARGET, assert_leads_to, assert_pixel, fetch, head, html_to,
    message, path, read, seen, sending, sent_to, totals,
};

/// Issues valid tokens for the tested instance.
fn tokens(app: &TestApp) -> TrackingTokens {
    TrackingTokens::new(&Settings::from_map(&app.variables).unwrap())
}

fn copy(
    app: &TestApp,
    organization_id: OrganizationId,
    message: &str,
    position: i32,
) -> TrackedRecipient {
    TrackedRecipient {
        organization_id,
        message_id: message.parse().unwrap(),
        position,
        issued_at: app.clock.now(),
    }
}

fn kinds(seen: &[(String, Value)]) -> Vec<(&str, bool)> {
    let kinds = seen.iter();
    kinds
        .map(|(kind, data)| (kind.as_str(), data["isBot"].as_bool().unwrap()))
        .collect()
}

#[tokio::test]
async fn bots_are_in_the_history_but_not_in_the_metrics_and_prove_no_delivery() {
    let app = sending().await;
    let sent = sent_to(&app, ADA).await;
    assert_pixel(&fetch(app.caller(), &sent.pixel, MACHINE).await);
    assert_leads_to(
        &fetch(app.caller(), &sent.link, "Slackbot-LinkExpanding 1.0").await,
        TARGET,
    );
    let ahead = |request: reqwest::RequestBuilder| {
        request
            .header("user-agent", BROWSER)
            .header("sec-purpose", "prefetch")
    };
    let anonymous = app.caller().anonymous();
    app.advance(TimeDelta::seconds(20));
    assert_leads_to(
        &anonymous.call(Method::GET, &sent.link, ahead).await,
        TARGET,
    );
    // Without a user agent.
    app.advance(TimeDelta::seconds(20));
    assert_pixel(&anonymous.get(&sent.pixel).await);
    let machines = [
        ("OPENED", true),
        ("CLICKED", true),
        ("CLICKED", true),
        ("OPENED", true),
    ];
    let history = seen(&app).await;
    assert_eq!(kinds(&history), machines);
    assert_eq!(history[3].1, json!({ "isBot": true }));
    assert_eq!(
        (totals(&app).await, app.status(&sent.id).await.as_str()),
        ([0, 0, 0], "SENT")
    );
    // A later open by a person counts.
    read(&app, &sent.link).await;
    assert_eq!(kinds(&seen(&app).await)[4], ("CLICKED", false));
    assert_eq!(
        (totals(&app).await, app.status(&sent.id).await.as_str()),
        ([1, 0, 1], "DELIVERED")
    );
    let types = [
        "QUEUED",
        "SENT",
        "OPENED",
        "CLICKED",
        "CLICKED",
        "OPENED",
        "DELIVERED",
        "CLICKED",
    ];
    assert_eq!(app.events(&sent.id).await, types);
}

#[tokio::test]
async fn a_click_right_after_the_sending_is_by_a_bot() {
    let app = TestApp::builder()
        .setting("WAYPOST_TRACKING_MACHINE_WINDOW", "2s")
        .start()
        .await;
    app.connect(ProviderType::Sendgrid).await;
    // A second later.
    let sent = sent_to(&app, ADA).await;
    assert_leads_to(&read(&app, &sent.link).await, TARGET);
    app.advance(TimeDelta::seconds(2));
    assert_leads_to(&read(&app, &sent.link).await, TARGET);
    assert_eq!(
        kinds(&seen(&app).await),
        [("CLICKED", true), ("CLICKED", false)]
    );
    assert_eq!(totals(&app).await, [1, 0, 1]);
}

#[tokio::test]
async fn head_requests_record_nothing() {
    let app = sending().await;
    let sent = sent_to(&app, ADA).await;
    let pixel = head(app.caller(), &sent.pixel).await;
    assert_eq!(
        (pixel.status, pixel.header("content-type")),
        (200, Some("image/gif"))
    );
    assert_leads_to(&head(app.caller(), &sent.link).await, TARGET);
    assert_eq!(
        head(app.caller(), &format!("{}x", sent.link)).await.status,
        400
    );
    assert_eq!(head(app.caller(), "/v1/t/o/x").await.status, 200);
    for method in [Method::POST, Method::DELETE, Method::PUT] {
        for path in [&sent.pixel, &sent.link] {
            let reply = app
                .caller()
                .call(method.clone(), path, |request| request)
                .await;
            assert_eq!(reply.status, 405);
        }
    }
    assert_eq!(seen(&app).await, []);
    assert_eq!(app.status(&sent.id).await, "SENT");
}

#[tokio::test]
async fn repeated_clicks_leave_a_bounded_history() {
    let app = sending().await;
    let sent = sent_to(&app, ADA).await;
    // Concurrent requests count once.
    let same = (0..200).map(|_| read(&app, &sent.link));
    for reply in join_all(same).await {
        assert_leads_to(&reply, TARGET);
    }
    // A request waits for a second. A slower recording continues in the background.
    wait_until("it is recorded", async || seen(&app).await.len() == 1).await;
    app.advance(TimeDelta::seconds(9));
    read(&app, &sent.link).await;
    assert_eq!(seen(&app).await.len(), 1);
    // A bot over hours, through two API processes: recorded up to the limit.
    let other = app.start_another_api().await;
    for _ in 0..60 {
        app.advance(TimeDelta::seconds(10));
        for caller in [app.caller(), &other] {
            assert_leads_to(&fetch(caller, &sent.link, MACHINE).await, TARGET);
        }
    }
    assert_eq!(seen(&app).await.len(), 101);
    // Clicks by people are still recorded.
    read(&app, &sent.link).await;
    read(&app, &sent.pixel).await;
    let history = seen(&app).await;
    assert_eq!(
        kinds(&history)[101..],
        [("CLICKED", false), ("OPENED", false)]
    );
    assert_eq!(totals(&app).await, [1, 1, 1]);
}

#[tokio::test]
async fn concurrent_hits_of_many_recipients_are_all_recorded() {
    let app = sending().await;
    let addresses: Vec<String> = (0..60).map(|n| format!("r{n}@example.org")).collect();
    for to in &addresses {
        app.send(&message(&[to.as_str()], HTML)).await;
    }
    app.drain().await;
    app.advance(TimeDelta::seconds(1));
    let other = app.start_another_api().await;
    let callers = [app.caller(), &other];
    let fetched = addresses.iter().flat_map(|to| {
        let html = html_to(&app, to);
        let paths = [path(&html, "<img src=\""), path(&html, "<a href=\"")];
        callers.map(|caller| (caller.clone(), paths.clone()))
    });
    let fetched = fetched.map(async |(caller, [pixel, link])| {
        let (pixel, link) = tokio::join!(
            fetch(&caller, &pixel, BROWSER),
            fetch(&caller, &link, BROWSER)
        );
        assert_pixel(&pixel);
        assert_leads_to(&link, TARGET);
    });
    join_all(fetched).await;
    wait_until("all is recorded", async || {
        totals(&app).await == [60, 60, 60]
    })
    .await;
    let query = "SELECT count(*) FROM messages WHERE status = 'DELIVERED'";
    assert_eq!(app.value(query).await.as_deref(), Some("60"));
    let query = "SELECT count(*) FROM events WHERE event_type = 'DELIVERED'";
    assert_eq!(app.value(query).await.as_deref(), Some("60"));
}

#[tokio::test]
async fn invalid_tokens_do_not_redirect_and_pixels_show_no_error() {
    let app = sending().await;
    let sent = sent_to(&app, ADA).await;
    let token = |path: &str| path.rsplit('/').next().unwrap().to_owned();
    let (open, click) = (token(&sent.pixel), token(&sent.link));
    let forged = format!(
        "{}{}",
        &click[..click.len() - 1],
        if click.ends_with('A') { 'B' } else { 'A' }
    );
    for token in [
        "x",
        &open,
        &forged,
        &format!("{click}A"),
        "%0d%0aSet-Cookie:a=b",
        "..%2f..",
        "https:%2f%2fevil.example",
        "%FF",
    ] {
        let reply = read(&app, &format!("/v1/t/c/{token}")).await;
        assert_eq!(reply.status, 400, "{token}: {reply:?}");
        assert!(
            reply
                .header("content-type")
                .unwrap()
                .starts_with("text/html")
        );
        assert_eq!(reply.header("location"), None);
    }
    for token in ["x", &click, &format!("{open}A"), "%00", "%FF", "ä"] {
        assert_pixel(&read(&app, &format!("/v1/t/o/{token}")).await);
    }
    assert_eq!(seen(&app).await, []);
    let unsubscribe = read(&app, &format!("/v1/unsubscribe/{open}")).await;
    assert_eq!(unsubscribe.status, 400);
}

#[tokio::test]
async fn a_token_counts_only_for_an_existing_recipient_of_its_organization() {
    let app = sending().await;
    let sent = sent_to(&app, ADA).await;
    let tokens = tokens(&app);
    let theirs = app.tenant("Other").await.organization_id;
    let nowhere = Ids::new(app.clock.clone()).next::<MessageId>().to_string();
    for copy in [
        copy(&app, theirs, &sent.id, 0),
        copy(&app, app.organization_id(), &sent.id, 1),
        copy(&app, app.organization_id(), &nowhere, 0),
    ] {
        let link = format!("/v1/t/c/{}", tokens.issue_click(copy, TARGET));
        assert_leads_to(&read(&app, &link).await, TARGET);
        assert_pixel(&read(&app, &format!("/v1/t/o/{}", tokens.issue_open(copy))).await);
    }
    assert_eq!(seen(&app).await, []);
    // A signed URL that is not http or https does not redirect either.
    let own = copy(&app, app.organization_id(), &sent.id, 0);
    for url in [
        "javascript:alert(1)",
        "ftp://e.com/",
        "//e.com",
        "https://e.com/\r\nX: y",
        "https://e.com/ä",
        "",
    ] {
        let link = format!("/v1/t/c/{}", tokens.issue_click(own, url));
        let reply = read(&app, &link).await;
        assert_eq!(
            (reply.status, reply.header("location")),
            (400, None),
            "{url}"
        );
    }
    assert_eq!(seen(&app).await, []);
}

#[tokio::test]
async fn clients_with_many_invalid_links_are_limited_and_those_with_valid_links_are_not() {
    let app = TestApp::builder()
        .setting("WAYPOST_RATE_LIMIT_ANONYMOUS_PER_MINUTE", "3")
        .start()
        .await;
    app.connect(ProviderType::Sendgrid).await;
    let sent = sent_to(&app, ADA).await;
    let mut statuses = Vec::new();
    for _ in 0..6 {
        statuses.push(read(&app, "/v1/t/c/x").await.status);
    }
    assert_eq!((statuses[0], statuses[5]), (400, 429), "{statuses:?}");
    for _ in 0..6 {
        assert_pixel(&read(&app, "/v1/t/o/x").await);
        assert_leads_to(&read(&app, &sent.link).await, TARGET);
    }
}

#[tokio::test]
async fn an_expired_link_redirects_but_is_not_recorded() {
    let app = TestApp::builder()
        .setting("WAYPOST_TRACKING_LIFETIME", "1h")
        .start()
        .await;
    app.connect(ProviderType::Sendgrid).await;
    let sent = sent_to(&app, ADA).await;
    app.advance(TimeDelta::hours(1));
    assert_leads_to(&read(&app, &sent.link).await, TARGET);
    assert_pixel(&read(&app, &sent.pixel).await);
    assert_eq!(seen(&app).await, []);
}

#[tokio::test]
async fn a_later_status_is_kept_and_the_events_are_recorded() {
    let app = sending().await;
    let sent = sent_to(&app, ADA).await;
    app.execute("UPDATE recipients SET status = 'BOUNCED'")
        .await;
    app.execute("UPDATE messages SET status = 'BOUNCED'").await;
    read(&app, &sent.pixel).await;
    assert_eq!(app.status(&sent.id).await, "BOUNCED");
    assert_eq!(app.recipient(&sent.id).await["status"], "BOUNCED");
    assert_eq!(app.events(&sent.id).await, ["QUEUED", "SENT", "OPENED"]);
    // The link of a removed message still redirects.
    let other = sent_to(&app, BOB).await;
    for table in ["recipients", "messages"] {
        app.execute(&format!("DELETE FROM {table}")).await;
    }
    assert_leads_to(&read(&app, &other.link).await, TARGET);
    assert_eq!(seen(&app).await.len(), 1);
}

#[tokio::test]
async fn opens_that_the_provider_also_reports_count_once() {
    let app = sending().await;
    let sent = sent_to(&app, ADA).await;
    let told = |event_type, url: Option<&str>| NewEvent {
        id: Ids::new(app.clock.clone()).next(),
        message_id: sent.id.parse().unwrap(),
        organization_id: app.organization_id(),
        position: 0,
        event_type,
        occurred_at: app.clock.now(),
        data: Some(json!({ "isBot": false, "url": url })),
    };
    let events = [
        told(EventType::Opened, None),
        told(EventType::Clicked, Some(TARGET)),
    ];
    let mut connection = app.pool.acquire().await.unwrap();
    event::store::insert(&mut connection, &events)
        .await
        .unwrap();
    read(&app, &sent.pixel).await;
    read(&app, &sent.link).await;
    event::store::insert(&mut connection, &[told(EventType::Opened, None)])
        .await
        .unwrap();
    assert_eq!(seen(&app).await.len(), 5);
    assert_eq!(totals(&app).await, [1, 1, 1]);
}

#[tokio::test]
async fn without_postgres_links_redirect_and_requests_do_not_wait_long() {
    let mut app = sending().await;
    let sent = sent_to(&app, ADA).await;
    let nowhere = "postgres://nobody:canary-password@127.0.0.1:1/nowhere";
    app.variables
        .insert("DATABASE_URL".to_owned(), nowhere.to_owned());
    let cut_off = app.start_another_api().await;
    let begun = Instant::now();
    for _ in 0..20 {
        app.advance(TimeDelta::seconds(10));
        assert_pixel(&fetch(&cut_off, &sent.pixel, BROWSER).await);
        assert_leads_to(&fetch(&cut_off, &sent.link, BROWSER).await, TARGET);
    }
    // The first request waits for a second. If all forty waited, they would take forty seconds.
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(seen(&app).await, []);
}

#[tokio::test]
async fn hits_are_recorded_when_postgres_returns() {
    let app = sending().await;
    let sent = sent_to(&app, ADA).await;
    let mut holder = app.pool.begin().await.unwrap();
    sqlx::raw_sql("LOCK TABLE recipients IN ACCESS EXCLUSIVE MODE")
        .execute(&mut *holder)
        .await
        .unwrap();
    assert_leads_to(&read(&app, &sent.link).await, TARGET);
    assert_pixel(&read(&app, &sent.pixel).await);
    assert_eq!(seen(&app).await, []);
    holder.rollback().await.unwrap();
    wait_until("both are recorded", async || seen(&app).await.len() == 2).await;
    assert_eq!(totals(&app).await, [1, 1, 1]);
}

#[tokio::test]
async fn a_commit_with_a_lost_reply_is_recorded_once() {
    let mut app = sending().await;
    let sent = sent_to(&app, ADA).await;
    let database = app.variables["DATABASE_URL"].clone();
    let line = LossyProxy::to(&database).await;
    app.variables
        .insert("DATABASE_URL".to_owned(), line.url_of(&database));
    let behind = app.start_another_api().await;
    line.lose_next_commit();
    assert_leads_to(&fetch(&behind, &sent.link, BROWSER).await, TARGET);
    // Later hits are recorded too.
    assert_pixel(&fetch(&behind, &sent.pixel, BROWSER).await);
    wait_until("both are recorded", async || {
        let seen = seen(&app).await;
        seen.iter().any(|(kind, _)| kind == "OPENED")
    })
    .await;
    assert_eq!(line.commits_to_lose(), 0);
    let seen = seen(&app).await;
    assert_eq!(kinds(&seen), [("CLICKED", false), ("OPENED", false)]);
    assert_eq!(totals(&app).await, [1, 1, 1]);
}

#[tokio::test]
async fn tokens_and_targets_stay_out_of_the_logs() {
    let app = TestApp::builder()
        .processes()
        .setting("WAYPOST_LOG", "debug")
        .start()
        .await;
    let api = app.spawn_api().await;
    let worker = app.spawn_worker();
    app.connect(ProviderType::Sendgrid).await;
    app.send(&message(&[ADA], HTML)).await;
    app.drain_within(Duration::from_secs(30)).await;
    let html = html_to(&app, ADA);
    let (pixel, link) = (path(&html, "<img src=\""), path(&html, "<a href=\""));
    assert_pixel(&read(&app, &pixel).await);
    assert_leads_to(&read(&app, &link).await, TARGET);
    assert_eq!(read(&app, &format!("{link}x")).await.status, 400);
    assert_eq!(app.delete(&link).await.status, 405);
    wait_until("both are recorded", async || seen(&app).await.len() == 2).await;
    for log in [api.log(), worker.log()] {
        assert!(log.len() > 100, "{log}");
        for secret in [
            &pixel[8..48],
            &link[8..48],
            &link[link.len() - 30..],
            "shop.example",
            ADA,
        ] {
            assert!(!log.contains(secret), "{secret} in {log}");
        }
    }
}
